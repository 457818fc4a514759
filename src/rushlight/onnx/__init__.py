"""`torch.onnx`: rushlight cannot write models in ONNX's format, and says so.

>>> torch.onnx.is_in_onnx_export()
False
"""

from __future__ import annotations

import enum as _enum
import typing as _typing
from typing import Any, NoReturn

from rushlight.absent import stand_in as _stand_in
from rushlight.missing import face as _face

__all__ = ["ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]
_UNLISTED = (
    "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
)  # fmt: skip

ONNXProgram = _stand_in("torch.onnx.ONNXProgram", "rushlight writes no ONNX")


class TrainingMode(_enum.Enum):
    """Whether a model is written for training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(_enum.Enum):
    """What becomes of operators that ONNX lacks."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(_enum.IntEnum):
    """ONNX's numbers of dtypes."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """register_custom_op_symbolic(name, fn, opset_version): nobody will call it."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """unregister_custom_op_symbolic(name, opset_version): nothing was registered."""


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
    __getattr__, __dir__ = _face("torch.onnx", globals(), {"symbolic_helper": ""}, _UNLISTED)
