"""Normalisation of plain NumPy arrays by kernels, forward and back.

Each function gives None where there is no kernel for what it was given. Parameters of the op stand
first, so that an op binds them; then what the op's rule gets. `wanted` are bits, one for each input
whose gradient is wanted.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from rushlight.arrays.kernels import bound, of_given, table

Array = Any

_ROW: Final = 32  # positions of a channel that are worth a loop of their own
_ndarray: Final = np.ndarray
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_sqrt: Final[Any] = np.sqrt
_concatenate: Final[Any] = np.concatenate
_ascontiguousarray: Final[Any] = np.ascontiguousarray
_WEIGHS: Final = ("", "_w", "_wb")  # by how many of weight and bias there are
_WANTED: Final = ("", "x", "w", "xw", "b", "xb", "wb", "xwb")  # by bits
_table: Final[Any] = table
_channel_map: Final[Any] = table.get("channel_map")
_channel_affine: Final[Any] = table.get("channel_affine")
_channel_product: Final[Any] = table.get("channel_product")
_channel_sums: Final[Any] = table.get("batch_norm_back_w.wb")
_multiply_add: Final[Any] = table.get("AddCMul.value=1.forward")
_multiply: Final[Any] = table.get("Mul.forward")


def _fits(x: Any) -> bool:
    """Whether this is a plain array of floats. Low precision is computed in float32 by the ops."""
    return type(x) is _ndarray and (x.dtype is _F32 or x.dtype is _F64)


@functools.lru_cache(maxsize=256)
def _ready(name: str, eps: float | None, axes: tuple[int, ...]) -> Any:
    """A kernel over these axes, with its parameter if it has one; None if there is no such."""
    kernel = _table.get(name)
    if kernel is None:
        return None
    return (kernel if eps is None else kernel.bind(eps)).over(axes, False)


def _forward_kernel(title: str, eps: float, axes: tuple[int, ...], w: Array, b: Array) -> Any:
    if w is None and b is not None:
        return None
    return _ready(title + _WEIGHS[(w is not None) + (b is not None)], eps, axes)


def _back_kernel(title: str, axes: tuple[int, ...], w: Array, wanted: int) -> Any:
    """That of x and w gives that of b as well: a kernel more would be worth little."""
    name = title + ("_back." if w is None else "_back_w.") + _WANTED[7 if wanted == 3 else wanted]
    return _ready(name, None, axes)


def _call(kernel: Any, x: Array, w: Array, b: Array) -> Any:
    if w is None:
        return kernel(x)
    return kernel(x, w) if b is None else kernel(x, w, b)


def _in_turn(found: Any, wanted: int, shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a kernel gave, in the places where something was wanted."""
    several = found if type(found) is tuple else (found,)
    at = 0
    made: list[Any] = []
    for k in range(3):
        if wanted >> k & 1:
            made.append(several[at].reshape(shapes[k]))
            at += 1
        else:
            made.append(None)
    return tuple(made)


# --- layer_norm -----------------------------------------------------------------------------------
def layer_norm_kernel(width: int, eps: float) -> Any:
    """The kernel of x, w and b, of which the last or the last two may be None."""
    if "layer_norm" not in table:
        return None
    axes = tuple(range(-width, 0))
    found = [table["layer_norm" + weighs] for weighs in _WEIGHS]
    return bound(of_given, tuple([k.wide().bind(eps).over(axes, True) for k in found]))


def layer_norm(width: int, eps: float, x: Array, w: Array, b: Array) -> Any:
    """(x - mean) / deviation over the last `width` axes, times w plus b; mean, 1 / deviation."""
    kernel = _forward_kernel("layer_norm", eps, (-1,), w, b)
    if kernel is None or not _fits(x) or x.size == 0:
        return None
    shape = x.shape
    lead = shape[: len(shape) - width]
    if len(shape) == 2 and width == 1:
        found = _call(kernel, x, w, b)
    else:
        rows = x.reshape(-1, math.prod(shape[len(shape) - width :]))
        flat = None if w is None else w.reshape(-1)
        found = _call(kernel, rows, flat, None if b is None else b.reshape(-1))
    if found is None:
        return None
    y, mean, rstd = found
    stay = lead + (1,) * width
    return y.reshape(shape), mean.reshape(stay), rstd.reshape(stay)


def layer_norm_back(
    width: int, wanted: int, g: Any, x: Array, w: Array, mean: Array, rstd: Array
) -> Any:
    """The gradients of x, w and b that are wanted, from those of all results."""
    gy, gmean, grstd = g
    kernel = _back_kernel("layer_norm", (-1,), w, wanted)
    if kernel is None or not _fits(x) or not _fits(gy) or x.size == 0:
        return None
    shape = x.shape
    inner = shape[len(shape) - width :]
    n = math.prod(inner)
    flat = None if w is None else w.reshape(-1)
    found = kernel(gy.reshape(-1, n), gmean, grstd, x.reshape(-1, n), flat, mean, rstd)
    return None if found is None else _in_turn(found, wanted, (shape, inner, inner))


# --- rms_norm -------------------------------------------------------------------------------------
def rms_norm(width: int, eps: float, x: Array, w: Array) -> Any:
    """x divided by the root of its mean square over the last `width` axes, times w."""
    kernel = _ready("rms_norm" if w is None else "rms_norm_w", eps, (-1,))
    if kernel is None or type(x) is not _ndarray or x.size == 0:
        return None
    shape = x.shape
    rows = x.reshape(-1, math.prod(shape[len(shape) - width :]))
    made = kernel(rows) if w is None else kernel(rows, w.reshape(-1))
    return None if made is None else made.reshape(shape)


# --- batch_norm -----------------------------------------------------------------------------------
def batch_norm(axes: tuple[int, ...], eps: float, x: Array, w: Array, b: Array) -> Any:
    """(x - mean) / deviation over `axes`, all but that of channels, times w plus b; the statistics
    with these axes as size 1."""
    kernel = _forward_kernel("batch_norm", eps, axes, w, b)
    if kernel is None or not _fits(x):
        return None
    found = _call(kernel, x, w, b)
    if found is None or not x.flags.c_contiguous:
        return found
    y, mean, rstd = found
    return _ascontiguousarray(y), mean, rstd  # it was made channel by channel


def batch_norm_back(
    axes: tuple[int, ...], wanted: int, g: Any, x: Array, w: Array, mean: Array, rstd: Array
) -> Any:
    """The gradients of x, w and b that are wanted, from those of all results."""
    gy, gmean, grstd = g
    kernel = _back_kernel("batch_norm", axes, w, wanted)
    if kernel is None or not _fits(x):
        return None
    found = kernel(gy, gmean, grstd, x, w, mean, rstd)
    if found is None:
        return None
    channels = (mean.size,)
    gx, gw, gb = _in_turn(found, wanted, (x.shape, channels, channels))
    if gx is not None and x.flags.c_contiguous and gy.flags.c_contiguous:
        gx = _ascontiguousarray(gx)
    return gx, gw, gb


# --- numbers for each channel ---------------------------------------------------------------------
def _by_channel(kernel: Any, x: Array, channels: int, scale: Array, shift: Array) -> Array | None:
    """A kernel over the positions of each channel of each example, with numbers for each channel;
    None where channels have few positions, or these are not in one piece."""
    if kernel is None or not _fits(x):
        return None
    size: int = x.size
    if size < _ROW * channels or x.ndim < 3 or not x.flags.c_contiguous:
        return None
    n = len(x)
    positions = size // (n * channels)
    if positions < _ROW:
        return None
    rows = x.reshape(-1, positions)
    scales = _for_examples(scale, n)
    made = kernel(rows, scales) if shift is None else kernel(rows, scales, _for_examples(shift, n))
    return None if made is None else made.reshape(x.shape)


def _for_examples(numbers: Array, n: int) -> Array:
    """Numbers for each channel, once for each of n examples."""
    flat = numbers.reshape(-1)
    return flat if n == 1 else _concatenate((flat,) * n)


def affine(x: Array, scale: Array, shift: Array) -> Array | None:
    """x * scale + shift, in one pass. Scale and shift are next to x: they have one number for a
    channel, the first axis after that of examples, or two axes of such."""
    made = _by_channel(_channel_affine, x, scale.size, scale, shift)
    if made is not None or _multiply_add is None:
        return made
    return _multiply_add(shift, x, scale)


def product(x: Array, scale: Array) -> Array | None:
    """x * scale, likewise."""
    made = _by_channel(_channel_product, x, scale.size, scale, None)
    return _multiply(x, scale) if made is None and _multiply is not None else made


def channel_norm(eps: float, x: Array, w: Array, b: Array, mean: Array, var: Array) -> Any:
    """(x - mean) / sqrt(var + eps), times w plus b, all of these by channel, the second axis."""
    if _channel_map is None or not _fits(x) or not _fits(var):
        return None
    made = _channel_map(1.0 if w is None else w, 0.0 if b is None else b, mean, var, eps)
    if made is None:
        return None
    next_to_x = (1, -1) + (1,) * (x.ndim - 2)
    return affine(x, made[0].reshape(next_to_x), made[1].reshape(next_to_x))


def channel_norm_back(
    eps: float, wanted: int, g: Array, x: Array, w: Array, mean: Array, var: Array
) -> Any:
    """Its gradients: of x, w and b, where they are wanted; None for mean and variance."""
    if _channel_sums is None or wanted > 7 or not _fits(g) or not _fits(var):
        return None
    rstd = 1 / _sqrt(var + eps)
    gx = gw = gb = None
    if wanted & 1:
        scale = rstd if w is None else rstd * w
        gx = product(g, scale.reshape((1, -1) + (1,) * (g.ndim - 2)))
        if gx is None:
            return None
    if wanted & 6:
        if not _fits(x) or x.size == 0 or not _fits(mean):
            return None
        if x.ndim == 2:
            sums = _ready("batch_norm_back_w.wb", None, (0,))
            found = sums(g, mean, mean, x, mean, mean, rstd)
        else:
            n = len(x)
            found = _sum_channels(g, x, _for_examples(mean, n), _for_examples(rstd, n))
        if found is None:
            return None
        gw = found[0] if wanted & 2 else None
        gb = found[1] if wanted & 4 else None
    return gx, gw, gb, None, None


def _sum_channels(g: Array, x: Array, mean: Array, rstd: Array) -> Any:
    """The gradients of weight and bias, one of each a channel, where there is a mean and an
    inverse deviation for each channel of each example: sums over positions, then over examples."""
    rows = (mean.size, -1)
    found = _channel_sums(g.reshape(rows), mean, mean, x.reshape(rows), mean, mean, rstd)
    add = _ready("Sum.dtype=None.forward", None, (0,))
    if found is None or add is None:
        return None
    examples = (len(x), -1)
    return add(found[0].reshape(examples)), add(found[1].reshape(examples))


# --- group_norm -----------------------------------------------------------------------------------
def group_norm(groups: int, rows: Any, x: Array, w: Array, b: Array) -> Any:
    """(x - mean) / deviation over groups of channels, the second axis, and all positions, times w
    plus b; mean and 1 / deviation of each group of each example. `rows` is `row_norm`."""
    if rows is None or not _fits(x) or (w is None and b is not None) or x.size == 0:
        return None
    shape = x.shape
    n: int = shape[0]
    made = rows(x.reshape(n * groups, -1))
    if made is None:
        return None
    y = made[0].reshape(shape)
    if w is not None:
        next_to_x = (1, -1) + (1,) * (len(shape) - 2)
        scale = w.reshape(next_to_x)
        y = product(y, scale) if b is None else affine(y, scale, b.reshape(next_to_x))
        if y is None:
            return None
    flat = (n, groups)
    return y, made[1].reshape(flat), made[2].reshape(flat)


def row_norm(eps: float) -> Any:
    """The kernel that normalises each row of a matrix; None if there is none."""
    return _ready("layer_norm", eps, (-1,))


def group_norm_back(
    groups: int, wanted: int, g: Any, x: Array, w: Array, mean: Array, rstd: Array
) -> Any:
    """The gradients of x, w and b that are wanted. That of x is that of a layer normalisation
    without weights; those of weights are sums for each channel of each example, as in batch
    normalisation, and then over examples."""
    gy = g[0]
    if _channel_sums is None or not _fits(gy) or not _fits(x) or x.size == 0:
        return None
    shape = x.shape
    each = shape[1] // groups
    split = (shape[0], groups, each, -1)
    z, gz = x.reshape(split), gy.reshape(split)
    gx = gw = gb = None
    if wanted & 1:
        h = gz if w is None else product(gz, w.reshape(1, groups, each, 1))
        if h is None:
            return None
        found = layer_norm_back(2, 1, (h, g[1], g[2]), z, None, mean, rstd)
        if found is None:
            return None
        gx = found[0].reshape(shape)
    if wanted & 6:
        found = _sum_channels(gz, z, mean.reshape(-1).repeat(each), rstd.reshape(-1).repeat(each))
        if found is None:
            return None
        gw = found[0] if wanted & 2 else None
        gb = found[1] if wanted & 4 else None
    return gx, gw, gb
