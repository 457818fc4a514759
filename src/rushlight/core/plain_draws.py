"""Random numbers of the default generator, drawn by ordinary calls without an interpreted frame.

Each function is asked with what a public function of the same name was given, behind the module of
generators (and whatever else it was told), and gives the result; or None for whatever is unusual,
before anything is drawn. Then the public function looks at it.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.core.dispatch import in_rows
from rushlight.core.grad_mode import state
from rushlight.core.graph import TensorBase, requires_grad, wrap
from rushlight.core.plain_calls import is_elsewhere
from rushlight.core.record import finish, recording
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import is_plain

_ndarray: Final = np.ndarray
_empty: Final[Any] = np.empty
_float32: Final[Any] = np.float32
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_dtypes: Final[Any] = dtypes  # as it is when asked: the default may be another by then
# Elements. More are drawn while other threads run, and for that the public functions take the
# generator's lock.
_MOST: Final = 20_000
_LARGE: Final = 1e30  # bounds beyond it are looked at with more care


def _bits(source: Any) -> Any:
    """What draws, unless another thread is drawing."""
    bits = source.default_generator.bits
    return None if bits.busy else bits


def _number(args: tuple[Any, ...], at: int, default: float) -> float:
    """An argument that is a number; NaN if it is no plain one, and so fails every comparison."""
    if at >= len(args):
        return default
    x = args[at]
    if type(x) is float or (type(x) is int and -_LARGE < x < _LARGE):
        return float(x)
    return math.nan


# --- in place -------------------------------------------------------------------------------------
def _target(args: tuple[Any, ...], kwargs: dict[str, Any], most: int) -> Any:
    """The array that a call of up to `most` arguments fills, if it is a plain one."""
    if kwargs or len(args) == 0 or len(args) > most or not isinstance(args[0], TensorBase):
        return None
    x: TensorBase = args[0]
    array = x._array
    if type(array) is not _ndarray or array.size > _MOST or not is_plain(x, array):
        return None
    return array if array.flags.writeable else None


def _fill(args: tuple[Any, ...], filled: Any) -> Any:
    if not filled:
        return None
    x: TensorBase = args[0]
    x._storage.written()
    return x


def uniform_(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    array = _target(args, kwargs, 3)
    low, high = _number(args, 1, 0.0), _number(args, 2, 1.0)
    if array is None or not -_LARGE < low <= high < _LARGE:
        return None
    bits = _bits(source)
    return None if bits is None else _fill(args, bits.uniform(array, low, high))


def normal_(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    array = _target(args, kwargs, 3)
    mean, std = _number(args, 1, 0.0), _number(args, 2, 1.0)
    if array is None or mean != mean or not std >= 0.0:
        return None
    bits = _bits(source)
    return None if bits is None else _fill(args, bits.normals(array, mean, std))


def exponential_(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    array = _target(args, kwargs, 2)
    rate = _number(args, 1, 1.0)
    if array is None or not rate > 0.0:
        return None
    bits = _bits(source)
    return None if bits is None else _fill(args, bits.exponentials(array, rate))


def bernoulli_(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    array = _target(args, kwargs, 2)
    p = _number(args, 1, 0.5)
    if array is None or not 0.0 <= p <= 1.0:
        return None
    bits = _bits(source)
    return None if bits is None else _fill(args, bits.keeps(array, p, 1.0))


# --- new tensors ----------------------------------------------------------------------------------
def sample(told: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`rand` and `randn`, of sizes. `told` are the module of generators, what makes the array, and
    what that is told of the numbers."""
    if kwargs or is_elsewhere():
        return None
    source, make, end = told
    array = make(source.default_generator.bits, args, _dtypes.default_numpy.num, 0.0, end)
    return None if array is None else finish(wrap(array))


def randint(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    n = len(args)
    if kwargs or n < 2 or n > 3 or is_elsewhere() or type(args[n - 1]) is not tuple:
        return None
    low = args[0] if n == 3 else 0
    high = args[n - 2]
    if type(low) is not int or type(high) is not int or not low < high:
        return None
    array = source.default_generator.bits.new_integers(args[n - 1 :], low, high - low)
    return None if array is None else finish(wrap(array))


def randperm(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 1 or type(args[0]) is not int or not 0 <= args[0] <= _MOST:
        return None
    bits = None if is_elsewhere() else _bits(source)
    array = None if bits is None else bits.shuffled(args[0])
    return None if array is None else finish(wrap(array))


def _model(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The array of the only argument, a tensor of floats in rows."""
    if kwargs or len(args) != 1 or not isinstance(args[0], TensorBase) or stack.batches != 0:
        return None
    x: TensorBase = args[0]
    return _rows_of(x)


def _rows_of(x: TensorBase) -> Any:
    """The array of a tensor, if it has floats in rows, and not many."""
    array = x._array
    if type(array) is not _ndarray or not (array.dtype is _F32 or array.dtype is _F64):
        return None
    return array if 0 < array.size <= _MOST and in_rows(x, array) else None


def like(told: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`rand_like` and `randn_like`. `told` are the module of generators, and whether the numbers
    are normal ones."""
    source, normal = told
    x = _model(args, kwargs)
    bits = None if x is None else _bits(source)
    if bits is None:
        return None
    made = _empty(x.shape, x.dtype)
    fill = bits.normals if normal else bits.uniform
    return finish(wrap(made)) if fill(made, 0.0, 1.0) else None


def bernoulli(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    p = _model(args, kwargs)
    if p is None or state.active != 0 or (recording() and requires_grad(args[0])):
        return None
    bits = _bits(source)
    if bits is None:
        return None
    made = _empty(p.shape, p.dtype)
    return finish(wrap(made)) if bits.keeps_by(made, p) else None


# --- dropout --------------------------------------------------------------------------------------
def dropout(source: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`nn.functional.dropout(input, p, training, inplace)`, in training and not in place."""
    n = len(args)
    if n == 0 or n > 4 or not isinstance(args[0], TensorBase):
        return None
    p: Any = args[1] if n > 1 else 0.5
    training: Any = args[2] if n > 2 else True
    inplace: Any = args[3] if n > 3 else False
    if kwargs:
        named = 0
        if n <= 1 and "p" in kwargs:
            p, named = kwargs["p"], named + 1
        if n <= 2 and "training" in kwargs:
            training, named = kwargs["training"], named + 1
        if n <= 3 and "inplace" in kwargs:
            inplace, named = kwargs["inplace"], named + 1
        if named != len(kwargs):
            return None
    if type(p) is not float or not 0.0 < p < 1.0:
        return None
    x: TensorBase = args[0]
    if training is False:
        return x
    if training is not True or inplace is not False or stack.batches != 0 or state.level != 0:
        return None
    array = _rows_of(x)
    bits = None if array is None else _bits(source)
    if bits is None:
        return None
    kept = 1.0 - p
    # a float divided by a float, and rounded: in double that is the same
    one = 1.0 / (float(_float32(kept)) if array.dtype is _F32 else kept)
    noise = _empty(array.shape, array.dtype)
    given: Any = x
    return given * wrap(noise) if bits.keeps(noise, kept, one) else None
