"""Poisson, binomial and gamma numbers, which are drawn by rejection: as PyTorch draws them.

How many uniforms a number takes depends on the uniforms themselves, so that the place of the next
number in the stream is known only when this one is done. That is why these three, alone of all, are
drawn one after the other in Python: drawn together they would be other numbers for the same seed.

Note [Numbers alike]
    Many numbers of one distribution are drawn together all the same, where attempts take equally
    many uniforms each: the attempts are then the same whichever number they are for, and the
    numbers are those of the attempts that succeed.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.random.exact import F64, Raw, c_cos, c_log, c_log1p, c_sin
from rushlight.random.generator import Generator, default_generator
from rushlight.random.names import FLOATS, dtype_name, not_implemented
from rushlight.random.normals import SCALE53, U21

FEW = 128  # up to here single draws take less time than to save the generator's state


class _Stream:
    """Uniform numbers, one at a time, drawn ahead in large pieces if there will be many (`guess`).
    `settle` leaves the generator where single draws would have left it."""

    uniform: Callable[[], float]

    def __init__(self, gen: Generator, guess: int) -> None:
        self.gen = gen
        self.ahead = guess > FEW
        if not self.ahead:
            self.uniform = self._single
            return
        gen.bits.busy = True
        self.key, self.pos, self.drawn, _ = gen.bits.get()
        self.piece = min(max(guess, 16), 1 << 16)
        self.drawn_ahead = 0
        self.rest: Any = iter(())
        self.uniform = itertools.chain.from_iterable(self._pieces()).__next__

    def _single(self) -> float:
        upper, lower = self.gen.take32(2).tolist()
        return float(((upper & U21) << 32 | lower) * SCALE53)

    def _pieces(self) -> Iterator[Any]:
        while True:
            self.rest = iter(self.gen.unit53(self.piece).tolist())
            self.drawn_ahead += self.piece
            yield self.rest

    def array(self, n: int) -> F64:
        """The next n uniforms, if none are taken singly."""
        self.drawn_ahead += n
        return self.gen.unit53(n)

    def give_back(self, n: int) -> None:
        """Say that the last n of what `array` gave were not used."""
        self.drawn_ahead -= n

    def settle(self) -> None:
        """Give back what was drawn ahead."""
        if not self.ahead:
            return
        bits = self.gen.bits
        bits.set(self.key, self.pos, self.drawn, bits.normal)
        self.gen.take64(self.drawn_ahead - operator.length_hint(self.rest))
        bits.busy = False


def _draw_all(
    like: Raw, gen: Generator | None, fill: Callable[..., bool], draw: Callable[..., list[float]],
    *given: Raw,
) -> Raw:  # fmt: skip
    """A new array of numbers, each from what stands in its place in `given`: `fill` has a compiled
    twister write them, or answers False; then `draw` makes a list of them from lists of those, and
    a stream."""
    out = np.empty(like.shape, np.float64)
    if out.size:
        gen = gen or default_generator
        with gen.lock:
            if fill(gen.bits, out, *[np.ascontiguousarray(x, np.float64) for x in given]):
                return out
            stream = _Stream(gen, out.size * 3)
            try:
                out.reshape(-1)[...] = draw(stream, *[x.reshape(-1).tolist() for x in given])
            finally:
                stream.settle()
    return out


# -- numbers alike -----------------------------------------------------------------------------

ALIKE = 64  # from here on numbers of one distribution are drawn together


def _alike(*given: list[float]) -> bool:
    return len(given[0]) >= ALIKE and all(x.count(x[0]) == len(x) for x in given)


class _Box:
    """Hörmann's transformed rejection: attempts of two uniforms each, a place and a height."""

    a: float
    b: float
    quick: float  # heights up to here succeed, but for places at the sides

    def count(self, at: Any) -> Any:
        """The number that a place stands for, before it is rounded down."""
        raise NotImplementedError

    def test(self, u: float, height: float, side: float, count: float) -> bool:
        """Whether an attempt succeeds that is not quickly done."""
        raise NotImplementedError

    def one(self, uniform: Callable[[], float]) -> float:
        """The next number."""
        a, b, quick = self.a, self.b, self.quick
        while True:
            u = uniform() - 0.5
            height = uniform()
            side = 0.5 - abs(u)
            if side == 0.0:
                continue
            count = math.floor(self.count((2.0 * a / side + b) * u))
            if (side >= 0.07 and height <= quick) or self.test(u, height, side, count):
                return float(count)

    def many(self, stream: _Stream, n: int) -> list[float]:
        """The next n numbers; see Note [Numbers alike]."""
        drawn: list[float] = []
        while len(drawn) < n:
            tries = (n - len(drawn)) * 5 // 4 + 16
            uniforms = stream.array(2 * tries)
            u, height = uniforms[::2] - 0.5, uniforms[1::2]
            side = 0.5 - np.abs(u)
            with np.errstate(divide="ignore", invalid="ignore"):
                counts = np.floor(self.count((2.0 * self.a / side + self.b) * u))
            good = (side >= 0.07) & (height <= self.quick)
            unsure = np.flatnonzero(~good & (side > 0.0))
            given = [x.take(unsure).tolist() for x in (u, height, side, counts)]
            good[unsure] = list(map(self.test, *given))
            places = np.flatnonzero(good)[: n - len(drawn)]
            drawn += counts.take(places).tolist()
            if len(drawn) == n:
                stream.give_back(2 * (tries - 1 - int(places[-1])))
        return drawn


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
    wide = rates.astype(np.float64)
    drawn = _draw_all(rates, gen, lambda bits, *xs: bits.poissons(*xs), _poissons, wide)
    return _to_kind(drawn, rates.dtype)


def _poissons(stream: _Stream, rates: list[float]) -> list[float]:
    if rates[0] >= 10.0 and _alike(rates):
        return _PoissonBox(rates[0]).many(stream, len(rates))
    uniform, exp = stream.uniform, math.exp
    drawn: list[float] = []
    before, least = -1.0, 0.0
    for rate in rates:
        if rate >= 10.0:
            drawn.append(_poisson_box(rate).one(uniform))
        elif rate == 0.0:
            drawn.append(0.0)
        else:  # how many uniforms it takes until their product is below exp(-rate)
            if rate != before:
                before, least = rate, exp(-rate)
            product, count = uniform(), 0
            while product > least:
                count += 1
                product *= uniform()
            drawn.append(count)
    return drawn


class _PoissonBox(_Box):
    """Hörmann 1993, "The transformed rejection method for generating Poisson random variables"."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.b = b = 0.931 + 2.53 * math.sqrt(rate)
        self.a = -0.059 + 0.02483 * b
        self.log_inverse = math.log(1.1239 + 1.1328 / (b - 3.4))
        self.quick = 0.9277 - 3.6224 / (b - 2.0)
        self.log_rate = math.log(rate)
        self.bounds: dict[float, float] = {}  # by count

    def count(self, at: Any) -> Any:
        return at + self.rate + 0.43

    def test(self, u: float, height: float, side: float, count: float) -> bool:
        if count < 0 or (side < 0.013 and height > side):
            return False
        if height == 0.0:
            return True
        left = math.log(height) + self.log_inverse - math.log(self.a / (side * side) + self.b)
        bound = self.bounds.get(count)
        if bound is None:
            bound = -self.rate + count * self.log_rate - math.lgamma(count + 1.0)
            self.bounds[count] = bound
        return left <= bound


_poisson_box = functools.lru_cache(maxsize=4096)(_PoissonBox)


# -- binomial ----------------------------------------------------------------------------------


def binomial(count: Raw, prob: Raw, gen: Generator | None = None) -> Raw:
    """How many of `count` tries succeed, each with probability `prob`; of one shape and dtype."""
    if count.size:
        _check_float("binomial_cpu", count.dtype)
    kind = np.float64 if count.itemsize == 8 else np.float32
    wide, chance = count.astype(np.float64), prob.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        # of two outcomes the rarer is counted; PyTorch computes these in the dtype itself
        same: Any = prob.astype(kind)
        rare = np.where(chance > 0.5, 1.0 - same, same)
        inside = (rare > 0.0) & (rare < 1.0)
        rest = c_log1p()(-np.where(inside, rare, 0.5).astype(np.float64).reshape(-1))
        scale = np.where(inside.reshape(-1), rest, math.nan).astype(kind)
    rounds = np.full(wide.shape, kind is np.float32, np.float64)
    draw = functools.partial(_binomials, kind is np.float32)
    drawn = _draw_all(
        count, gen, lambda bits, *xs: bits.binomials(*xs, rounds), draw, wide, chance, rare, scale
    )
    return _to_kind(drawn, count.dtype)


def _binomials(
    narrow: bool, stream: _Stream, counts: list[float], probs: list[float], rare: list[float],
    scales: list[float],
) -> list[float]:  # fmt: skip
    """`narrow`: each uniform is rounded to float32 where gaps are counted."""
    count, prob, chance = counts[0], probs[0], rare[0]
    if 0.0 < prob < 1.0 and 0.0 < count < 1 << 30 and _alike(counts, probs):
        if count * chance >= 10.0:
            drawn = _BinomialBox(count, chance).many(stream, len(counts))
        else:
            drawn = _by_gaps(narrow, stream, len(counts), count, chance, scales[0])
        return [count - found for found in drawn] if prob > 0.5 else drawn
    uniform, log, ceil, rounded = stream.uniform, math.log, math.ceil, _FLOAT32
    drawn = []
    for count, prob, chance, scale in zip(counts, probs, rare, scales, strict=True):
        if count <= 0.0 or prob <= 0.0:
            drawn.append(0.0)
        elif prob >= 1.0:
            drawn.append(count)
        elif prob != prob or count != count:
            drawn.append(math.nan)
        elif count * chance >= 10.0:
            found = _binomial_box(count, chance).one(uniform)
            drawn.append(count - found if prob > 0.5 else found)
        else:  # successes counted by the geometric gaps between them
            reached, found = 0.0, -1.0
            while reached <= count:
                u = uniform()
                if narrow:
                    u = rounded.unpack(rounded.pack(u))[0]
                reached += ceil(log(u) / scale) if u > 0.0 else math.inf
                found += 1.0
            drawn.append(count - found if prob > 0.5 else found)
    return drawn


_FLOAT32 = struct.Struct("f")


def _by_gaps(
    narrow: bool, stream: _Stream, n: int, count: float, prob: float, scale: float
) -> list[float]:
    """n numbers alike, by gaps: where each begins, the sums of gaps tell where it ends."""
    drawn: list[float] = []
    unit = np.empty(0)
    while len(drawn) < n:
        more = int((n - len(drawn)) * (count * prob + 1.0) * 1.1) + 64
        unit = np.concatenate((unit, stream.array(more)))
        given = unit.astype(np.float32).astype(np.float64) if narrow else unit
        with np.errstate(divide="ignore"):
            gaps = np.ceil(c_log()(given) / scale)
        sums = np.cumsum(np.minimum(gaps, count + 1.0))  # whole numbers: exact
        before = np.concatenate(((0.0,), sums[:-1]))
        ends = np.searchsorted(sums, before + count, "right").tolist()
        at, last = 0, len(ends)
        while at < last and len(drawn) < n:
            end = ends[at]
            if end == last:
                break
            drawn.append(float(end - at))
            at = end + 1
        unit = unit[at:]
    stream.give_back(unit.size)
    return drawn


STIRLING = tuple(
    math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.5 * math.log(2 * math.pi))
    for k in range(10)
)


def _stirling_tail(k: float) -> float:
    """What Stirling's formula lacks of log(k!)."""
    if k <= 9:
        return STIRLING[int(k)]
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)


class _BinomialBox(_Box):
    """Hörmann 1993, "The generation of binomial random variates"."""

    def __init__(self, count: float, prob: float) -> None:
        spread = math.sqrt(count * prob * (1.0 - prob))
        self.tries = count
        self.b = b = 1.15 + 2.53 * spread
        self.a = -0.0873 + 0.0248 * b + 0.01 * prob
        self.centre = count * prob + 0.5
        self.quick = 0.92 - 4.2 / b
        self.odds = prob / (1.0 - prob)
        self.alpha = (2.83 + 5.1 / b) * spread
        self.m = math.floor((count + 1.0) * prob)
        self.bounds: dict[float, float] = {}  # by count

    def count(self, at: Any) -> Any:
        return at + self.centre

    def test(self, u: float, height: float, side: float, count: float) -> bool:
        if count < 0 or count > self.tries:
            return False
        if height == 0.0:
            return True
        bound = self.bounds.get(count)
        if bound is None:
            bound = self.bounds[count] = self.bound(count)
        return math.log(height * self.alpha / (self.a / (side * side) + self.b)) <= bound

    def bound(self, k: float) -> float:
        """What the logarithm of a height may be."""
        m, tries, odds = self.m, self.tries, self.odds
        return (
            (m + 0.5) * math.log((m + 1.0) / (odds * (tries - m + 1.0)))
            + (tries + 1.0) * math.log((tries - m + 1.0) / (tries - k + 1.0))
            + (k + 0.5) * math.log(odds * (tries - k + 1.0) / (k + 1.0))
            + _stirling_tail(m)
            + _stirling_tail(tries - m)
            - _stirling_tail(k)
            - _stirling_tail(tries - k)
        )


_binomial_box = functools.lru_cache(maxsize=4096)(_BinomialBox)


TWO_PI = 2.0 * math.pi
THIRD, SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))  # of PyTorch


# -- gamma -------------------------------------------------------------------------------------


def standard_gamma(alpha: Raw, gen: Generator | None = None) -> Raw:
    """Gamma numbers of rate 1, each with its own shape `alpha`; never 0."""
    if alpha.size:
        _check_float("gamma_cpu", alpha.dtype)
    drawn = _gammas(alpha, gen, np.float64 if alpha.itemsize == 8 else np.float32)
    least = np.finfo(np.float32 if alpha.itemsize <= 4 else np.float64).tiny
    if dtype_name(alpha.dtype) == "float16":
        least = np.finfo(np.float16).tiny
    return _to_kind(np.maximum(drawn, float(least)), alpha.dtype)


def _gammas(alpha: Raw, gen: Generator | None, kind: Any) -> Raw:
    """Gamma numbers; `kind` is what PyTorch keeps `alpha` in."""
    given = alpha.astype(kind)
    small = given < 1  # drawn for alpha + 1, and brought back by the power of a uniform
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(small, kind(1) / given, kind(0))
        d = (np.where(small, given + kind(1), given) - kind(THIRD)).astype(np.float64)
        c = 1.0 / np.sqrt(9.0 * d)
    return _draw_all(
        alpha, gen, lambda bits, *xs: bits.gammas(*xs), _gamma_numbers, given, power, d, c
    )


def _gamma_numbers(
    stream: _Stream, alphas: list[float], powers: list[float], ds: list[float], cs: list[float]
) -> list[float]:
    """Marsaglia and Tsang 2000, "A simple method for generating gamma variables"."""
    if alphas[0] >= 1.0 and _alike(alphas):
        return _gammas_alike(stream, len(alphas), ds[0], cs[0])
    return _gammas_singly(stream.gen, stream.uniform, alphas, powers, ds, cs)


def _gammas_singly(
    gen: Generator, uniform: Callable[[], float], alphas: list[float], powers: list[float],
    ds: list[float], cs: list[float],
) -> list[float]:  # fmt: skip
    log, log1p, cos, sin, sqrt = math.log, math.log1p, math.cos, math.sin, math.sqrt
    kept = gen.bits.normal  # the second of a pair of PyTorch's normals in double precision
    drawn: list[float] = []
    for alpha, power, d, c in zip(alphas, powers, ds, cs, strict=True):
        scale = 1.0
        if power:
            if alpha == 0.0:
                drawn.append(0.0)
                continue
            scale = math.pow(1.0 - uniform(), power)
        while True:
            y = 0.0
            while y <= 0.0:
                if kept is not None:
                    x, kept = kept, None
                else:
                    angle = TWO_PI * uniform()
                    radius = sqrt(-2.0 * log1p(-uniform()))
                    x, kept = radius * cos(angle), radius * sin(angle)
                y = 1.0 + c * x
            cube = y * y * y
            u = 1.0 - uniform()
            square = x * x
            if u < 1.0 - SQUEEZE * square * square or (
                log(u) < 0.5 * square + d * (1.0 - cube + log(cube))
            ):
                drawn.append(scale * d * cube)
                break
    gen.bits.normal = kept
    return drawn


def _gammas_alike(stream: _Stream, n: int, d: float, c: float) -> list[float]:
    """n numbers of one shape, which is at least 1. See Note [Numbers alike]: two attempts take four
    uniforms, two for a pair of normals. Where `1 + c x` is not positive another normal is
    drawn: that number is drawn singly, and so is one that begins with a normal kept from before."""
    gen = stream.gen
    drawn: list[float] = []
    unit, at = np.empty(0), 0
    run = min(1.0 / math.erfc(math.sqrt(4.5 * d)), 1e6)  # of normals that are large enough

    def uniform() -> float:
        nonlocal unit, at
        if at == unit.size:
            unit, at = stream.array(64), 0
        at += 1
        return float(unit[at - 1])

    while len(drawn) < n:
        if gen.bits.normal is not None:
            drawn += _gammas_singly(gen, uniform, [1.0], [0.0], [d], [c])
            continue
        need = 4 * (min((n - len(drawn)) * 5 // 8, int(run)) + 8)
        if unit.size - at < need:
            unit, at = np.concatenate((unit[at:], stream.array(need - unit.size + at))), 0
        block = unit[at : at + need]
        angle = TWO_PI * block[::4]
        radius = np.sqrt(-2.0 * c_log1p()(-block[1::4]))
        x = np.stack((radius * c_cos()(angle), radius * c_sin()(angle)), 1).reshape(-1)
        y = 1.0 + c * x
        stop = int(np.argmax(y <= 0.0)) if (y <= 0.0).any() else x.size
        y = y[:stop]
        u = 1.0 - block.reshape(-1, 4)[:, 2:].reshape(-1)[:stop]
        cube, square = y * y * y, x[:stop] * x[:stop]
        good = u < 1.0 - SQUEEZE * square * square
        unsure = np.flatnonzero(~good)
        cubed, half = cube.take(unsure), 0.5 * square.take(unsure)
        good[unsure] = c_log()(u.take(unsure)) < half + d * (1.0 - cubed + c_log()(cubed))
        places = np.flatnonzero(good)[: n - len(drawn)]
        drawn += (d * cube.take(places)).tolist()
        used = int(places[-1]) + 1 if len(drawn) == n else stop
        at += used // 2 * 4 + used % 2 * 3
        if used % 2:
            gen.bits.normal = float(x[used])
        if len(drawn) < n and stop < x.size:
            drawn += _gammas_singly(gen, uniform, [1.0], [0.0], [d], [c])
    stream.give_back(unit.size - at)
    return drawn


def dirichlet(alpha: Raw, gen: Generator | None = None) -> Raw:
    """Rows of positive numbers that sum to 1: gamma numbers of shape `alpha` over their sum."""
    if alpha.size:
        _check_float("dirichlet", alpha.dtype)
    wide = np.float64 if alpha.itemsize == 8 else np.float32
    tiny, eps = float(np.finfo(wide).tiny), float(np.finfo(wide).eps)
    rows = np.maximum(_gammas(alpha, gen, np.float64), np.finfo(np.float64).tiny)
    shares = rows / rows.sum(-1, keepdims=True)
    return _to_kind(np.clip(shares, tiny, 1 - eps / 2), alpha.dtype)
