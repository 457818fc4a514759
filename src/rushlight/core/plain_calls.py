"""Calls that compute nothing, or make something new, without an interpreted frame: sizes of plain
tensors, what is there already, numbers written everywhere, new tensors of given sizes.

Each function is asked with what a public function of the same name was given, behind something
that it was told when that was made (`told` in `ops.registry`), and gives the result; or None for
whatever is unusual. Then the public function looks at it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays import device as devices
from rushlight.arrays import kernels
from rushlight.core.dispatch import in_rows
from rushlight.core.graph import TensorBase, shape_of, wrap
from rushlight.core.operators import read_shape
from rushlight.core.record import finish
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import copy_plain, fill_plain

_ndarray: Final = np.ndarray
_filled: Final[Any] = kernels.filled
_filled_as: Final[Any] = kernels.filled_as
_of_numbers: Final[Any] = kernels.of_numbers
_counted: Final[Any] = kernels.counted
_INT64: Final = int(np.dtype(np.int64).num)
_LARGE: Final = 1e38  # numbers beyond it may be too large for a float
_dtypes: Final[Any] = dtypes  # as it is when asked: the default may be another by then
_devices: Final[Any] = devices
_EXACT: Final = 1 << 53  # ints below it are floats too


def _one_plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call is of one tensor on an array of NumPy's, and of nothing else."""
    if len(args) != 1 or kwargs:
        return False
    x = args[0]
    return isinstance(x, TensorBase) and type(x._array) is _ndarray


# --- sizes ----------------------------------------------------------------------------------------
def dim(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not _one_plain(args, kwargs):
        return None
    x: TensorBase = args[0]
    return int(x._array.ndim)


def numel(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not _one_plain(args, kwargs):
        return None
    x: TensorBase = args[0]
    return int(x._array.size)


def length(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`len(x)`."""
    if not _one_plain(args, kwargs):
        return None
    x: TensorBase = args[0]
    shape: tuple[int, ...] = shape_of(x, x._array)
    return shape[0] if len(shape) > 0 else None


def size(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    n = len(args)
    if n == 0 or n > 2 or kwargs or not _one_plain(args[:1], kwargs):
        return None
    x: TensorBase = args[0]
    if n == 1:
        return read_shape(x)
    if type(args[1]) is not int:
        return None
    shape: tuple[int, ...] = shape_of(x, x._array)
    d: int = args[1]
    return shape[d] if -len(shape) <= d < len(shape) else None


# --- what is there already ------------------------------------------------------------------------
def contiguous(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not _one_plain(args, kwargs):
        return None
    x: TensorBase = args[0]
    return x if in_rows(x, x._array) else None


def cast(dtype: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.float()` and its like, of a tensor that has this dtype."""
    if not _one_plain(args, kwargs):
        return None
    x: TensorBase = args[0]
    return x if x._array.dtype is dtype else None


# --- writing --------------------------------------------------------------------------------------
def zero_(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not _one_plain(args, kwargs):
        return None
    x: TensorBase = args[0]
    return x if fill_plain(x, 0.0) else None


def fill_(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 2 or not _one_plain(args[:1], kwargs):
        return None
    x: TensorBase = args[0]
    value = args[1]
    if type(value) is int and -_EXACT < value < _EXACT:
        return x if fill_plain(x, float(value)) else None
    return x if type(value) is float and fill_plain(x, value) else None


def copy_(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 2 or not _one_plain(args[:1], kwargs) or not isinstance(args[1], TensorBase):
        return None
    x: TensorBase = args[0]
    return x if copy_plain(x, args[1]) else None


# --- new tensors ----------------------------------------------------------------------------------
def _made(array: Any) -> Any:
    return None if array is None else finish(wrap(array))


def is_elsewhere() -> bool:
    """Whether new tensors may be on another device, or of a batch."""
    return _devices.chosen_anywhere or stack.batches != 0


def filled(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`zeros`, `ones` and `empty`, of sizes."""
    if kwargs or is_elsewhere():
        return None
    return _made(_filled(args, value, _dtypes.default_numpy.num))


def full(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 2 or type(args[0]) is not tuple or is_elsewhere():
        return None
    value = args[1]
    if type(value) is float and -_LARGE < value < _LARGE:
        return _made(_filled(args[:1], value, _dtypes.default_numpy.num))
    return _made(_filled(args[:1], value, _INT64)) if type(value) is int else None


def tensor(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of numbers and lists of them; `requires_grad=True` may stand behind."""
    if len(args) != 1 or len(kwargs) > 1 or is_elsewhere():
        return None
    wants_grad = kwargs.get("requires_grad") if kwargs else False
    if wants_grad is not False and wants_grad is not True:
        return None
    array = _of_numbers(args[0], _dtypes.default_numpy.num)
    if array is None or (wants_grad and array.dtype.kind != "f"):
        return None
    t = finish(wrap(array))
    if wants_grad:
        t._requires_grad = True
    return t


def like(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`zeros_like`, `ones_like` and `empty_like`."""
    if not _one_plain(args, kwargs):
        return None
    x: TensorBase = args[0]
    return _made(_filled_as(value, x._array))


def arange(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or is_elsewhere():
        return None
    return _made(_counted(args, -1, _dtypes.default_numpy.num))
