"""Short ways for plain NumPy arrays, where the way for all arrays takes many steps.

Each gives None where it does not apply.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np

from rushlight.arrays import kernels

Array = Any

_INT64: Final = np.dtype(np.int64)
_UINT64: Final = np.dtype(np.uint64)
# What numbers are multiplied in: a product of many leaves float32 sooner than its factors do.
_WIDE: Final[dict[Any, Any]] = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.float64): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
    np.dtype(np.complex128): np.dtype(np.complex128),
}
_LEAST: Final = 1e-290  # far enough from where float64 ends
_MOST: Final = 1e290
_MANY: Final = 20_000  # elements from which SciPy's loop over rows is quicker
_OFTEN: Final = 256  # so many to one place want more care than adding one after the other
_SIDE: Final = 256
_multiply: Final[Any] = np.multiply
_maximum: Final[Any] = np.maximum
_add: Final[Any] = np.add


def products_of_others(x: Array) -> Array | None:
    """For each element the product of the others along the last axis: that of all over its own,
    or where one of those is nothing to divide by, those to its left times those to its right."""
    if type(x) is not np.ndarray or x.dtype not in _WIDE or x.size == 0:
        return None
    made = kernels.products_of_others(x)
    if made is not None:
        return made
    wide = _WIDE[x.dtype]
    whole = _whole(x, wide)
    sizes = np.absolute(whole)
    if sizes.min() > _LEAST and sizes.max() < _MOST:  # no zeros, and none that is not finite
        return np.divide(whole, x).astype(x.dtype, copy=False)
    w = x.astype(wide, copy=False)
    y = np.empty(x.shape, w.dtype)
    y[..., 0] = 1
    if x.shape[-1] > 1:
        _multiply.accumulate(w[..., :-1], -1, None, y[..., 1:])
        right = _multiply.accumulate(w[..., :0:-1], -1)
        y[..., :-1] *= right[..., ::-1]
    return y.astype(x.dtype, copy=False)


def _whole(x: Array, wide: Any) -> Array:
    """The product along the last axis, of which many are multiplied side by side."""
    n = x.shape[-1]
    if n < 4 * _SIDE or not x.flags.c_contiguous:
        return _multiply.reduce(x, -1, wide, None, True)
    cut = n - n % _SIDE
    parts = x[..., :cut].reshape(*x.shape[:-1], cut // _SIDE, _SIDE)
    found = _multiply.reduce(_multiply.reduce(parts, -2, wide), -1, wide, None, True)
    return found if cut == n else found * _multiply.reduce(x[..., cut:], -1, wide, None, True)


def _beyond(places: Array, count: int) -> bool:
    """Whether a place is out of range: one below 0 is a large number without a sign."""
    return bool(_maximum.reduce(places.view(_UINT64), None) >= count)


def sum_at(g: Array, shape: tuple[int, ...], index: tuple[Any, ...], where: Array) -> Array | None:
    """`add.at(zeros(shape), index, g)` for one array of ints in the index, `where`."""
    rank = len(shape)
    if len(index) == 1:
        axis = 0
    elif index[0] is Ellipsis and type(index[1]) is not slice:
        axis = rank - len(index) + 1
    else:
        return None
    dtype = g.dtype
    if where.dtype != _INT64 or dtype not in _WIDE or rank == 0:
        return None
    size, count = g.size, shape[axis]
    if size == 0 or g.shape != (*shape[:axis], *where.shape, *shape[axis + 1 :]):
        return None
    places = where.reshape(-1)
    n = places.size
    if n >= _OFTEN * count:
        return None
    out = np.zeros(shape, dtype)
    if axis == 0:
        width = size // n
        if width == 1:  # a place out of range raises here, a negative one counts from the end
            _add.at(out.reshape(-1), places, g.reshape(-1))
            return out
        if size <= _MANY:
            flat = (places[:, None] * width + np.arange(width)).reshape(-1)
            _add.at(out.reshape(-1), flat, g.reshape(-1))
            return out
        if _beyond(places, count):
            return None
        return _add_rows(out, places, g, n, width)
    if _beyond(places, count):
        return None
    after = 1
    for m in shape[axis + 1 :]:
        after *= m
    before = size // (n * after)
    flat = places if after == 1 else (places[:, None] * after + np.arange(after)).reshape(-1)
    if before > 1:
        flat = (np.arange(0, before * count * after, count * after)[:, None] + flat).reshape(-1)
    _add.at(out.reshape(-1), flat, g.reshape(-1))
    return out


def sum_at_several(
    g: Array, shape: tuple[int, ...], index: tuple[Any, ...], arrays: tuple[Array, ...]
) -> Array | None:
    """`sum_at` for an array of ints for each of the first axes, all of one shape."""
    axes = len(arrays)
    if axes != len(index) or axes > len(shape):
        return None
    where: Any = 0
    count = 1
    for n, places in zip(shape, arrays, strict=False):
        if places.dtype != _INT64 or places.shape != arrays[0].shape or places.size == 0:
            return None
        if _beyond(places, n):
            return None
        where = where * n + places
        count *= n
    found = sum_at(g, (count, *shape[axes:]), index[:1], where)
    return None if found is None else found.reshape(shape)


def _add_rows(out: Array, places: Array, g: Array, n: int, width: int) -> Array | None:
    """out[places[i]] += g[i] by the loop of SciPy's sparse products: a column with a single one for
    each row of `g`. The places are in range, which it does not ask."""
    add_rows = getattr(importlib.import_module("scipy.sparse._sparsetools"), "csc_matvecs", None)
    if add_rows is None:
        return None
    starts, ones = np.arange(n + 1), np.ones(n, g.dtype)
    add_rows(out.shape[0], n, width, starts, places, ones, g.reshape(-1), out.reshape(-1))
    return out
