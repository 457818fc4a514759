"""Helpers for training scripts: `utils.hooks`, and `utils.checkpoint` when first used.

Imported by users; in the package by `nn` and `optim`.
"""

import importlib as _importlib
import typing as _typing

from rushlight.missing import lacking as _lacking
from rushlight.tensor_resize import swap_tensors
from rushlight.utils import hooks as hooks

if _typing.TYPE_CHECKING:
    from rushlight.utils import checkpoint as checkpoint
else:

    def __getattr__(name: str) -> _typing.Any:
        if name in ("checkpoint", "_mode_utils"):
            return _importlib.import_module(f"{__name__}.{name}")
        raise _lacking("torch.utils", name, globals())


__all__ = ["checkpoint", "hooks", "swap_tensors"]
