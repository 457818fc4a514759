"""`torch.onnx`: rushlight cannot write models in ONNX's format, and says so.

>>> torch.onnx.is_in_onnx_export()
False
"""

from __future__ import annotations

import typing as _typing
from typing import Any, NoReturn

from rushlight.missing import face as _face

__all__ = ["OnnxExporterError", "export", "is_in_onnx_export"]


class OnnxExporterError(RuntimeError):
    """ONNX's format cannot be written."""


def is_in_onnx_export() -> bool:
    """is_in_onnx_export() -> bool: never."""
    return False


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> NoReturn:
    """export(model, args, f): raises: rushlight writes no ONNX."""
    raise OnnxExporterError(
        "rushlight cannot export to ONNX, for it makes no graph of a model's operators; load the "
        "state_dict in PyTorch and export it there."
    )


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.onnx", globals())
