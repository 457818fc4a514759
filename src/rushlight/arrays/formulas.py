"""Element-wise functions that SciPy has not under one name: a primitive by name, like `special`.

Orthogonal polynomials by their recurrences, Airy's function, and how gamma and beta variables move
with their parameters. Imported late, by the ops that use them. Arrays of CuPy are brought to the
host and back.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays.batched import map_elementwise, rules
from rushlight.arrays.lapack import _on_host
from rushlight.arrays.vocabulary import low_precision, primitive

Array = Any
formulas: Final[dict[str, Callable[..., Any]]] = {}


@primitive
@_on_host
def formula(x: Array, name: str, *others: Array) -> Array:
    """A function of this file by name, element by element; the operands broadcast."""
    dtype = np.result_type(x, *[y for y in others if isinstance(y, np.ndarray)])
    wide = np.float32 if low_precision(dtype) else dtype
    ready = [np.asarray(y, wide) for y in (x, *others)]
    with np.errstate(all="ignore"):
        return np.asarray(formulas[name](*ready)).astype(dtype, copy=False)


def _batched(primitive: Any, level: Any, x: Any, name: str, *others: Any) -> Any:
    return map_elementwise(lambda x, *others: primitive(x, name, *others), (x, *others))


rules["formula"] = _batched


def _formula(fn: Callable[..., Any]) -> Callable[..., Any]:
    formulas[fn.__name__.strip("_")] = fn
    return fn


def _scipy(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)


# --- functions of one number ----------------------------------------------------------------------
@_formula
def airy_ai(x: Array) -> Array:
    """Airy's function Ai, where PyTorch has it: not at infinities."""
    return np.where(np.isinf(x), np.nan, _scipy("airy")(x)[0])


@_formula
def spherical_bessel_j0(x: Array) -> Array:
    """sin(x) / x; 1 at 0, and 0 at infinities."""
    safe = np.where((x == 0) | np.isinf(x), 1, x)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, np.sin(safe) / safe))


# --- orthogonal polynomials -----------------------------------------------------------------------
def _recur(
    x: Array, n: Array, first: Array, step: Callable[[Array, Array, int], Array], most: int = 0
) -> Array:
    """Polynomials by a recurrence from 1 and `first`: `step(last, before, k)` is number k + 1.
    Elements are done when their own number is reached. `most` is the last that is not NaN."""
    n = np.trunc(n)
    before = np.ones(np.broadcast_shapes(x.shape, n.shape), x.dtype)
    last = np.broadcast_to(first, before.shape).astype(x.dtype)
    out = np.where(n < 0, 0, np.where(n == 0, before, last))
    if most:
        out = np.where(n > most, np.nan, out)
        n = np.where(n > most, 0, n)
    highest = int(np.nanmax(n)) if n.size else 0
    for k in range(1, highest):
        before, last = last, step(last, before, k)
        out = np.where(n == k + 1, last, out)
    return out.astype(x.dtype, copy=False)


def _by_angle(x: Array, n: Array, least: int, ends: Any, angle: Any, direct: Any) -> Array:
    """Chebyshev polynomials: by name at the ends -1 and 1, by angles between them from number
    `least` on, by the recurrence elsewhere."""
    n = np.trunc(n)
    x, n = np.broadcast_arrays(x, n)
    inside = (np.abs(x) < 1) & (n > least)
    at_end = np.abs(x) == 1
    sign = np.where(n % 2 == 0, 1.0, -1.0)
    theta = np.arccos(np.clip(x, -1, 1))
    quick = np.where(at_end, ends(x > 0, n, sign), angle(theta, n))
    slow = direct(x, np.where(inside | at_end, 0, n))
    return np.where(n < 0, 0, np.where(inside | at_end, quick, slow)).astype(x.dtype, copy=False)


def _chebyshev(first: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    def direct(x: Array, n: Array) -> Array:
        return _recur(x, n, first(x), lambda last, before, k: 2 * x * last - before)

    return direct


_T, _U = _chebyshev(lambda x: x), _chebyshev(lambda x: 2 * x)
_V, _W = _chebyshev(lambda x: 2 * x - 1), _chebyshev(lambda x: 2 * x + 1)


@_formula
def chebyshev_polynomial_t(x: Array, n: Array) -> Array:
    """cos(n θ) at cos(θ)."""
    return _by_angle(
        x, n, 6, lambda up, n, sign: np.where(up, 1, sign), lambda a, n: np.cos(n * a), _T
    )


@_formula
def chebyshev_polynomial_u(x: Array, n: Array) -> Array:
    """sin((n + 1) θ) / sin(θ)."""
    return _by_angle(
        x, n, 8, lambda up, n, sign: np.where(up, 1, sign) * (n + 1),
        lambda a, n: np.sin((n + 1) * a) / np.sin(a), _U,
    )  # fmt: skip


@_formula
def chebyshev_polynomial_v(x: Array, n: Array) -> Array:
    """cos((n + 1/2) θ) / cos(θ / 2)."""
    return _by_angle(
        x, n, 8, lambda up, n, sign: np.where(up, 1, sign * (2 * n + 1)),
        lambda a, n: np.cos((n + 0.5) * a) / np.cos(a / 2), _V,
    )  # fmt: skip


@_formula
def chebyshev_polynomial_w(x: Array, n: Array) -> Array:
    """sin((n + 1/2) θ) / sin(θ / 2)."""
    return _by_angle(
        x, n, 8, lambda up, n, sign: np.where(up, 2 * n + 1, sign),
        lambda a, n: np.sin((n + 0.5) * a) / np.sin(a / 2), _W,
    )  # fmt: skip


def _shift(letter: str) -> None:
    plain = formulas[f"chebyshev_polynomial_{letter}"]
    formulas[f"shifted_chebyshev_polynomial_{letter}"] = lambda x, n: plain(2 * x - 1, n)


for _letter in "tuvw":
    _shift(_letter)


def _most(x: Array) -> int:
    """The last Hermite polynomial that PyTorch computes: later ones overflow."""
    return 512 if x.dtype.itemsize == 8 else 128


@_formula
def hermite_polynomial_h(x: Array, n: Array) -> Array:
    """H[k+1] = 2 x H[k] - 2 k H[k-1]."""
    return _recur(x, n, 2 * x, lambda last, before, k: 2 * (x * last - k * before), _most(x))


@_formula
def hermite_polynomial_he(x: Array, n: Array) -> Array:
    """He[k+1] = x He[k] - k He[k-1]."""
    return _recur(x, n, x, lambda last, before, k: x * last - k * before, _most(x))


@_formula
def laguerre_polynomial_l(x: Array, n: Array) -> Array:
    """(k + 1) L[k+1] = (2 k + 1 - x) L[k] - k L[k-1]."""
    return _recur(
        x, n, 1 - x, lambda last, before, k: ((2 * k + 1 - x) * last - k * before) / (k + 1)
    )


@_formula
def legendre_polynomial_p(x: Array, n: Array) -> Array:
    """(k + 1) P[k+1] = (2 k + 1) x P[k] - k P[k-1]."""
    return _recur(x, n, x, lambda last, before, k: ((2 * k + 1) * x * last - k * before) / (k + 1))


# --- how random variables move with their parameters ----------------------------------------------
# Note [Implicit derivatives]
#     A variable drawn from a distribution F(x; a) may be thought of as the x at which F is some
#     uniform number; as `a` moves and the number stays, dx/da = -(dF/da) / (dF/dx). SciPy has F but
#     not dF/da: it is taken from differences of log F (or of log(1 - F) in the upper half), to the
#     sixth order, which leaves ten digits or more.
_STENCIL: Final = ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))


def _slope_of_log(tail: Callable[[Array], Array], a: Array, step: Array) -> Array:
    return sum(
        weight * (np.log(tail(a + k * step)) - np.log(tail(a - k * step))) for k, weight in _STENCIL
    ) / step  # fmt: skip


def _moves(lower: Any, upper: Any, is_low: Array, a: Array, log_density: Array) -> Array:
    step = 0.01 * np.minimum(a, np.sqrt(a))
    low = -np.exp(np.log(lower(a)) - log_density) * _slope_of_log(lower, a, step)
    high = np.exp(np.log(upper(a)) - log_density) * _slope_of_log(upper, a, step)
    return np.where(is_low, low, high)


@_formula
def implicit_gamma(alpha: Array, x: Array) -> Array:
    """dx/dalpha of a gamma variable x of shape alpha; see Note [Implicit derivatives]."""
    a, x = np.broadcast_arrays(alpha.astype(np.float64), x.astype(np.float64))
    below, above, log_gamma = _scipy("gammainc"), _scipy("gammaincc"), _scipy("gammaln")
    density = (a - 1) * np.log(x) - x - log_gamma(a)
    moved = _moves(lambda a: below(a, x), lambda a: above(a, x), x < a, a, density)
    # so far below that F itself is lost: F = x**a / Gamma(a + 1)
    tiny = -x * (np.log(x) - _scipy("digamma")(a + 1)) / a
    return np.where(below(a, x) < 1e-280, tiny, moved)


@_formula
def implicit_beta(x: Array, alpha: Array, total: Array) -> Array:
    """dx/dalpha / (1 - x) of a beta variable x of shapes alpha and total - alpha."""
    x, a, total = np.broadcast_arrays(*[y.astype(np.float64) for y in (x, alpha, total)])
    b = total - a
    below, above, log_beta = _scipy("betainc"), _scipy("betaincc"), _scipy("betaln")
    density = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - log_beta(a, b)
    low = x * total < a
    moved = _moves(lambda a: below(a, b, x), lambda a: above(a, b, x), low, a, density)
    digamma = _scipy("digamma")
    tiny = -x / a * (np.log(x) - 1 / a - digamma(a) + digamma(total))
    return np.where(below(a, b, x) < 1e-280, tiny, moved) / (1 - x)
