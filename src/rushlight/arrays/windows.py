"""Primitives over sliding windows: convolution, pooling, patches, resampling.

Part of the vocabulary, imported with the ops that use it (`ops/conv`, `ops/pooling`, `ops/vision`);
what they mean on batches stands in `batch_windows`. Windows slide over the last axes, one number
an axis in each of `stride`, `padding` and `dilation`: place `o` of a result sees, through tap `k`,
place `o·stride + k·dilation - padding` of the input. What lies outside of the input is 0 to sums,
and not there to a maximum.

Note [Convolution in products]
    Windows are copied out as the columns of a matrix (a view by strides is read, so this is one
    copy), and one product does the rest. Samples are taken in lots whose columns stay in the
    processor's cache: the memory needed is that of a lot, whatever the batch. Where each channel
    has its own kernel, products would be tiny: there taps are multiplied and added.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np

from rushlight.arrays.kernels import correlate, correlate_weight
from rushlight.arrays.vocabulary import (
    Array,
    _through,
    _wide,
    maximum,
    primitive,
    reduce_sum,
)

Ints = tuple[int, ...]
_LOT: Final = 1 << 19  # bytes of columns at a time: half of a usual second-level cache
_LOT_DEVICE: Final = 1 << 28  # on a GPU large products are all that counts
_WIDE: Final = 256  # columns that a product should have at least
_WASTE: Final = 1.3  # how much longer rows may become that are padded to one width
_FEW: Final = 4  # channels a group that are multiplied tap by tap
_PLACES: Final = 48  # results a sample and channel: with fewer, samples are put together


def out_size(n: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many windows fit along an axis of `n` places."""
    return (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _zeros(like: Array, shape: Ints, dtype: Any = None) -> Array:
    return np.zeros_like(like, shape=shape, order="C", dtype=dtype)


def _room(like: Array, shape: Ints) -> Array:
    return np.empty_like(like, shape=shape, order="C")


def _narrow(y: Array, dtype: Any) -> Array:
    return y if y.dtype == dtype else y.astype(dtype)


# --- one axis: where a tap's places are inside ----------------------------------------------------
def _seen(n: int, out: int, tap: int, stride: int, padding: int) -> tuple[slice, slice] | None:
    """Which results see a place inside through a tap (`tap` = k·dilation), and which places."""
    shift = tap - padding
    first = max(0, -(shift // stride))
    last = min(out - 1, (n - 1 - shift) // stride)
    if last < first:
        return None
    start = first * stride + shift
    return slice(first, last + 1), slice(start, start + (last - first) * stride + 1, stride)


def _taps(
    sizes: Ints, outs: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Iterator[tuple[Ints, Any, Any]]:
    """Each tap of a window: its number an axis, the results that see a place inside through it,
    and these places."""
    along = [
        [_seen(n, o, k * d, s, p) for k in range(size)]
        for n, o, size, s, p, d in zip(sizes, outs, kernel, stride, padding, dilation, strict=True)
    ]
    for tap in itertools.product(*[range(k) for k in kernel]):
        found = [along[d][k] for d, k in enumerate(tap)]
        if all(pair is not None for pair in found):
            results, places = zip(*[p for p in found if p is not None], strict=True)
            yield tap, (..., *results), (..., *places)


# --- convolution: see Note [Convolution in products] ----------------------------------------------
def _edged(x: Array, padding: Ints) -> Array:
    """Zeros around the last axes."""
    if not any(padding):
        return x
    n = len(padding)
    sizes = [s + 2 * p for s, p in zip(x.shape[-n:], padding, strict=True)]
    out = _room(x, (*x.shape[:-n], *sizes))
    for d, p in enumerate(padding):  # the edges alone: zeros everywhere are written twice
        out[_at(d - n, slice(0, p))] = 0
        out[_at(d - n, slice(sizes[d] - p, sizes[d]))] = 0
    out[(..., *[slice(p, p + s) for s, p in zip(x.shape[-n:], padding, strict=True)])] = x
    return out


def _windows(x: Array, kernel: Ints, outs: Ints, stride: Ints, dilation: Ints) -> Array:
    """A view of [*lead, *kernel, *outs]: for each tap, what the results see through it."""
    n = len(kernel)
    steps = x.strides[-n:]
    taps = [s * d for s, d in zip(steps, dilation, strict=True)]
    moves = [s * m for s, m in zip(steps, stride, strict=True)]
    return _through(x, (*x.shape[:-n], *kernel, *outs), (*x.strides[:-n], *taps, *moves), 0)


def _lots(x: Array, rows: int, places: int) -> Iterator[tuple[int, int]]:
    """The batch cut into lots of samples: for columns of `rows` elements, `places` a sample."""
    count: int = x.shape[0]
    host = type(x) is np.ndarray
    each = max(rows * places * x.dtype.itemsize, 1)
    lot = max((_LOT if host else _LOT_DEVICE) // each, -(-_WIDE // max(places, 1)), 1)
    for first in range(0, count, lot):
        yield first, min(first + lot, count)


def _lies_bare(kernel: Ints, stride: Ints, padding: Ints) -> bool:
    """Whether windows are single places, all of them, in order: the columns are the input."""
    return math.prod(kernel) == 1 and math.prod(stride) == 1 and not any(padding)


class _Columns:
    """The columns of an input, lot by lot: matrices of [groups, channels·taps, samples·places]."""

    def __init__(
        self, x: Array, kernel: Ints, outs: Ints, stride: Ints, padding: Ints, dilation: Ints,
        groups: int,
    ) -> None:  # fmt: skip
        self.bare = _lies_bare(kernel, stride, padding) and x.flags.c_contiguous
        self.seen = x if self.bare else _windows(
            _edged(x, padding), kernel, outs, stride, dilation
        )  # fmt: skip
        self.channels: int = x.shape[1]
        self.rows = self.channels // groups * math.prod(kernel)
        self.places = math.prod(outs)
        self.groups = groups
        self.taps = 0 if self.bare else len(kernel)  # axes of them
        self.memory: Any = None

    def lots(self) -> Iterator[tuple[int, int]]:
        return _lots(self.seen, self.rows * self.groups, self.places)

    def of(self, first: int, last: int) -> Array:
        count = last - first
        seen = self.seen[first:last]
        shape = (self.groups, self.rows, count * self.places)
        if self.bare and count == 1:
            return seen.reshape(shape)
        turned = seen.transpose(1, *range(2, 2 + self.taps), 0, *range(2 + self.taps, seen.ndim))
        if self.memory is None or self.memory.shape != turned.shape:
            self.memory = _room(self.seen, turned.shape)
        self.memory[...] = turned
        return self.memory.reshape(shape)


def _as_rows(g: Array, first: int, last: int, groups: int) -> Array:
    """Samples of [N, O, *places] as matrices of [groups, O/groups, samples·places]."""
    part = g[first:last]
    shape = (groups, g.shape[1] // groups, (last - first) * math.prod(g.shape[2:]))
    if last - first == 1:
        return part.reshape(shape)
    return part.swapaxes(0, 1).reshape(shape)


def _products(a: Array, b: Array, out: Array | None = None) -> Array:
    """Products of matrices, group by group; `dot` for a single group of NumPy's."""
    if a.shape[0] > 1 or type(a) is not np.ndarray:
        found = np.matmul(a, b)
        if out is None:
            return found
        out[...] = found
        return out
    if out is None:
        return a[0].dot(b[0])[None]
    np.dot(a[0], b[0], out=out[0])
    return out


def _by_taps(x: Array, w: Array, groups: int) -> bool:
    """Whether a convolution of few channels a group is done by taps."""
    return groups > 1 and w.shape[1] == 1 and w.shape[0] // groups <= _FEW


@primitive
def convolve(
    x: Array, w: Array, b: Array | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """Convolution (the kernel is not turned round) of [N, C, *sizes] with [O, C/groups, *kernel],
    plus `b` a channel."""
    dtype = x.dtype
    x, w = _wide(x), _wide(w)
    kernel = w.shape[2:]
    outs = tuple(map(out_size, x.shape[2:], kernel, stride, padding, dilation))
    count, channels = x.shape[0], w.shape[0]
    if _shifts(x, w, outs, stride, padding, groups):
        rows = b if b is None else np.ascontiguousarray(_wide(b))
        quick = correlate(
            np.ascontiguousarray(x), np.ascontiguousarray(w), rows, padding, padding, dilation
        )
        if quick is not None:
            return _narrow(quick, dtype)
    if b is not None:
        b = _wide(b).reshape(-1, *(1,) * len(kernel))
    if _by_taps(x, w, groups):
        y = _convolve_taps(x, w, outs, stride, padding, dilation, groups)
        if b is not None:
            y += b
        return _narrow(y, dtype)
    y = _room(x, (count, channels, *outs))
    factor = w.reshape(groups, channels // groups, -1)
    columns = _Columns(x, kernel, outs, stride, padding, dilation, groups)
    for first, last in columns.lots():
        part = y[first:last]
        if last - first == 1:
            shape = (groups, channels // groups, columns.places)
            _products(factor, columns.of(first, last), part.reshape(shape))
        else:
            found = _products(factor, columns.of(first, last))
            part[...] = found.reshape(channels, last - first, *outs).swapaxes(0, 1)
        if b is not None:
            part += b
    return _narrow(y, dtype)


def _shifts(x: Array, w: Array, outs: Ints, stride: Ints, padding: Ints, groups: int) -> bool:
    """Whether to try Note [Shifted products] in `codegen.products`. Windows of one place are plain
    products, and few places are best taken from many samples at a time."""
    return (
        groups == 1
        and max(stride) == 1
        and math.prod(outs) >= _PLACES
        and type(x) is np.ndarray
        and type(w) is np.ndarray
        and not _lies_bare(w.shape[2:], stride, padding)
    )


def _input_shifted(g: Array, w: Array, sizes: Ints, padding: Ints, dilation: Ints) -> Array:
    """The adjoint of a convolution that moves by 1 is one too: of the gradient with zeros around,
    with the kernel turned round."""
    axes = tuple(range(2, w.ndim))
    turned = np.ascontiguousarray(np.flip(w, axes).swapaxes(0, 1))
    before = tuple(
        [d * (k - 1) - p for d, k, p in zip(dilation, w.shape[2:], padding, strict=True)]
    )
    after = tuple(
        [
            n + d * (k - 1) - o - b
            for n, o, b, d, k in zip(sizes, g.shape[2:], before, dilation, w.shape[2:], strict=True)
        ]
    )
    return correlate(np.ascontiguousarray(g), turned, None, before, after, dilation)


def _parted(x: Array, groups: int) -> Array:
    """[N, groups·m, *sizes] as [N, groups, m, *sizes]."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def _tap_weights(w: Array, tap: Ints, groups: int) -> Array:
    """The weights of one tap of [groups·m, 1, *kernel], as [groups, m, 1, …]."""
    one = w[(slice(None), 0, *tap)]
    return one.reshape(groups, -1, *(1,) * len(tap))


def _convolve_taps(
    x: Array, w: Array, outs: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    m = w.shape[0] // groups
    y = _zeros(x, (x.shape[0], groups, m, *outs))
    x = _parted(x, groups)
    kernel = w.shape[2:]
    room: Any = None
    for first, last in _lots(x, groups * m, math.prod(outs)):
        part, given = y[first:last], x[first:last]
        for tap, results, places in _taps(x.shape[3:], outs, kernel, stride, padding, dilation):
            seen = part[results]
            if room is None or room.shape != seen.shape:
                room = _room(x, seen.shape)
            seen += np.multiply(given[places], _tap_weights(w, tap, groups), out=room)
    return y.reshape(x.shape[0], groups * m, *outs)


@primitive
def convolve_input(
    g: Array, w: Array, b: Array | None, sizes: Ints, stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> Array:  # fmt: skip
    """The adjoint of `convolve` in its input, of `sizes`: each place of [N, O, *outs] goes back to
    the window that it saw. With `b`, a transposed convolution."""
    dtype = g.dtype
    g, w = _wide(g), _wide(w)
    count, channels = g.shape[0], w.shape[1] * groups
    x: Any
    if _by_taps(g, w, groups):
        x = _zeros(g, (count, channels, *sizes))
        x = _input_taps(x, _parted(g, groups), w, stride, padding, dilation, groups)
    else:
        x = None
        if _shifts(g, w, sizes, stride, padding, groups):
            x = _input_shifted(g, w, sizes, padding, dilation)
        if x is None:
            x = _input_products(g, w, sizes, stride, padding, dilation, groups)
    if b is not None:
        x += _wide(b).reshape(-1, *(1,) * len(w.shape[2:]))
    return _narrow(x, dtype)


def _input_products(
    g: Array, w: Array, sizes: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """`convolve_input` by Note [Convolution in products]."""
    kernel, outs = w.shape[2:], g.shape[2:]
    count, channels = g.shape[0], w.shape[1] * groups
    factor = w.reshape(groups, w.shape[0] // groups, -1).swapaxes(1, 2)
    if _lies_bare(kernel, stride, padding) and sizes == outs:
        rows = g.reshape(count, groups, g.shape[1] // groups, math.prod(outs))
        return np.matmul(factor, rows).reshape(count, channels, *sizes)
    windows = kernel, stride, padding, dilation
    edged = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
    waste = math.prod(edged[1:]) / max(math.prod(outs[1:]), 1)
    flat = max(stride) == 1 and waste < _WASTE
    lay = _input_flat if flat else _input_slices
    return lay(g, factor, (channels, *sizes), windows, groups)


def _input_slices(g: Array, factor: Array, shape: Ints, windows: Any, groups: int) -> Array:
    """Columns of gradients, added tap by tap where they came from."""
    outs, kernel = g.shape[2:], windows[0]
    x = _zeros(g, (g.shape[0], *shape))
    taps = list(_taps(shape[1:], outs, *windows))
    memory: Any = None
    for first, last in _lots(g, shape[0] * math.prod(kernel), math.prod(outs)):
        rows = _as_rows(g, first, last, groups)
        room = (groups, factor.shape[1], rows.shape[2])
        if memory is None or memory.shape != room:
            memory = _room(g, room)
        _products(factor, rows, memory)
        columns = memory.reshape(shape[0], *kernel, last - first, *outs)
        part = x[first:last].swapaxes(0, 1)
        for tap, results, places in taps:
            part[places] += columns[(slice(None), *tap)][results]
    return x


def _input_flat(g: Array, factor: Array, shape: Ints, windows: Any, groups: int) -> Array:
    """The same for windows that move by 1. Gradients are laid out in rows as wide as the padded
    input: then a tap is one shift of all of them, and what is added are long rows."""
    outs, (kernel, _, padding, dilation) = g.shape[2:], windows
    channels, sizes = shape[0], shape[1:]
    wide = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
    steps = [math.prod(wide[d + 1 :]) for d in range(len(wide))]
    length = outs[0] * steps[0]
    shifts = [
        sum(k * d * s for k, d, s in zip(tap, dilation, steps, strict=True))
        for tap in itertools.product(*[range(k) for k in kernel])
    ]
    x = _room(g, (g.shape[0], *shape))
    middle = tuple([slice(p, p + n) for n, p in zip(sizes, padding, strict=True)])
    inside = tuple([slice(0, n) for n in outs])
    memory: Any = None
    for first, last in _lots(g, channels * math.prod(kernel), length):
        many = last - first
        if memory is None or memory.shape[2] != many * length:
            memory = _room(g, (groups, factor.shape[1], many * length))
            rows = _zeros(g, (g.shape[1], many, outs[0], *wide[1:]))
            sums = _room(g, (channels, many, max(max(shifts) + length, math.prod(wide))))
        rows[(..., *inside)] = g[first:last].swapaxes(0, 1)
        _products(factor, rows.reshape(groups, -1, many * length), memory)
        columns = memory.reshape(channels, len(shifts), many, length)
        sums[...] = 0
        for tap, shift in enumerate(shifts):
            sums[..., shift : shift + length] += columns[:, tap]
        found = sums[..., : math.prod(wide)].reshape(channels, many, *wide)
        x[first:last] = found[(..., *middle)].swapaxes(0, 1)
    return x


def _input_taps(
    x: Array, g: Array, w: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    outs, kernel = g.shape[3:], w.shape[2:]
    one = g.shape[2] == 1
    for first, last in _lots(g, g.shape[1] * g.shape[2], math.prod(outs)):
        part, given = x[first:last], g[first:last]
        for tap, results, places in _taps(x.shape[2:], outs, kernel, stride, padding, dilation):
            found = given[results] * _tap_weights(w, tap, groups)
            part[places] += found[:, :, 0] if one else found.sum(2)
    return x


@primitive
def convolve_weight(
    g: Array, x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """The adjoint of `convolve` in its weight, of `kernel`: what [N, O, *outs] and the windows of
    [N, C, *sizes] have in common, summed over samples and places."""
    dtype = x.dtype
    g, x = _wide(g), _wide(x)
    outs = g.shape[2:]
    width = x.shape[1] // groups
    shape = (g.shape[1], width, *kernel)
    w = _zeros(x, shape)
    if g.size == 0 or x.size == 0:
        return _narrow(w, dtype)
    if _shifts(x, w, outs, stride, padding, groups) and type(g) is np.ndarray:
        after = tuple(
            [
                o + d * (k - 1) - n - p
                for o, d, k, n, p in zip(outs, dilation, kernel, x.shape[2:], padding, strict=True)
            ]
        )
        g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
        quick = correlate_weight(g, x, kernel, padding, after, dilation)
        if quick is not None:
            return _narrow(quick, dtype)
    if _by_taps(x, w, groups):
        given, seen = _parted(g, groups), _parted(x, groups)
        axes = (0, *range(3, given.ndim))
        for tap, results, places in _taps(x.shape[2:], outs, kernel, stride, padding, dilation):
            found = reduce_sum(given[results] * seen[places], axes, False)
            w[(slice(None), 0, *tap)] = found.reshape(-1)
        return _narrow(w, dtype)
    columns = _Columns(x, kernel, outs, stride, padding, dilation, groups)
    total: Any = None  # transposed: with the columns to the left BLAS takes two thirds of the time
    for first, last in columns.lots():
        rows = _as_rows(g, first, last, groups)
        part = _products(columns.of(first, last), rows.swapaxes(1, 2))
        total = part if total is None else total + part
    return _narrow(total.swapaxes(1, 2).reshape(shape), dtype)


# --- patches --------------------------------------------------------------------------------------
@primitive
def columns(x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Array:
    """Windows of [*lead, C, *sizes] as columns: [*lead, C·taps, places]."""
    n = len(kernel)
    outs = tuple(map(out_size, x.shape[-n:], kernel, stride, padding, dilation))
    lead, channels = x.shape[: -n - 1], x.shape[-n - 1]
    seen = _windows(_edged(x, padding), kernel, outs, stride, dilation)
    return seen.reshape(*lead, channels * math.prod(kernel), math.prod(outs))


@primitive
def uncolumns(
    g: Array, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Array:
    """The adjoint of `columns`: each element is added where it was taken from."""
    dtype = g.dtype
    g = _wide(g)
    outs = tuple(map(out_size, sizes, kernel, stride, padding, dilation))
    lead, channels = g.shape[:-2], g.shape[-2] // math.prod(kernel)
    g = g.reshape(*lead, channels, *kernel, *outs)
    x = _zeros(g, (*lead, channels, *sizes))
    before = (slice(None),) * (len(lead) + 1)
    for tap, results, places in _taps(sizes, outs, kernel, stride, padding, dilation):
        x[places] += g[(*before, *tap)][results]
    return _narrow(x, dtype)


# --- sums and maxima of windows -------------------------------------------------------------------
def _at(axis: int, part: slice) -> Any:
    """An index of one axis (negative)."""
    return (..., part, *(slice(None),) * (-axis - 1))


@primitive
def window_sum(x: Array, axis: int, kernel: int, stride: int, padding: int, out: int) -> Array:
    """Sums of windows along one axis (negative), `out` of them."""
    shape = list(x.shape)
    shape[axis] = out
    y = _zeros(x, tuple(shape))
    for k in range(kernel):
        pair = _seen(x.shape[axis], out, k, stride, padding)
        if pair is not None:
            y[_at(axis, pair[0])] += x[_at(axis, pair[1])]
    return y


@primitive
def window_spread(g: Array, axis: int, size: int, kernel: int, stride: int, padding: int) -> Array:
    """The adjoint of `window_sum`: each element goes to all places of its window, of `size`."""
    shape = list(g.shape)
    shape[axis] = size
    x = _zeros(g, tuple(shape))
    for k in range(kernel):
        pair = _seen(size, g.shape[axis], k, stride, padding)
        if pair is not None:
            x[_at(axis, pair[1])] += g[_at(axis, pair[0])]
    return x


class Even:
    """Windows of one size along an axis, at even distances."""

    def __init__(self, kernel: int, stride: int, padding: int, dilation: int, out: int) -> None:
        self.kernel, self.stride, self.padding = kernel, stride, padding
        self.dilation, self.out = dilation, out

    def view(self, x: Array, axis: int, tap: int) -> tuple[Any, Array] | None:
        """Which results see a place inside through a tap, and these places."""
        pair = _seen(x.shape[axis], self.out, tap * self.dilation, self.stride, self.padding)
        return None if pair is None else (pair[0], x[_at(axis, pair[1])])

    def place(self, n: int) -> Any:
        """The place that each result sees through each tap: [out, kernel]."""
        starts = np.arange(self.out) * self.stride - self.padding
        return starts[:, None] + np.arange(self.kernel) * self.dilation

    def key(self) -> Any:
        return (self.kernel, self.stride, self.padding, self.dilation, self.out)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.key()}"


class Uneven(Even):
    """Windows that divide an axis of `size` places into `out` parts as evenly as it goes; they
    overlap where it does not."""

    def __init__(self, size: int, out: int) -> None:
        self.size = size
        starts = [i * size // out for i in range(out)]
        ends = [-(-(i + 1) * size // out) for i in range(out)]
        kernel = max([b - a for a, b in zip(starts, ends, strict=True)], default=0)
        super().__init__(kernel, 1, 0, 1, out)
        self.starts, self.ends = starts, ends

    def view(self, x: Array, axis: int, tap: int) -> tuple[Any, Array] | None:
        return slice(None), x.take(self.place(x.shape[axis])[:, tap], axis)

    def place(self, n: int) -> Any:
        """Shorter windows show their last place again, which changes no maximum."""
        starts = np.asarray(self.starts, np.int64)[:, None]
        last = np.asarray(self.ends, np.int64)[:, None] - 1
        return np.minimum(starts + np.arange(self.kernel), last)

    def key(self) -> Any:
        return (self.size, self.out)


def parts_of(size: int, out: int) -> Even:
    """Windows that divide an axis; see `Uneven`."""
    if out and size % out == 0:
        return Even(size // out, size // out, 0, 1, out)
    return Uneven(size, out)


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@primitive
def window_max(x: Array, spans: tuple[Even, ...]) -> Array:
    """The largest of each window over the last axes, one of `spans` an axis. NaN is the largest."""
    for d, span in enumerate(spans):
        axis = d - len(spans)
        shape = list(x.shape)
        shape[axis] = span.out
        y = _room(x, tuple(shape))
        y[...] = _lowest(x.dtype)
        for tap in range(span.kernel):
            found = span.view(x, axis, tap)
            if found is not None:
                part = y[_at(axis, found[0])]
                maximum(part, found[1], out=part)
        x = y
    return x


def _tapped(x: Array, spans: tuple[Even, ...], taps: Ints) -> tuple[Any, Array] | None:
    results: list[Any] = []
    for d, (span, tap) in enumerate(zip(spans, taps, strict=True)):
        found = span.view(x, d - len(spans), tap)
        if found is None:
            return None
        results.append(found[0])
        x = found[1]
    return (..., *results), x


@primitive
def window_argmax(x: Array, y: Array, spans: tuple[Even, ...]) -> Array:
    """Where in each window the largest, `y`, stands: its place in row order of the last axes. The
    first of several; the last NaN."""
    count = math.prod(span.kernel for span in spans)
    nans = x.dtype.kind not in "iub" and bool((y != y).any())
    taps = list(itertools.product(*[range(span.kernel) for span in spans]))
    # Each tap has a mark, the first the largest; a window gets the largest mark of those that hit.
    marks = [count - 1 - number for number in range(count)]
    kind: Any = np.uint8 if count + count * nans < 256 else np.int32
    which = _zeros(y, y.shape, kind)
    for number in range(count - 1):  # what no other tap hits, the last one does
        found = _tapped(x, spans, taps[number])
        if found is not None:
            _mark(which[found[0]], found[1] == y[found[0]], marks[number])
    if nans:
        for number, tap in enumerate(taps):
            found = _tapped(x, spans, tap)
            if found is not None:
                _mark(which[found[0]], found[1] != found[1], count + number)
    order = np.asarray([*range(count - 1, -1, -1), *range(count)])
    return _places(which, x, spans, order[: count + count * nans])


def _mark(target: Array, mask: Array, mark: int) -> None:
    """Write a mark where a mask is true and no larger one stands. Products and maxima of bytes take
    a fifth of the time of a write by a mask."""
    number = target.dtype.type(mark)
    if type(target) is np.ndarray:
        maximum(target, mask.view(np.uint8) * number, out=target)
    else:
        target[...] = np.maximum(target, mask.astype(target.dtype) * number)


def _places(which: Array, x: Array, spans: tuple[Even, ...], order: Any) -> Array:
    """The mark of each window as a place in row order of the last axes of `x`; `order` has the
    number of the tap of each mark."""
    sizes = x.shape[-len(spans) :]
    n = len(spans)
    steps = [math.prod(sizes[d + 1 :]) for d in range(n)]
    if all(type(span) is Even for span in spans):  # the place of the window, and that of the tap
        starts: Any = 0
        offsets: Any = 0
        for d, span in enumerate(spans):
            table = span.place(sizes[d]) * steps[d]
            starts = starts + table[:, 0].reshape(-1, *(1,) * (n - 1 - d))
            taps = np.arange(span.kernel) * span.dilation * steps[d]
            offsets = offsets + taps.reshape(-1, *(1,) * (n - 1 - d))
        found = _like(offsets.reshape(-1)[order], x).take(which)
        found += _like(starts, x)
        return found
    where: Any = None
    inner = 1
    for d in range(n - 1, -1, -1):
        span = spans[d]
        table = (span.place(sizes[d]) * steps[d]).reshape(-1)
        firsts = np.arange(span.out) * span.kernel
        at = _like(order // inner % span.kernel, x).take(which)
        at += _like(firsts, x).reshape(-1, *(1,) * (n - 1 - d))
        found = _like(table, x).take(at)
        where = found if where is None else where + found
        inner *= span.kernel
    return where


def _like(table: Any, x: Array) -> Array:
    """A small array of NumPy's, where `x` is."""
    return table if type(x) is np.ndarray else np.asarray(table, like=x)


# --- resampling -----------------------------------------------------------------------------------
class Taps:
    """A linear map along one axis, of few places each: result `i` is the sum over `k` of
    weights[i, k] · x[places[i, k]], of an axis of `size` places."""

    def __init__(self, size: int, places: Any, weights: Any) -> None:
        self.size = size
        self.places = np.asarray(places, np.int64)
        self.weights = np.asarray(weights, np.float64)
        self.plain = bool((self.weights == 1).all())

    @cached_property
    def turned(self) -> Taps:
        """The adjoint map."""
        out, width = self.places.shape
        rows = np.repeat(np.arange(out), width)
        places, weights = self.places.reshape(-1), self.weights.reshape(-1)
        used = weights != 0
        rows, places, weights = rows[used], places[used], weights[used]
        order = np.argsort(places, kind="stable")
        rows, places, weights = rows[order], places[order], weights[order]
        counts = np.bincount(places, minlength=self.size)
        most = int(counts.max()) if counts.size else 0
        begins = np.cumsum(counts) - counts
        column = np.arange(len(places)) - begins[places]
        where = np.zeros((self.size, max(most, 1)), np.int64)
        shares = np.zeros((self.size, max(most, 1)))
        where[places, column] = rows
        shares[places, column] = weights
        found = Taps(out, where, shares)
        found.__dict__["turned"] = self
        return found

    def matrix(self, dtype: Any) -> Any:
        """All weights, as a matrix of [out, size]."""
        found = np.zeros((len(self.places), self.size), dtype)
        rows = np.arange(len(self.places))[:, None]
        np.add.at(found, (np.broadcast_to(rows, self.places.shape), self.places), self.weights)
        return found


@primitive
def resample(x: Array, axis: int, taps: Taps) -> Array:
    """A linear map along one axis (negative)."""
    dtype = x.dtype
    x = _wide(x)
    out, width = taps.places.shape
    shape = list(x.shape)
    shape[axis] = out
    if x.size == 0 or out == 0:
        return _zeros(x, tuple(shape), dtype)
    tail = (1,) * (-axis - 1)
    if width == 1 and taps.plain:
        return _narrow(x.take(_like(taps.places[:, 0], x), axis), dtype)
    if dtype == np.uint8:
        return _resample_bytes(x, axis, taps)
    kind = x.real.dtype
    if width > 8:
        matrix = _like(taps.matrix(kind), x)
        if axis == -1:
            y = np.matmul(x, matrix.T)
        else:
            flat = x.reshape(-1, x.shape[axis], math.prod(x.shape[axis + 1 :]))
            y = np.matmul(matrix, flat).reshape(shape)
        return _narrow(y, dtype)
    total: Any = None
    for k in range(width):
        part = x.take(_like(taps.places[:, k], x), axis)
        part *= _like(taps.weights[:, k].astype(kind), x).reshape(-1, *tail)
        if total is None:
            total = part
        else:
            total += part
    return _narrow(total, dtype)


def _resample_bytes(x: Array, axis: int, taps: Taps) -> Array:
    """`resample` of bytes: in integers, by weights of 15 bits, rounded half up."""
    largest = float(taps.weights.max())
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = taps.weights * (1 << bits)
    weights = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32)
    total: Any = 1 << max(bits - 1, 0)
    for k in range(weights.shape[1]):
        part = x.take(_like(taps.places[:, k], x), axis).astype(np.int32)
        total = total + part * _like(weights[:, k], x).reshape(-1, *(1,) * (-axis - 1))
    return np.clip(total >> bits, 0, 255).astype(np.uint8)


@functools.lru_cache(maxsize=256)
def mean_taps(size: int, out: int) -> Taps:
    """The mean of each of `out` parts of an axis; see `Uneven`."""
    parts = Uneven(size, out)
    lengths = np.asarray(parts.ends) - np.asarray(parts.starts)
    inside = np.arange(parts.kernel) < lengths[:, None]
    return Taps(size, parts.place(size), inside / lengths[:, None])
