"""Tables for resizing one axis: which places each result is taken from, with which weights.

What is nearest to a place depends on how its distance is rounded, so tables are computed in the
precision in which PyTorch computes them: float32, or float64 for float64 images.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from rushlight.arrays.windows import Taps

# how far a filter reaches to both sides, by its mode
_REACH: Final = {"linear": 1, "cubic": 2, "lanczos": 3}


@functools.lru_cache(maxsize=512)
def resizing_taps(
    mode: str, size: int, out: int, scale: float | None, align: bool, wide: bool
) -> Taps:
    """The table that takes an axis of `size` places to `out`. `mode` is "nearest", "exact",
    "linear" or "cubic", or with "smooth " in front one that smooths what is made smaller; `scale`
    is the factor that the user gave; with `align` the first and the last places coincide."""
    kind: Any = np.float64 if wide else np.float32
    if mode in ("nearest", "exact"):
        return _nearest(mode, size, out, scale)
    step = _step(size, out, scale, align, kind)
    if mode.startswith("smooth "):
        return _smooth(mode.removeprefix("smooth "), size, out, step, kind)
    at = np.arange(out, dtype=kind)
    source = step * at if align else step * (at + kind(0.5)) - kind(0.5)
    if mode == "linear":
        return _linear(size, out, np.maximum(source, kind(0)), kind)
    base = np.floor(source)
    weights = _cubic_weights((source - base).astype(kind))
    places = base[:, None].astype(np.int64) + np.arange(-1, 3)
    return Taps(size, np.clip(places, 0, size - 1), weights)


def _step(size: int, out: int, scale: float | None, align: bool, kind: Any) -> Any:
    """How far apart neighbouring results are in the input."""
    if align:
        return kind(size - 1) / kind(out - 1) if out > 1 else kind(0)
    if scale is not None and scale > 0:
        return kind(1.0 / scale)
    return kind(size) / kind(out)


def _nearest(mode: str, size: int, out: int, scale: float | None) -> Taps:
    step = _step(size, out, scale, False, np.float32)
    at = np.arange(out, dtype=np.float32)
    if mode == "exact":
        places = np.floor((at + np.float32(0.5)) * step)
    elif out == size:
        places = at
    elif out == 2 * size:
        places = np.floor(at / 2)
    else:
        places = np.floor(at * step)
    places = np.minimum(places.astype(np.int64), size - 1)
    return Taps(size, places[:, None], np.ones((out, 1)))


def _linear(size: int, out: int, source: Any, kind: Any) -> Taps:
    if size == out:
        return Taps(size, np.arange(out)[:, None], np.ones((out, 1)))
    first = np.minimum(source.astype(np.int64), size - 1)
    second = np.minimum(first + 1, size - 1)
    share = np.clip(source - first.astype(kind), kind(0), kind(1))
    return Taps(size, np.stack([first, second], 1), np.stack([kind(1) - share, share], 1))


def _cubic_weights(t: Any) -> Any:
    """Weights of the four places around a distance `t` from the second of them."""
    a = t.dtype.type(-0.75)
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (t + 1, 2 - t)]
    return np.stack([far[0], near[0], near[1], far[1]], 1)


def _filter(mode: str, x: Any) -> Any:
    """The filters of what is made smaller, at a distance `x`."""
    x = np.abs(x)
    if mode == "linear":
        return np.maximum(1 - x, 0)
    if mode == "lanczos":
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    a = -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _smooth(mode: str, size: int, out: int, step: Any, kind: Any) -> Taps:
    wide = max(step, kind(1))
    reach = _REACH[mode] * wide
    center = step * (np.arange(out, dtype=kind) + kind(0.5))
    first = np.maximum((center - reach + kind(0.5)).astype(np.int64), 0)
    last = np.minimum((center + reach + kind(0.5)).astype(np.int64), size)
    width = max(int((last - first).max()), 1)
    places = first[:, None] + np.arange(width)
    inside = places < last[:, None]
    distance = (places.astype(kind) - center[:, None] + kind(0.5)) / wide
    weights = np.where(inside, _filter(mode, distance), 0)
    weights = weights / weights.sum(1, keepdims=True)
    return Taps(size, np.minimum(places, size - 1), weights)
