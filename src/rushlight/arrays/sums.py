"""Sums of NumPy's arrays that stay accurate however long they are, over any axes and in any layout.

For `vocabulary` alone.

Note [Long sums]
    Adding n numbers one after the other loses up to n units in the last place, and a sum of ones in
    float32 stops at 2**24. NumPy adds in pairs along the axis that lies closest in memory, but one
    after the other along every other. So such an axis is cut here: n rows are seen as sets of 32
    that are added up, and their sums as rows again, until 64 are left; the error then grows as
    log n. A cut is a view, and the numbers that one step of NumPy's loop adds are those of many
    rows side by side: narrow arrays are summed fifty times as fast.
    Where an axis has stride 0 (a gradient that was broadcast) n equal rows are one, times n.
    Running sums and products cannot be cut: they are kept in the next wider type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

__all__ = [
    "FEW", "WIDE", "add_by_place", "multiply_over", "running_in_wide", "squared_deviations",
    "sum_by_place", "sum_over",
]  # fmt: skip

Array = Any

FEW: Final = 64  # as many are added one after the other: what that loses is a few units
_SET: Final = 32  # of so many rows one is made
_NEAR: Final = 1 << 13  # bytes of sums that stay in the first cache
_BATCH: Final = 16 * FEW
_PIECE: Final = 1 << 15  # elements that stay in the second cache, in float64
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
        if (d == 0 or d == -rank) and n <= _BATCH and n % 16 == 0 and x.flags.c_contiguous:
            # the gradient of a bias, as a rule: the way below in fewer steps
            sets = 4 if n <= 4 * FEW else 16
            y = _add.reduce(x.reshape(n // sets, sets, *x.shape[1:]), axis=0)
            return _add.reduce(y, axis=0, keepdims=keep)
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
    times, repeated = 1, False
    index: list[Any] = [slice(None)] * x.ndim
    sizes: list[int] = []  # of the axes once neighbours are taken together
    gone: list[bool] = []  # which of those are summed over
    last = 0
    for d in order:
        n, step, away = shape[d], steps[d], d in summed
        if step == 0 and n > 1:  # what is kept is repeated below
            times *= n if away else 1
            repeated = repeated or not away
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
    if repeated:
        y = y.reshape([1 if steps[d] == 0 else shape[d] for d in left])
        y = np.broadcast_to(y, [shape[d] for d in left]).copy()
    else:
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
    near = max(_NEAR // (width * x.itemsize), 1)  # rows
    lead = (slice(None),) * d
    while n > FEW:
        side = -(-n // _SET)  # how many rows stay
        sets = 1
        if side > 2 * near:
            sets, side = side // near, near
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
    if wide is None or x.shape[axis] <= 16:
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


def squared_deviations(x: Array, axes: Any, keep: bool) -> Array:
    """The sum over `axes` of the squared distances from the mean, in float64.

    In pieces that stay in the cache, since float64 takes twice the memory. The mean may be off by a
    rounding; what the distances themselves sum up to says by how much.
    """
    rank = x.ndim
    summed = tuple(range(rank)) if axes is None else tuple([d % rank for d in axes]) if rank else ()
    n = math.prod([x.shape[d] for d in summed])
    if n == 0:
        return _add.reduce(x.real, axis=summed, dtype=np.float64, keepdims=keep)
    wide = WIDE.get(x.dtype, x.dtype)
    mean = np.asarray(sum_over(x, summed, True)).astype(wide) / n
    if wide != x.dtype and not np.isfinite(mean).all():  # their sum is too large, if not they
        mean = sum_over(x.astype(wide), summed, True) / n
    if x.size <= _PIECE:
        sums, off = _squared_distances(x, mean, summed)
    else:
        sums, off = np.zeros(mean.shape), np.zeros(mean.shape, wide)
        for index in _pieces(x.shape, _in_memory(x.strides)):
            there = tuple([slice(None) if d in summed else at for d, at in enumerate(index)])
            more = _squared_distances(x[index], mean[there], summed)
            sums[there] += more[0]
            off[there] += more[1]
    sums = np.maximum(sums - (off.real * off.real + off.imag * off.imag) / n, 0)
    return sums if keep else sums.reshape([m for d, m in enumerate(x.shape) if d not in summed])


def _squared_distances(x: Array, mean: Array, summed: tuple[int, ...]) -> tuple[Array, Array]:
    """The sums of the squared distances from `mean`, and of the distances."""
    d = x - mean
    off = sum_over(d, summed, True)
    if d.dtype.kind == "c":
        return sum_over(d.real * d.real + d.imag * d.imag, summed, True), off
    return sum_over(_multiply(d, d, d if d.ndim else None), summed, True), off


def _pieces(shape: tuple[int, ...], order: list[int]) -> Iterator[tuple[slice, ...]]:
    """An array in pieces of `_PIECE` elements at most, cut along the widest strides."""
    index = [slice(0, n) for n in shape]

    def cut(at: int, size: int) -> Iterator[tuple[slice, ...]]:
        if size <= _PIECE or at == len(order):
            yield tuple(index)
            return
        d = order[at]
        n = shape[d]
        step = max(_PIECE * n // size, 1)
        for start in range(0, n, step):
            index[d] = slice(start, min(start + step, n))
            yield from cut(at + 1, size // n * step)
        index[d] = slice(0, n)

    return cut(0, math.prod(shape))
