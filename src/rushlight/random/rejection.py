"""Poisson, binomial and gamma numbers, which are drawn by rejection: as PyTorch draws them.

How many uniforms a number takes depends on the uniforms themselves, so that the place of the next
number in the stream is known only when this one is done. That is why these three, alone of all, are
drawn one after the other in Python: drawn together they would be other numbers for the same seed.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.random.exact import Raw
from rushlight.random.generator import Generator, default_generator
from rushlight.random.names import FLOATS, dtype_name, not_implemented


class _Stream:
    """Uniform and normal numbers, one at a time, drawn ahead in large pieces. `settle` leaves the
    generator where single draws would have left it."""

    def __init__(self, gen: Generator, guess: int) -> None:
        self.gen = gen
        self.state = gen.bits.state
        self.drawn = gen._drawn
        self.piece = min(max(guess, 16), 1 << 16)
        self.drawn_ahead = 0
        self.rest: Any = iter(())
        self.uniform: Callable[[], float] = itertools.chain.from_iterable(self._pieces()).__next__

    def _pieces(self) -> Iterator[Any]:
        while True:
            self.rest = iter(self.gen.unit53(self.piece).tolist())
            self.drawn_ahead += self.piece
            yield self.rest

    def normal(self) -> float:
        """The next of PyTorch's normals in double precision, the second of a pair kept."""
        if self.gen.normal is not None:
            kept = self.gen.normal
            self.gen.normal = None
            return kept
        first, second = self.uniform(), self.uniform()
        radius = math.sqrt(-2.0 * math.log1p(-second))
        angle = 2.0 * math.pi * first
        self.gen.normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    def settle(self) -> None:
        """Give back what was drawn ahead."""
        self.gen.bits.state = self.state
        self.gen._drawn = self.drawn
        self.gen.take64(self.drawn_ahead - operator.length_hint(self.rest))


def _draw_each(
    like: Raw, gen: Generator | None, draws: int, one: Callable[..., float], *given: Raw
) -> Raw:
    """A new array of numbers, each from what stands in its place in `given`."""
    out = np.empty(like.shape, np.float64)
    if out.size:
        gen = gen or default_generator
        with gen.lock:
            stream = _Stream(gen, out.size * draws)
            try:
                values = zip(*[x.reshape(-1).tolist() for x in given], strict=True)
                out.reshape(-1)[...] = [one(stream, *each) for each in values]
            finally:
                stream.settle()
    return out


def _to_kind(drawn: Raw, dtype: np.dtype[Any]) -> Raw:
    if dtype.itemsize == 2:
        drawn = drawn.astype(np.float32)  # as PyTorch makes 16-bit floats
    return drawn.astype(dtype, copy=False)


def _check_float(name: str, dtype: np.dtype[Any]) -> None:
    if dtype_name(dtype) not in FLOATS:
        not_implemented(name, dtype)


# -- Poisson -----------------------------------------------------------------------------------


def poisson(rates: Raw, gen: Generator | None = None) -> Raw:
    """Poisson numbers, each with its own rate."""
    if rates.size:
        _check_float("poisson_cpu", rates.dtype)
        if not (rates >= 0).all():
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    drawn = _draw_each(rates, gen, 3, _poisson_one, rates.astype(np.float64))
    return _to_kind(drawn, rates.dtype)


def _poisson_one(stream: _Stream, rate: float) -> float:
    if rate == 0.0:
        return 0.0
    uniform = stream.uniform
    if rate < 10.0:  # how many uniforms it takes until their product is below exp(-rate)
        least, product, count = math.exp(-rate), uniform(), 0
        while product > least:
            count += 1
            product *= uniform()
        return float(count)
    # Hörmann 1993, "The transformed rejection method for generating Poisson random variables"
    b, a, inverse, quick = _poisson_constants(rate)
    while True:
        u = uniform() - 0.5
        height = uniform()
        side = 0.5 - abs(u)
        count_ = math.floor((2.0 * a / side + b) * u + rate + 0.43) if side else -1
        if side >= 0.07 and height <= quick:
            return float(count_)
        if count_ < 0 or (side < 0.013 and height > side) or height == 0.0:
            if height == 0.0 and count_ >= 0:
                return float(count_)
            continue
        if math.log(height) + math.log(inverse) - math.log(
            a / (side * side) + b
        ) <= -rate + count_ * math.log(rate) - math.lgamma(count_ + 1.0):
            return float(count_)


@functools.lru_cache(maxsize=4096)
def _poisson_constants(rate: float) -> tuple[float, float, float, float]:
    b = 0.931 + 2.53 * math.sqrt(rate)
    return b, -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)


# -- binomial ----------------------------------------------------------------------------------


def binomial(count: Raw, prob: Raw, gen: Generator | None = None) -> Raw:
    """How many of `count` tries succeed, each with probability `prob`; of one shape and dtype."""
    if count.size:
        _check_float("binomial_cpu", count.dtype)
    one = functools.partial(_binomial_one, float if count.itemsize == 8 else np.float32)
    drawn = _draw_each(count, gen, 3, one, count.astype(np.float64), prob.astype(np.float64))
    return _to_kind(drawn, count.dtype)


def _binomial_one(kind: Any, stream: _Stream, count: float, prob: float) -> float:
    if count <= 0.0 or prob <= 0.0:
        return 0.0
    if prob >= 1.0:
        return count
    if not prob > 0.5:
        if prob != prob or count != count:
            return math.nan
        draw = _by_box if count * prob >= 10.0 else _by_gaps
        return draw(kind, stream, count, prob)
    rest = float(kind(1.0) - kind(prob))
    draw = _by_box if count * rest >= 10.0 else _by_gaps
    return count - draw(kind, stream, count, rest)


def _by_gaps(kind: Any, stream: _Stream, count: float, prob: float) -> float:
    """Successes counted by the geometric gaps between them."""
    scale = float(kind(math.log1p(-prob)))
    reached, found = 0.0, 0
    while True:
        u = float(kind(stream.uniform()))
        reached += math.ceil(math.log(u) / scale) if u > 0.0 else math.inf
        if reached > count:
            return float(found)
        found += 1


_STIRLING = tuple(
    math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.5 * math.log(2 * math.pi))
    for k in range(10)
)


def _stirling_tail(k: float) -> float:
    """What Stirling's formula lacks of log(k!)."""
    if k <= 9:
        return _STIRLING[int(k)]
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)


def _by_box(kind: Any, stream: _Stream, count: float, prob: float) -> float:
    """Hörmann 1993, "The generation of binomial random variates": transformed rejection."""
    spread = math.sqrt(count * prob * (1.0 - prob))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    centre = count * prob + 0.5
    quick = 0.92 - 4.2 / b
    odds = prob / (1.0 - prob)
    alpha = (2.83 + 5.1 / b) * spread
    m = math.floor((count + 1.0) * prob)
    while True:
        u = stream.uniform() - 0.5
        height = stream.uniform()
        side = 0.5 - abs(u)
        if side == 0.0:
            continue
        k = math.floor((2.0 * a / side + b) * u + centre)
        if side >= 0.07 and height <= quick:
            return float(k)
        if k < 0 or k > count:
            continue
        if height == 0.0:
            return float(k)
        bound = (
            (m + 0.5) * math.log((m + 1.0) / (odds * (count - m + 1.0)))
            + (count + 1.0) * math.log((count - m + 1.0) / (count - k + 1.0))
            + (k + 0.5) * math.log(odds * (count - k + 1.0) / (k + 1.0))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if math.log(height * alpha / (a / (side * side) + b)) <= bound:
            return float(k)


THIRD, SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))  # of PyTorch


# -- gamma -------------------------------------------------------------------------------------


def standard_gamma(alpha: Raw, gen: Generator | None = None) -> Raw:
    """Gamma numbers of rate 1, each with its own shape `alpha`; never 0."""
    if alpha.size:
        _check_float("gamma_cpu", alpha.dtype)
    drawn = _gammas(alpha, gen, float if alpha.itemsize == 8 else np.float32)
    least = np.finfo(np.float32 if alpha.itemsize <= 4 else np.float64).tiny
    if dtype_name(alpha.dtype) == "float16":
        least = np.finfo(np.float16).tiny
    return _to_kind(np.maximum(drawn, float(least)), alpha.dtype)


def _gammas(alpha: Raw, gen: Generator | None, kind: Any) -> Raw:
    """Gamma numbers; `kind` is what PyTorch keeps `alpha` in."""
    one = functools.partial(_gamma_one, kind)
    return _draw_each(alpha, gen, 3, one, alpha.astype(np.float64))


def _gamma_one(kind: Any, stream: _Stream, alpha: float) -> float:
    """Marsaglia and Tsang 2000, "A simple method for generating gamma variables"."""
    scale = 1.0
    if alpha < 1.0:  # drawn for alpha + 1, and brought back by the power of a uniform
        if alpha == 0.0:
            return 0.0
        scale = math.pow(1.0 - stream.uniform(), float(kind(1) / kind(alpha)))
        alpha = float(kind(alpha) + kind(1))
    d = float(kind(alpha) - kind(THIRD))
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = stream.normal()
        y = 1.0 + c * x
        while y <= 0.0:
            x = stream.normal()
            y = 1.0 + c * x
        cube = y * y * y
        u = 1.0 - stream.uniform()
        square = x * x
        if u < 1.0 - SQUEEZE * square * square:
            return scale * d * cube
        if math.log(u) < 0.5 * square + d * (1.0 - cube + math.log(cube)):
            return scale * d * cube


def dirichlet(alpha: Raw, gen: Generator | None = None) -> Raw:
    """Rows of positive numbers that sum to 1: gamma numbers of shape `alpha` over their sum."""
    if alpha.size:
        _check_float("dirichlet", alpha.dtype)
    wide = np.float64 if alpha.itemsize == 8 else np.float32
    tiny, eps = float(np.finfo(wide).tiny), float(np.finfo(wide).eps)
    rows = np.maximum(_gammas(alpha, gen, float), np.finfo(np.float64).tiny)
    shares = rows / rows.sum(-1, keepdims=True)
    return _to_kind(np.clip(shares, tiny, 1 - eps / 2), alpha.dtype)
