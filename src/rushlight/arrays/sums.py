"""Sums of NumPy's arrays that stay accurate however long they are, over any axes and in any layout.

For `vocabulary` alone.

Note [Long sums]
    Adding n numbers one after the other loses up to n units in the last place, and a sum of ones in
    float32 stops at 2**24. NumPy adds in pairs along the axis that lies closest in memory, but one
    after the other along every other. So such an axis is cut here: n rows are seen as sets of 16
    that are added up, and their sums as rows again, until 64 are left; the error then grows as
    log n. A cut is a view, and the numbers that one step of NumPy's loop adds are those of many
    rows side by side: narrow arrays are summed fifty times as fast.
    Where an axis has stride 0 (a gradient that was broadcast) n equal rows are one, times n.
    Running sums and products cannot be cut: they are kept in the next wider type.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

__all__ = [
    "FEW",
    "WIDE",
    "add_by_place",
    "multiply_over",
    "running_in_wide",
    "sum_by_place",
    "sum_over",
]

Array = Any

FEW: Final = 64  # as many are added one after the other: what that loses is a few units
_SET: Final = 16  # of so many rows one is made
_NEAR: Final = 4096  # elements whose sums stay in the first cache
_add: Final[Any] = np.add
_multiply: Final[Any] = np.multiply
# what numbers of a type are added up in, where they cannot be cut
WIDE: Final = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


def sum_over(x: Array, axes: Any, keep: bool) -> Array:
    """The sum of floats or complex numbers over `axes` (None: all); see Note [Long sums]."""
    rank = x.ndim
    if axes is None:
        if x.flags.forc:  # one run of memory: added in pairs
            return _add.reduce(x, axis=None, keepdims=keep)
        summed = range(rank)
        n = x.size
    elif len(axes) == 1:
        d = axes[0]
        n = x.shape[d]
        if n <= FEW or ((d == -1 or d == rank - 1) and x.flags.c_contiguous):
            return _add.reduce(x, axis=axes, keepdims=keep)
        summed = range(d % rank, d % rank + 1)
    else:
        summed = [d % rank for d in axes]
        n = math.prod([x.shape[d] for d in summed])
    if n <= FEW:
        return _add.reduce(x, axis=axes, keepdims=keep)
    return _sum_cut(x, summed, keep)


def _sum_cut(x: Array, summed: Any, keep: bool) -> Array:
    """`sum_over`, with the axes taken in the order of memory, neighbours as one."""
    shape, steps = x.shape, x.strides
    order = _in_memory(steps)
    left = [d for d in order if d not in summed]
    times = 1
    index: list[Any] = [slice(None)] * x.ndim
    sizes: list[int] = []  # of the axes once neighbours are taken together
    gone: list[bool] = []  # which of those are summed over
    last = 0
    for d in order:
        n, step, away = shape[d], steps[d], d in summed
        if away and step == 0:
            times *= n
            index[d] = slice(0, 1)
            n = 1
        if n == 1:
            continue
        if sizes and gone[-1] == away and last == n * step:
            sizes[-1] *= n
        else:
            sizes.append(n)
            gone.append(away)
        last = step
    y = x[tuple(index)].transpose(order).reshape(sizes)
    for d in range(len(sizes) - 1, -1, -1):
        if gone[d]:
            y = _add.reduce(y, axis=d) if d == len(sizes) - 1 else _sum_rows(y, d)
    y = np.asarray(y * times if times != 1 else y)
    y = y.reshape([shape[d] for d in left])
    if len(left) > 1 and left != sorted(left):
        y = y.transpose(sorted(range(len(left)), key=lambda i: left[i]))
    if keep:
        y = y.reshape([1 if d in summed else n for d, n in enumerate(shape)])
    return y


def _in_memory(steps: tuple[int, ...]) -> list[int]:
    """Axes by their strides, widest first. One of stride 0 stands before that which follows it, as
    in NumPy's own order: the strides of a sum follow from it."""
    keys: list[int] = []
    for step in reversed(steps):
        keys.append(abs(step) or (keys[-1] if keys else 0))
    keys.reverse()
    return sorted(range(len(steps)), key=lambda d: -keys[d])


def _sum_rows(x: Array, d: int) -> Array:
    """The sum over axis `d`, which is not the one that lies closest in memory."""
    before, after = x.shape[:d], x.shape[d + 1 :]
    n, width = x.shape[d], math.prod(after)
    lead = (slice(None),) * d
    while n > FEW:
        side = -(-n // _SET)  # how many rows stay
        sets = 1
        if side * width > 2 * _NEAR:
            beside = max(_NEAR // width, 1)
            sets = side // beside
            side = beside
        rows = n // (sets * side)
        whole = sets * rows * side
        y = _add.reduce(
            x[(*lead, slice(0, whole))].reshape(*before, sets, rows, side, *after), axis=d + 1
        ).reshape(*before, sets * side, *after)
        if whole < n:  # fewer than stay
            y[(*lead, slice(0, n - whole))] += x[(*lead, slice(whole, n))]
        x, n = y, sets * side
    return _add.reduce(x, axis=d)


def multiply_over(x: Array, axes: Any, keep: bool) -> Array:
    """The product over `axes` (None: all), in the next wider type where that takes no longer.

    NumPy multiplies one after the other along the axis that lies closest in memory, and rows side
    by side along the others: there a wider type would take six times as long.
    """
    wide = WIDE.get(x.dtype) if x.size > FEW else None
    if wide is None or (axes is not None and x.shape[-1] > FEW and not _has_last(axes, x.ndim)):
        return _multiply.reduce(x, axis=axes, keepdims=keep)
    return _multiply.reduce(x, axis=axes, dtype=wide, keepdims=keep).astype(x.dtype)


def _has_last(axes: tuple[int, ...], rank: int) -> bool:
    return -1 in axes or rank - 1 in axes


def running_in_wide(ufunc: Any, x: Array, axis: int) -> Array:
    """Running sums or products along an axis, kept in the next wider type and rounded at the
    end; a few are as good as they are."""
    wide = WIDE.get(x.dtype)
    if wide is None or x.shape[axis] <= _SET:
        return ufunc.accumulate(x, axis, x.dtype)
    sums = x.astype(wide)
    ufunc.accumulate(sums, axis, wide, sums)
    return sums.astype(x.dtype)


def sum_by_place(values: Array, places: Array, count: int) -> Array:
    """`count` sums, out[places[i]] += values[i]; floats are added up in float64."""
    dtype = values.dtype
    if dtype.kind == "f":
        return np.bincount(places, values, count).astype(dtype, copy=False)
    if dtype.kind == "c":
        out = np.empty(count, dtype)
        out.real = np.bincount(places, values.real, count)
        out.imag = np.bincount(places, values.imag, count)
        return out
    out = np.zeros(count, dtype)
    _add.at(out, places, values)
    return out


def add_by_place(out: Array, values: Array, places: Array) -> None:
    """out[places[i]] += values[i], in float64 and rounded once."""
    if out.dtype.kind == "c":
        add_by_place(out.real, values.real, places)
        add_by_place(out.imag, values.imag, places)
    else:
        out[...] = np.bincount(places, values, out.size) + out
