"""Short ways for layers of networks on plain NumPy arrays, in blocks that stay in the cache.

Written with one array operation after the other, such a layer makes many arrays as large as its
input, and each of these is memory to be had from the system, written, and read back. Each function
gives None where it does not apply.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.kernels import bound, of_given, table
from rushlight.arrays.sums import sum_over

Array = Any

_BLOCK: Final = 32_768  # elements
_LEAST: Final = 4_096  # below, the way for all arrays is as quick
_ROW: Final = 32  # positions of a channel that are worth a loop of their own
_F32: Final = np.dtype(np.float32)
_DENSITY: Final = 1 / math.sqrt(2 * math.pi)
# erfc(z) = P(t) exp(-z²) with t = 1 / (1 + 0.3275911 z), to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
# Here z = |x| / √2, and in the place of t stands 1 / (|x| + _AWAY), a multiple of it. Halved, for
# the normal distribution function is half of erfc.
_AWAY: Final = math.sqrt(2) / 0.3275911
_TAIL: Final = tuple(
    [
        0.5 * c * _AWAY**i
        for i, c in (
            (5, 1.061405429), (4, -1.453152027), (3, 1.421413741), (2, -0.284496736),
            (1, 0.254829592),
        )
    ]
)  # fmt: skip


# by whether there is a weight, and a bias
_NORMS: Final = {(False, False): "", (True, False): "_w", (True, True): "_wb"}


def _fits(*xs: Array) -> bool:
    """Whether these are float32, row by row, and many."""
    for x in xs:
        if type(x) is not np.ndarray or x.dtype != _F32 or not x.flags.c_contiguous:
            return False
    return bool(xs[0].size >= _LEAST)


# --- gelu -----------------------------------------------------------------------------------------
def gelu(x: Array) -> Array | None:
    """x times the normal distribution function of x."""
    if not _fits(x):
        return None
    out = np.empty_like(x)
    flat, into = x.reshape(-1), out.reshape(-1)
    room = np.empty((4, min(_BLOCK, flat.size)), _F32)
    for start in range(0, flat.size, _BLOCK):
        part = flat[start : start + _BLOCK]
        y = into[start : start + _BLOCK]
        tail, _, away = _beyond(part, room[:, : part.size])
        away -= _AWAY
        tail *= away
        np.maximum(part, 0, out=y)
        y -= tail
        if not math.isfinite(y.sum()):  # 0 times infinity is no number
            return None
    return out


def gelu_back(g: Array, x: Array) -> Array | None:
    """g times the derivative of `gelu` at x."""
    if not _fits(x, g) or g.shape != x.shape:
        return None
    out = np.empty_like(x)
    flat, over, into = x.reshape(-1), g.reshape(-1), out.reshape(-1)
    room = np.empty((4, min(_BLOCK, flat.size)), _F32)
    for start in range(0, flat.size, _BLOCK):
        part = flat[start : start + _BLOCK]
        y = into[start : start + _BLOCK]
        tail, bell, _ = _beyond(part, room[:, : part.size])
        np.subtract(0.5, tail, out=tail)
        np.copysign(tail, part, out=tail)
        tail += 0.5  # the distribution function
        bell *= part
        bell *= _DENSITY
        tail += bell
        np.multiply(over[start : start + _BLOCK], tail, out=y)
    return out


def _beyond(x: Array, room: Array) -> tuple[Array, Array, Array]:
    """How much of the normal distribution is beyond |x|, on one side; exp(-x²/2); |x| + _AWAY. All
    in the memory given."""
    bell, away, t, tail = room
    np.multiply(x, x, out=bell)
    bell *= -0.5
    np.exp(bell, out=bell)
    np.absolute(x, out=away)
    away += _AWAY
    np.reciprocal(away, out=t)
    np.multiply(t, _TAIL[0], out=tail)
    for c in _TAIL[1:]:
        tail += c
        tail *= t
    tail *= bell
    return tail, bell, away


# --- an affine map of each channel ----------------------------------------------------------------
def channel_map(w: Array, b: Array, mean: Array, var: Array, eps: Any) -> Any:
    """What normalising by these statistics, a weight and a bias multiplies by, and adds."""
    scale = 1 / v.sqrt(var + eps) * w
    return scale, b - mean * scale


def channels(w: Array, b: Array, mean: Array, var: Array, eps: float) -> Any:
    """`channel_map`, in one pass if there is a kernel; w and b may be None."""
    kernel = table.get("channel_map")
    made = None
    if kernel is not None and type(var) is np.ndarray:
        made = kernel(1.0 if w is None else w, 0.0 if b is None else b, mean, var, eps)
    if made is None:
        made = channel_map(1 if w is None else w, 0 if b is None else b, mean, var, eps)
    return made


def affine_back(
    g: Array, x: Array, scale: Array, mean: Array, rstd: Array, axes: tuple[int, ...],
    wants: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    """The gradients of an affine map that normalises by given statistics, `scale` being what it
    multiplies by, next to x: of x, weight and bias, where they are wanted."""
    sums = table.get("batch_norm_back_w.wb")
    if sums is None or type(g) is not np.ndarray:
        return None
    gx = product(g, scale) if wants[0] else None
    if wants[0] and gx is None:
        return None
    if not (wants[1] or wants[2]):
        return gx, None, None
    if type(x) is not np.ndarray or x.size == 0:
        return None
    if x.ndim == 2:
        found = sums.over(axes, False)(g, mean, mean, x, mean, mean, rstd)
    else:
        found = _channel_sums(sums, g, x, np.tile(mean, len(x)), np.tile(rstd, len(x)))
    if found is None:
        return None
    return gx, (found[0] if wants[1] else None), (found[1] if wants[2] else None)


def _channel_sums(sums: Any, g: Array, x: Array, mean: Array, rstd: Array) -> Any:
    """The gradients of weight and bias, one of each a channel, where there is a mean and an
    inverse deviation for each channel of each example: sums over positions, then over examples."""
    rows = (mean.size, -1)
    found = sums(g.reshape(rows), mean, mean, x.reshape(rows), mean, mean, rstd)
    if found is None:
        return None
    return tuple([sum_over(t.reshape(len(x), -1), (0,), False) for t in found])


def affine(x: Array, scale: Array, shift: Array) -> Array:
    """x * scale + shift, in one pass if there is a kernel. Scale and shift are next to x: they have
    one number for a channel, the first axis after that of examples, or two axes of such."""
    made = _by_channel("channel_affine", x, scale, shift)
    if made is None:
        kernel = table.get("AddCMul.value=1.forward")
        made = None if kernel is None else kernel(shift, x, scale)
    return x * scale + shift if made is None else made


def product(x: Array, scale: Array) -> Array | None:
    """x * scale, likewise; None if there is no kernel."""
    made = _by_channel("channel_product", x, scale)
    kernel = table.get("Mul.forward")
    return kernel(x, scale) if made is None and kernel is not None else made


def _by_channel(title: str, x: Array, *numbers: Array) -> Array | None:
    """A kernel over the positions of each channel of each example, with numbers for each channel;
    None where channels have few positions, or these are not in one piece."""
    kernel = table.get(title)
    if kernel is None or type(x) is not np.ndarray or x.ndim < 3 or x.size == 0:
        return None
    channels = numbers[0].size
    positions = x.size // (len(x) * channels)
    if positions < _ROW or not x.flags.c_contiguous:
        return None
    rows = [np.tile(t.reshape(-1), len(x)) for t in numbers]
    made = kernel(x.reshape(-1, positions), *rows)
    return None if made is None else made.reshape(x.shape)


# --- layer_norm -----------------------------------------------------------------------------------
def layer_norm(x: Array, w: Array, b: Array, width: int, eps: float) -> Any:
    """(x - mean) / deviation over the last `width` axes, times w plus b; mean, 1 / deviation."""
    lead, n = x.shape[: x.ndim - width], math.prod(x.shape[x.ndim - width :])
    if n == 0:
        return None
    kernel = _norm_kernel("layer_norm", w, b)
    if kernel is not None and type(x) is np.ndarray:
        given = [t for t in (x, w, b) if type(t) is np.ndarray]
        if x.ndim != 2 or width != 1:
            given = [x.reshape(-1, n), *[t.reshape(-1) for t in given[1:]]]
        found = _ready(kernel, eps, (-1,))(*given)
        if found is not None:
            y, stay = found[0], (*lead, *(1,) * width)
            shaped = y if y.shape == x.shape else y.reshape(x.shape)
            return shaped, found[1].reshape(stay), found[2].reshape(stay)
    if not _fits(x):
        return None
    out = np.empty_like(x)
    rows, into = x.reshape(-1, n), out.reshape(-1, n)
    mean, rstd = (np.empty((len(rows), 1), _F32) for _ in range(2))
    weight, bias = (None if t is None else t.reshape(-1) for t in (w, b))
    step = max(_BLOCK // n, 1)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        z, m, r = into[part], mean[part], rstd[part]
        here = rows[part]
        np.add.reduce(here, 1, out=m, keepdims=True)
        m /= n
        np.subtract(here, m, out=z)
        # what the sum lost: rows of nearly equal numbers are divided by little
        lost = np.add.reduce(z, 1, keepdims=True)
        lost /= n
        m += lost
        z -= lost
        np.add.reduce(z * z, 1, out=r, keepdims=True)
        r /= n
        r += eps
        np.sqrt(r, out=r)
        np.reciprocal(r, out=r)
        z *= r
        if weight is not None:
            z *= weight
        if bias is not None:
            z += bias
    shape = (*lead, *(1,) * width)
    return out, mean.reshape(shape), rstd.reshape(shape)


def layer_norm_kernel(width: int, eps: float) -> Any:
    """The kernel of x, w and b, of which the last or the last two may be None."""
    if "layer_norm" not in table:
        return None
    axes = tuple(range(-width, 0))
    found = [table["layer_norm" + weighs] for weighs in _NORMS.values()]
    return bound(of_given, tuple([k.wide().bind(eps).over(axes, True) for k in found]))


def layer_norm_back(
    g: Array, gmean: Array, grstd: Array, x: Array, w: Array, mean: Array, rstd: Array, width: int,
    wants: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    """The gradients of x, w and b that are wanted, from those of all results."""
    kernel = _back_kernel("layer_norm", w, wants)
    if kernel is not None and type(x) is np.ndarray and x.size and type(g) is np.ndarray:
        n = math.prod(x.shape[x.ndim - width :])
        flat = None if w is None else w.reshape(-1)
        found = kernel(g.reshape(-1, n), gmean, grstd, x.reshape(-1, n), flat, mean, rstd)
        if found is not None:
            inner = x.shape[x.ndim - width :]
            return _in_turn(found, wants, (x.shape, inner, inner))
    if not _fits(x, g) or g.shape != x.shape or x.size == 0:
        return None
    n = math.prod(x.shape[x.ndim - width :])
    rows, over = x.reshape(-1, n), g.reshape(-1, n)
    count = len(rows)
    means, rstds, gmeans, grstds = (
        np.ascontiguousarray(t).reshape(count, 1) for t in (mean, rstd, gmean, grstd)
    )
    out = np.empty_like(x) if wants[0] else None
    into = None if out is None else out.reshape(-1, n)
    weight = None if w is None else w.reshape(-1)
    step = max(_BLOCK // n, 1)
    scales: list[Array] = []
    shifts: list[Array] = []
    for start in range(0, count, step):
        part = slice(start, start + step)
        gy, r = over[part], rstds[part]
        z = rows[part] - means[part]
        z *= r
        if wants[1]:
            scales.append(sum_over(gy * z, (0,), False))
        if wants[2]:
            shifts.append(sum_over(gy, (0,), False))
        if into is not None:
            h = gy if weight is None else gy * weight
            y = into[part]
            np.multiply(h, z, out=y)
            c = np.add.reduce(y, 1, keepdims=True)
            c *= r
            c += grstds[part] * r * r
            c /= -n
            a = np.add.reduce(h, 1, keepdims=True)
            a *= r
            a -= gmeans[part]
            a /= n
            np.multiply(h, r, out=y)
            y -= a
            z *= c
            y += z
    inner = x.shape[x.ndim - width :]
    gw, gb = (_total(t, inner) if t else None for t in (scales, shifts))
    return out, gw, gb


def _total(parts: list[Array], shape: tuple[int, ...]) -> Array:
    """The sum of parts, of which there are few."""
    whole = parts[0] if len(parts) == 1 else np.add.reduce(np.stack(parts), 0)
    return whole.reshape(shape)


@functools.lru_cache(maxsize=256)
def _ready(kernel: Any, eps: float | None, axes: tuple[int, ...]) -> Any:
    """A kernel over these axes, with its parameter if it has one."""
    return (kernel if eps is None else kernel.bind(eps)).over(axes, False)


def _norm_kernel(title: str, w: Array, b: Array) -> Any:
    """The kernel of a normalisation with these weights; None if there is none."""
    weighs = _NORMS.get((w is not None, b is not None))
    return None if weighs is None else table.get(title + weighs)


def _back_kernel(title: str, w: Array, wants: tuple[bool, bool, bool]) -> Any:
    """The kernel that gives those gradients of a normalisation that are wanted."""
    said = "".join([letter for letter, want in zip("xwb", wants, strict=True) if want])
    return table.get(f"{title}_back{'' if w is None else '_w'}.{said}")


def _in_turn(found: Any, wants: tuple[bool, ...], shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a kernel gave, in the places where something was wanted."""
    rest = iter(found if type(found) is tuple else (found,))
    return tuple(
        [
            next(rest).reshape(shape) if want else None
            for want, shape in zip(wants, shapes, strict=True)
        ]
    )


# --- batch_norm -----------------------------------------------------------------------------------
def batch_norm(x: Array, w: Array, b: Array, axes: tuple[int, ...], eps: float) -> Any:
    """(x - mean) / deviation over `axes`, all but that of channels, times w plus b; the statistics
    with these axes as size 1."""
    kernel = _norm_kernel("batch_norm", w, b)
    if kernel is None or type(x) is not np.ndarray:
        return None
    return _ready(kernel, eps, axes)(x, *[t for t in (w, b) if t is not None])


def batch_norm_back(
    g: Array, gmean: Array, grstd: Array, x: Array, w: Array, mean: Array, rstd: Array,
    axes: tuple[int, ...], wants: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    """The gradients of x, w and b that are wanted, from those of all results."""
    kernel = _back_kernel("batch_norm", w, wants)
    if kernel is None or type(x) is not np.ndarray:
        return None
    found = _ready(kernel, None, axes)(g, gmean, grstd, x, w, mean, rstd)
    if found is None:
        return None
    channels = (mean.size,)
    gx, gw, gb = _in_turn(found, wants, (x.shape, channels, channels))
    if gx is not None and x.flags.c_contiguous and g.flags.c_contiguous:
        gx = np.ascontiguousarray(gx)  # it was made channel by channel
    return gx, gw, gb


def follow_mean(running: Array, mean: Array, rest: Any, momentum: Any) -> Array:
    """A running mean, moved towards that of a batch; `rest` is 1 - momentum."""
    return running * rest + mean * momentum


def follow_var(running: Array, rstd: Array, rest: Any, momentum: Any, eps: Any, most: Any) -> Array:
    """A running variance, likewise, from a batch's inverse deviation; `most` is n / (n - 1)."""
    return running * rest + (1 / (rstd * rstd) - eps) * most * momentum


def follow(running: Array, rule: Any, statistic: Array, *numbers: float) -> None:
    """Write one of these into the running statistic, in one pass if there is a kernel."""
    kernel = table.get(rule.__name__)
    plain = type(running) is np.ndarray and type(statistic) is np.ndarray
    if kernel is not None and plain and kernel.into((running,), running, statistic, *numbers):
        return
    v.overwrite(running, rule(running, statistic, *numbers))


# --- rms_norm -------------------------------------------------------------------------------------
def by_mean_square(x: Array, w: Array, eps: Any) -> Array:
    """x divided by the root of its mean square along the last axis, times w."""
    y = x * (1 / v.sqrt(v.reduce_sum(x * x, (-1,), True) / x.shape[-1] + eps))
    return y if w is None else y * w


def rms_norm(x: Array, w: Array, width: int, eps: float) -> Array | None:
    """`by_mean_square` over the last `width` axes, in one pass; None if there is no kernel."""
    kernel = table.get("rms_norm" if w is None else "rms_norm_w")
    if kernel is None or type(x) is not np.ndarray or x.size == 0:
        return None
    given = [x.reshape(-1, math.prod(x.shape[x.ndim - width :]))]
    if w is not None:
        given.append(w.reshape(-1))
    made = _ready(kernel, eps, (-1,))(*given)
    return None if made is None else made.reshape(x.shape)


# --- group_norm -----------------------------------------------------------------------------------
def group_norm(x: Array, w: Array, b: Array, groups: int, eps: float) -> Any:
    """(x - mean) / deviation over groups of channels, the second axis, and all positions, times w
    plus b; mean and 1 / deviation of each group of each example."""
    if type(x) is not np.ndarray or x.size == 0 or (w is None and b is not None):
        return None
    n, channels = x.shape[:2]
    made = layer_norm(x.reshape(n * groups, -1), None, None, 1, eps)
    if made is None:
        return None
    y, mean, rstd = made
    if w is not None:
        z, each = y.reshape(n, channels, -1), (channels, 1)
        scale = w.reshape(each)
        y = product(z, scale) if b is None else affine(z, scale, b.reshape(each))
    return (
        None if y is None else (y.reshape(x.shape), *[t.reshape(n, groups) for t in (mean, rstd)])
    )


def group_norm_back(
    g: Array, gmean: Array, grstd: Array, x: Array, w: Array, mean: Array, rstd: Array,
    wants: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    """The gradients of x, and of w and b as vectors, where they are wanted. That of x is that of a
    layer normalisation without weights; those of weights are sums for each channel of each example,
    as in batch normalisation, and then over examples."""
    sums = table.get("batch_norm_back_w.wb")
    if sums is None or type(g) is not np.ndarray or type(x) is not np.ndarray:
        return None
    gx = gw = gb = None
    if wants[0]:
        h = g if w is None else product(g, w)
        only = (True, False, False)
        found = h is not None and layer_norm_back(h, gmean, grstd, x, None, mean, rstd, 2, only)
        if not found:
            return None
        gx = found[0]
    if wants[1] or wants[2]:
        m, r = (np.broadcast_to(t, (*x.shape[:3], 1)).reshape(-1) for t in (mean, rstd))
        found = _channel_sums(sums, g, x, m, r) if x.size else None
        if found is None:
            return None
        gw, gb = found
    return gx, (gw if wants[1] else None), (gb if wants[2] else None)


# --- sums -----------------------------------------------------------------------------------------
def add_to(y: Array, x: Array) -> Array:
    """y + x, written into `y`, which nobody else has, if it is a plain array that can take it."""
    plain = type(y) is np.ndarray and type(x) is np.ndarray and y.ndim and y.dtype == x.dtype
    if plain and (x.shape == y.shape or (x.ndim == 1 and x.shape == y.shape[-1:])):
        y += x
        return y
    return y + x
