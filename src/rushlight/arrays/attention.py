"""Attention on raw arrays: the words `attend` and `attend_back`. `ops.attention` uses them.

Note [Blocks of attention]
    The weights of all queries and keys are a large array, and made of others as large. NumPy would
    write each of these to memory and read it back. So the leading axes, and long sequences of
    queries, are taken in blocks whose weights stay in the cache; backward computes the weights
    anew, from their logarithmic sums, which are kept instead. Other kinds of array take all at
    once. Where there are kernels, what is done with the weights of a block is one pass in C, and
    without a mask all of it is: see the notes in `codegen.attention`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import insert_axes, members, rule, with_batch, wrap_result
from rushlight.arrays.vocabulary import Array, low_precision, primitive

_BLOCK: Final = 1 << 16  # weights of a block
_INF: Final = float("inf")


@primitive
def attend(
    q: Array, k: Array, value: Array, mask: Array, scale: float, causal: bool
) -> tuple[Array, Array]:
    """softmax(scale · q kᵀ + mask) · value over the last two axes, and the logarithms of the sums
    of exponentials (with a last axis of size 1). The leading axes of q, k and value are the same.

    A mask of booleans says who may be seen; numbers are added; None is no mask. A query that sees
    nothing gives 0.
    """
    if low_precision(q.dtype):
        a, b, c = (x.astype(np.float32) for x in (q, k, value))
        y, sums = attend(a, b, c, mask, scale, causal)
        return y.astype(q.dtype), sums
    out = _empty_for(q, value.shape[-1])
    sums = np.empty_like(q, shape=(*q.shape[:-1], 1), order="C")
    if mask is None and kernels.attention_forward(q, k, value, out, sums, scale, causal):
        return out, sums
    bias = _bias(mask, q)
    hides = bias is not None or k.shape[-2] == 0  # some query may see nothing
    room = _room(q, k)
    for part in _blocks(q, k):
        s, total = _weights(q, k, bias, scale, causal, part, room, sums[part], hides)
        y = np.matmul(s, value[part[:-1]], out=out[part])
        if total is not None:
            y /= total
    return out, sums


@primitive
def attend_back(
    g: Array, gsums: Array, q: Array, k: Array, value: Array, mask: Array, y: Array, sums: Array,
    scale: float, causal: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The gradients of q, k and value, from those of both results of `attend`."""
    if low_precision(q.dtype):
        h, a, b, c, out = (x.astype(np.float32) for x in (g, q, k, value, y))
        gq, gk, gv = attend_back(h, gsums, a, b, c, mask, out, sums, scale, causal)
        return gq.astype(q.dtype), gk.astype(q.dtype), gv.astype(q.dtype)
    gq, gk, gv = [_empty_for(x, x.shape[-1]) for x in (q, k, value)]
    gsums = np.broadcast_to(gsums, sums.shape)
    plain = type(q) is np.ndarray
    if plain and mask is None and kernels.attention_backward(
        q, k, value, _in_lines(g), gq, gk, gv, np.ascontiguousarray(sums),
        np.ascontiguousarray(gsums), scale, causal,
    ):  # fmt: skip
        return gq, gk, gv
    bias = _bias(mask, q)
    room, more = _room(q, k), _room(q, k)
    for part in _blocks(q, k):
        lead, first = part[:-1], part[-1].start in (None, 0)
        p, factor = _scores(q, k, bias, scale, part, room)
        here = g[part]
        d = _multiply(here, v.turned(value[lead]), more)
        start = part[-1].start or 0
        done = plain and kernels.attention_gradients(
            p, d, np.ascontiguousarray(sums[part]), np.ascontiguousarray(gsums[part]), factor,
            scale, start, causal,
        )  # fmt: skip
        if not done:
            p *= factor
            if causal:
                p += _later(p, start)
            p -= sums[part]
            np.exp(p, out=p)
            d -= (here * y[part]).sum(-1, keepdims=True) - gsums[part]
            d *= p
            d *= scale
        _add_product(gv, lead, v.turned(p), here, first)
        _add_product(gk, lead, v.turned(d), q[part], first)
        np.matmul(d, k[lead], out=gq[part])
    return gq, gk, gv


def _in_lines(g: Array) -> Array:
    """A gradient whose last axis lies in one piece: that of a sum is one number everywhere."""
    return g if g.strides[-1] == g.itemsize else np.ascontiguousarray(g)


def _largest(s: Array) -> Array:
    """The largest along the last axis."""
    if s.shape[-1] == 0:
        return np.zeros_like(s, shape=(*s.shape[:-1], 1))
    return s.max(-1, keepdims=True)


def _add_product(total: Array, lead: Any, a: Array, b: Array, first: bool) -> None:
    """The first block of queries sets the gradient of keys and values, the others add to it."""
    if first:
        np.matmul(a, b, out=total[lead])
    else:
        total[lead] += np.matmul(a, b)


def _room(q: Array, k: Array) -> Array:
    """Memory for the weights of one block after the other; None where there are no blocks."""
    if type(q) is not np.ndarray:
        return None
    count = q.size // max(q.shape[-1], 1) * k.shape[-2]
    return np.empty(min(count, max(_BLOCK, k.shape[-2])), q.dtype)


def _multiply(a: Array, b: Array, room: Array) -> Array:
    if room is None:
        return np.matmul(a, b)
    shape = (*a.shape[:-1], b.shape[-1])
    return np.matmul(a, b, out=room[: math.prod(shape)].reshape(shape))


def _empty_for(x: Array, width: int) -> Array:
    """Room for a result that lies in memory as `x` does."""
    if type(x) is not np.ndarray or width != x.shape[-1] or 0 in x.strides:
        return np.empty_like(x, shape=(*x.shape[:-1], width), order="C")
    return np.empty_like(x)


def _bias(mask: Array, q: Array) -> Array:
    """A mask as numbers to be added."""
    if mask is None:
        return None
    if mask.dtype.kind == "b":
        mask = np.where(mask, 0.0, -_INF)
    return mask.astype(q.dtype, copy=False)


def _blocks(q: Array, k: Array) -> Iterator[tuple[slice, ...]]:
    """Slices of all axes of `q` but the last; see Note [Blocks of attention]."""
    *lead, rows, _ = q.shape
    columns = k.shape[-2]
    whole = tuple([slice(None)] * len(lead))
    if type(q) is not np.ndarray or q.size // max(q.shape[-1], 1) * columns <= _BLOCK:
        yield (*whole, slice(None))
        return
    sizes = [*lead, rows]
    each = columns  # weights of one index of the axis looked at
    at = len(sizes) - 1
    while at > 0 and each * sizes[at] <= _BLOCK:
        each *= sizes[at]
        at -= 1
    step = max(_BLOCK // each, 1)
    behind = tuple([slice(None)] * (len(sizes) - 1 - at))
    for front in np.ndindex(*sizes[:at]):
        fixed = tuple([slice(i, i + 1) for i in front])
        for start in range(0, sizes[at], step):
            yield (*fixed, slice(start, start + step), *behind)


def _scores(
    q: Array, k: Array, bias: Array, scale: float, part: tuple[slice, ...], room: Array
) -> tuple[Array, float]:
    """scale · q kᵀ + mask of a block of queries, to be written into, but for a factor."""
    s = _multiply(q[part], v.turned(k[part[:-1]]), room)
    if bias is None:
        return s, scale
    s *= scale
    s += _cut(bias, part, q.ndim)
    return s, 1.0


def _weights(
    q: Array, k: Array, bias: Array, scale: float, causal: bool, part: tuple[slice, ...],
    room: Array, sums: Array, hides: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """The weights of a block of queries, and what they are still to be divided by, if anything;
    the logarithms of their sums are written to `sums`."""
    s, factor = _scores(q, k, bias, scale, part, room)
    start = part[-1].start or 0
    if kernels.attention_weights(s, sums, factor, start, causal, hides):
        return s, None
    s *= factor
    if causal:
        s += _later(s, start)
    top = _largest(s)
    if hides:
        top = np.where(top == -_INF, 0, top)
    s -= top
    np.exp(s, out=s)
    total = s.sum(-1, keepdims=True)
    if hides:
        total = np.where(total == 0, 1, total)
    sums[...] = np.log(total) + top
    return s, total


def _later(s: Array, start: int) -> Array:
    """-infinity for keys behind the query's own place; the first query is number `start`."""
    rows, columns = s.shape[-2:]
    if type(s) is np.ndarray and rows * columns <= _BLOCK:
        return _later_kept(rows, columns, start, s.dtype)
    place = v.iota(s, rows, np.int64) + start
    hidden = place[:, None] < v.iota(s, columns, np.int64)
    return np.where(hidden, -_INF, 0.0).astype(s.dtype)


@functools.lru_cache(maxsize=16)
def _later_kept(rows: int, columns: int, start: int, dtype: Any) -> Array:
    hidden = np.arange(start, start + rows)[:, None] < np.arange(columns)
    return np.where(hidden, -_INF, 0.0).astype(dtype)


def _cut(bias: Array, part: tuple[slice, ...], rank: int) -> Array:
    """The part of a mask, which broadcasts, that a block sees."""
    short = rank - bias.ndim
    return bias[tuple([slice(None) if n == 1 else s for n, s in zip(bias.shape, part[short:])])]


# --- batches --------------------------------------------------------------------------------------
def _in_front(xs: tuple[Any, ...], mask: Any, level: Any) -> tuple[list[Any], Any]:
    """Arrays with the batch as one more leading axis; a mask with it in its place."""
    inside = [with_batch(x, level) for x in xs]
    if mask is None:
        return inside, None
    own, has_batch_dim = members(mask, level)
    if has_batch_dim:
        own = insert_axes(own, xs[0].ndim - mask.ndim)
    return inside, own


@rule
def _attend(primitive: Any, level: Any, *args: Any) -> Any:
    inside, mask = _in_front(args[:3], args[3], level)
    return wrap_result(primitive(*inside, mask, *args[4:]), level, True)


@rule
def _attend_back(primitive: Any, level: Any, *args: Any) -> Any:
    inside, mask = _in_front((*args[:5], *args[6:8]), args[5], level)
    return wrap_result(primitive(*inside[:5], mask, *inside[5:], *args[8:]), level, True)
