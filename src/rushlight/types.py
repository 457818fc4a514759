"""`torch.types`: names for the kinds of arguments, which programs use in their annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from rushlight.arrays.device import device
from rushlight.dtypes import dtype, layout
from rushlight.size import Size
from rushlight.storage import TypedStorage as Storage
from rushlight.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]
__dir__ = __all__.copy

_int, _float, _complex = builtins.int, builtins.float, builtins.complex
_bool, _bytes, _str = builtins.bool, builtins.bytes, builtins.str
_device, _dtype, _layout = device, dtype, layout

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | Any  # a name, or something that reads and writes
PySymType: TypeAlias = int | float | bool
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int]
_dispatchkey: TypeAlias = str
