"""Sums of NumPy's arrays that stay accurate however long they are, over any axes and in any layout.

For `vocabulary` alone.

Note [Long sums]
    Adding n numbers one after the other loses up to n units in the last place, and a sum of ones in
    float32 stops at 2**24. NumPy adds in pairs along the axis that lies closest in memory, but one
    after the other along every other. So such an axis is cut here: its n rows are seen as sets of
    16 to 64 that are added up, and their sums as rows again, until so few are left. The error then
    grows as log n. A cut is a view, and one step of NumPy's loop adds many rows side by side:
    narrow arrays are summed fifty times as fast.
    Where an axis has stride 0 (a gradient that was broadcast) n equal rows are one, times n.
    Running sums and products cannot be cut: they are kept in the next wider type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

Array = Any

FEW: Final = 64  # as many are added one after the other: what that loses is a few units
_SET: Final = 16  # of so many rows one is made
_NEAR: Final = 1 << 13  # bytes of sums that stay in the first cache
_NARROW: Final = 8
_LITTLE: Final = 4096  # elements of which the cost of a call counts more than theirs
_TINY: Final = 1e-30  # squares below are about to leave the range of float32
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
    summed: Sequence[int]
    if axes is None:
        if x.flags.forc:  # one run of memory: added in pairs
            return _add.reduce(x, axis=None, keepdims=keep)
        summed = range(rank)
        n = x.size
    elif len(axes) == 1:
        d = axes[0]
        n = x.shape[d]
        if (d == -1 or d == rank - 1) and x.flags.c_contiguous:
            if 1 < n <= _NARROW and x.size > _LITTLE:
                return _sum_columns(x, keep)
            return _add.reduce(x, axis=axes, keepdims=keep)
        if n <= FEW:
            return _add.reduce(x, axis=axes, keepdims=keep)
        if (
            (d == 0 or d == -rank)
            and n <= 2 * _SET * _SET
            and x.nbytes * _SET <= 8 * _NEAR * n
            and x.flags.c_contiguous
        ):  # the gradient of a bias, as a rule: the way below in fewer steps
            rest = n % _SET
            whole = x[: n - rest] if rest else x
            y = _add.reduce(whole.reshape(n // _SET, _SET, *x.shape[1:]), axis=0)
            if rest:
                y[:rest] += x[n - rest :]
            return _add.reduce(y, axis=0, keepdims=keep)
        summed = range(d % rank, d % rank + 1)
    else:
        summed = [d % rank for d in axes]
        n = math.prod([x.shape[d] for d in summed])
    if n <= FEW or (x.flags.c_contiguous and min(summed) == rank - len(summed)):
        return _add.reduce(x, axis=axes, keepdims=keep)
    return _sum_cut(x, summed, keep)


def _sum_columns(x: Array, keep: bool) -> Array:
    """The sum over a last axis of a few: NumPy would start its loop anew for each result."""
    y = x[..., 0] + x[..., 1]
    for i in range(2, x.shape[-1]):
        y += x[..., i]
    return y[..., None] if keep else y


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
    """Axes by their strides, widest first. One of stride 0 is before that which follows it, as
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
    many = _SET if near > 8 else 2 * _SET if near > 2 else FEW  # sums of wide rows take room
    while n > many:
        side = -(-n // many)  # how many rows stay
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
    rank = x.ndim
    last = axes is None or -1 in axes or rank - 1 in axes
    wide = WIDE.get(x.dtype) if x.size > 4 * FEW and (last or x.shape[-1] <= FEW) else None
    if wide is None:
        return _multiply.reduce(x, axis=axes, keepdims=keep)
    if last and (axes is None or len(axes) == 1) and x.flags.c_contiguous:
        lead = () if axes is None else x.shape[:-1]
        n = x.size if axes is None else x.shape[-1]
        if n >= 1024:  # a run of memory as rows, to be multiplied side by side
            flat = x.reshape(*lead, n)
            rest = n % 256
            y = _multiply.reduce(
                flat[..., : n - rest].reshape(*lead, n // 256, 256), axis=-2, dtype=wide
            )
            y[..., :rest] *= flat[..., n - rest :]
            y = np.asarray(_multiply.reduce(y, axis=-1)).astype(x.dtype)
            return y.reshape([*lead, *[1] * (rank - len(lead))]) if keep else y
    return _multiply.reduce(x, axis=axes, dtype=wide, keepdims=keep).astype(x.dtype)


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
    """`count` sums, out[places[i]] += values[i]. Floats are added up in float64, and where many go
    to one place as several sums."""
    kind = values.dtype.kind
    if kind not in "fc":
        out = np.zeros(count, values.dtype)
        _add.at(out, places, values)
        return out
    places, turns = in_turns(places, count)
    if kind == "c":
        out = np.empty(turns * count, np.complex128)
        out.real = np.bincount(places, values.real, turns * count)
        out.imag = np.bincount(places, values.imag, turns * count)
    else:
        out = np.bincount(places, values, turns * count)
    if turns > 1:
        out = sum_over(out.reshape(turns, count), (0,), False)
    return out.astype(values.dtype, copy=False)


def in_turns(places: Array, count: int) -> tuple[Array, int]:
    """Places for several sums in place of one, and how many: each adds up some 32 numbers.

    They come one after the other, sum number t of place p at t * count + p.
    """
    n = len(places)
    turns = n // max(32 * count, 1)
    if turns < 8:
        return places, 1
    return places + np.repeat(np.arange(turns) * count, -(-n // turns))[:n], turns


def add_by_place(out: Array, values: Array, places: Array) -> None:
    """out[places[i]] += values[i], in float64 and rounded once."""
    if out.dtype.kind == "c":
        add_by_place(out.real, values.real, places)
        add_by_place(out.imag, values.imag, places)
    else:
        out[...] = np.bincount(places, values, out.size) + out


def squared_deviations(x: Array, axes: Any, keep: bool) -> Array:
    """The sum over `axes` of the squared distances from the mean, as good as if in float64.

    Much of float32 stays in it, as long as the squares do: float64 would take three times as long.
    There the mean is off by a rounding; what the distances sum up to says by how much.
    """
    n = x.size if axes is None else math.prod([x.shape[d] for d in axes])
    if n == 0:
        return _add.reduce(x.real, axis=axes, dtype=np.float64, keepdims=keep)
    wide = WIDE.get(x.dtype)
    if wide is None:
        return _sum_squares(x - sum_over(x, axes, True) / n, axes, keep)
    if x.size > _LITTLE:
        d = x - sum_over(x, axes, True) / n
        off = _magnitudes(sum_over(d, axes, keep))
        off /= n
        sums = np.subtract(_sum_squares(d, axes, keep), off, off)
        if _TINY * n < sums.max(initial=0) < np.inf and -np.inf < sums.min(initial=0):
            return np.maximum(sums, 0, out=sums)
    x = x.astype(wide)
    return _sum_squares(x - sum_over(x, axes, True) / n, axes, keep)


def _sum_squares(d: Array, axes: Any, keep: bool) -> Array:
    """The sum of the squared magnitudes of what is nobody else's."""
    return sum_over(_magnitudes(d), axes, keep)


def _magnitudes(d: Array) -> Array:
    """Squared magnitudes, written over what they were made of where they fit."""
    d = np.asarray(d)
    if d.dtype.kind != "c":
        return _multiply(d, d, d)
    squares = np.asarray(d.real * d.real)
    squares += d.imag * d.imag
    return squares
