"""Short ways for layers of networks on plain NumPy arrays, in blocks that stay in the cache.

Written with one array operation after the other, such a layer makes many arrays as large as its
input, and each of these is memory to be had from the system, written, and read back. Each function
gives None where it does not apply.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.kernels import table
from rushlight.arrays.sums import sum_over

Array = Any

_BLOCK: Final = 32_768  # elements
_LEAST: Final = 4_096  # below, the way for all arrays is as quick
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


# --- layer_norm -----------------------------------------------------------------------------------
def layer_norm(x: Array, w: Array, b: Array, width: int, eps: float) -> Any:
    """(x - mean) / deviation over the last `width` axes, times w plus b; mean, 1 / deviation."""
    if not _fits(x):
        return None
    lead, n = x.shape[: x.ndim - width], math.prod(x.shape[x.ndim - width :])
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


def layer_norm_back(
    g: Array, gmean: Array, grstd: Array, x: Array, w: Array, mean: Array, rstd: Array, width: int,
    wants: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    """The gradients of x, w and b that are wanted, from those of all results."""
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


# --- batch_norm -----------------------------------------------------------------------------------
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


# --- sums -----------------------------------------------------------------------------------------
def add_to(y: Array, x: Array) -> Array:
    """y + x, written into `y`, which nobody else has, if it is a plain array that can take it."""
    plain = type(y) is np.ndarray and type(x) is np.ndarray and y.ndim and y.dtype == x.dtype
    if plain and (x.shape == y.shape or (x.ndim == 1 and x.shape == y.shape[-1:])):
        y += x
        return y
    return y + x
