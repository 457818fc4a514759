"""Special functions: error functions, gamma functions, Bessel functions; the namespace `special`.

Their values come from SciPy, which is imported when one of them is first used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import binary, unary
from rushlight.core.graph import Node, TensorBase
from rushlight.ops.checks import check_tensor, invalid, is_number, raw_dtype
from rushlight.ops.operands import widen_small_ints
from rushlight.ops.pointwise.family import Pointwise, direction, expose, row
from rushlight.ops.pointwise.unary import SIGMOID, SINC
from rushlight.ops.registry import function, functions, implements, namespaces, op
from rushlight.ops.sample_inputs import Draw, drawn

ROOT_PI: Final = math.sqrt(math.pi)
ROOT_2PI: Final = math.sqrt(2 * math.pi)
ROOT_2: Final = math.sqrt(2.0)


def as_array_like(x: Any, like: Any) -> Any:
    """A number as an array in the dtype of `like`: SciPy takes bare numbers for doubles."""
    return x if hasattr(x, "dtype") else v.constant(like, x, raw_dtype(like))


class Special(Pointwise):
    """A special function of real numbers: `scipy` is SciPy's name for it."""

    promotion, refuses = "float", "c"
    saves: ClassVar[tuple[str, ...]] = ("self",)
    scipy: ClassVar[str] = ""

    def forward(self, *xs: Any) -> Any:
        like = next(x for x in xs if hasattr(x, "dtype"))
        ready = [as_array_like(x, like) for x in xs]
        return v.special(ready[0], self.scipy, *ready[1:])


by_name: Final[dict[str, Any]] = {"expit": SIGMOID, "sinc": SINC}
_special: Final = namespaces["special"]
_IN_SPECIAL: Final[dict[str, Any]] = {
    "inplace": False, "method": False, "free": False, "namespace": "special",
}  # fmt: skip


def _special_row(
    name: str, scipy: str, text: str, partials: Any, forward: Any = None,
    also: tuple[str, ...] = (), **facts: Any,
) -> None:  # fmt: skip
    """A function of SciPy's: in `torch` and under the names `also` in `torch.special`, or, if it is
    called `special_...`, there alone."""
    if name.startswith("special_"):
        facts.update(_IN_SPECIAL)
    by_name[scipy] = row(name, Special, text, forward, partials, scipy=scipy, **facts)
    for title in also:
        _special[title] = functions[name]


# --- error functions ------------------------------------------------------------------------------
_special_row(
    "erf", "erf", "The error function.", lambda x: (2 / ROOT_PI * v.exp(-(x * x)),), also=("erf",),
    kernel="erf_vml_cpu", scalar="erf({0})", at="[0., 1.]", gives="[0.0000, 0.8427]",
)  # fmt: skip
_special_row(
    "erfc", "erfc", "One minus the error function, exact where that is small.",
    lambda x: (-2 / ROOT_PI * v.exp(-(x * x)),), also=("erfc",), kernel="erfc_vml_cpu",
    scalar="erfc({0})", at="[0., 1.]", gives="[1.0000, 0.1573]",
)  # fmt: skip


def _erfinv_slope(x: Any) -> Any:
    y = v.special(x, "erfinv")
    return (ROOT_PI / 2 * v.exp(y * y),)


_special_row(
    "erfinv", "erfinv", "The inverse of the error function.", _erfinv_slope, also=("erfinv",),
    kernel="erfinv_vml_cpu", domain="unit", at="[0., 0.5]", gives="[0.0000, 0.4769]",
)  # fmt: skip
_special_row(
    "special_erfcx", "erfcx", "exp(x²) · erfc(x), exact where that is small.",
    lambda x, y: (2 * x * y - 2 / ROOT_PI,), at="[0., 1.]", gives="[1.0000, 0.4276]",
)  # fmt: skip
_special_row(
    "special_ndtr", "ndtr", "The share of a normal distribution below x.",
    lambda x: (v.exp(x * x * -0.5) * (1 / ROOT_2PI),), at="[0., 1.]", gives="[0.5000, 0.8413]",
)  # fmt: skip
_special_row(
    "special_ndtri", "ndtri", "The x below which a share of a normal distribution lies.",
    lambda y: (v.exp(y * y * 0.5) * ROOT_2PI,), domain="probability", at="[0.5, 0.9]",
    gives="[0.0000, 1.2816]",
)  # fmt: skip
_special_row(
    "special_log_ndtr", "log_ndtr", "The logarithm of the share of a normal distribution below x.",
    lambda x: (math.sqrt(2 / math.pi) / v.special(x * (-1 / ROOT_2), "erfcx"),), at="[0., 1.]",
    gives="[-0.6931, -0.1728]",
)  # fmt: skip
_special_row(
    "special_entr", "entr", "-x · log(x): a share's part of the entropy.",
    lambda x: (-1 - v.log(x),), domain="positive", at="[0., 0.5]", gives="[0.0000, 0.3466]",
)  # fmt: skip


# --- gamma functions ------------------------------------------------------------------------------
# where they are not SciPy's: it has -inf for lgamma at -inf, and one sign for the pole of digamma
_special_row(
    "lgamma", "gammaln", "The logarithm of the absolute value of the gamma function.",
    lambda x: (v.special(x, "digamma"),),
    lambda x: v.where(x == -math.inf, math.inf, v.special(x, "gammaln")), also=("gammaln",),
    kernel="lgamma_vml_cpu", domain="positive", at="[1., 4.]", gives="[0.0000, 1.7918]",
)  # fmt: skip
_special_row(
    "digamma", "digamma", "The derivative of `lgamma`.", lambda x: (v.polygamma(x, 1),),
    lambda x: v.where(x == 0, v.copysign(math.inf, -x), v.special(x, "digamma")),
    also=("digamma", "psi"), kernel="digamma", domain="positive", at="[1., 4.]",
    gives="[-0.5772,  1.2561]",
)  # fmt: skip


@op
class Polygamma(Special):
    """The derivative number `n` of `digamma`."""

    name, params, kernel, domain = "polygamma", ("n",), "polygamma", "positive"
    n: int

    def forward(self, *xs: Any) -> Any:
        return v.polygamma(xs[0], self.n)

    def partials(self, x: Any) -> Any:
        return (v.polygamma(x, self.n + 1),)

    samples = drawn(positive=[(1, (2, 3)), (2, ()), (0, (0, 2))])


@op
class Mvlgamma(Special):
    """The logarithm of the gamma function of `p` dimensions."""

    name, params, kernel = "mvlgamma", ("p",), "mvlgamma"
    lies = "rows"
    p: int

    def forward(self, *xs: Any) -> Any:
        y = self.sum_shifted(xs[0], "gammaln")
        return y + self.p * (self.p - 1) / 4 * math.log(math.pi)

    def partials(self, x: Any) -> Any:
        return (self.sum_shifted(x, "digamma"),)

    def sum_shifted(self, x: Any, name: str) -> Any:
        """The sum of a function at x, x - 1/2, x - 1, ..."""
        y = v.special(x, name)
        for k in range(1, self.p):
            y = y + v.special(x - k / 2, name)
        return y

    samples = drawn(above_one=[(1, (2, 3)), (3, ()), (2, (0, 2))])


class HalfKnown(Special):
    """A function of two numbers with a derivative by the second only."""

    inputs, saves, domain = ("self", "other"), ("self", "other"), "above_one"
    missing: ClassVar[str] = ""

    def slope(self, a: Any, x: Any) -> Any:
        """The derivative by the second."""
        raise NotImplementedError

    def vjp(self, node: Node, g: Any, a: Any, x: Any) -> Any:
        if node._needs_grad(0):
            raise NotImplementedError(f"the derivative for '{self.missing}' is not implemented.")
        return None, g * self.slope(a, x)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        if ts[0] is not None:
            raise NotImplementedError(f"the derivative for '{self.missing}' is not implemented.")
        return ts[1] * self.slope(*xs)

    @classmethod
    def samples(cls, draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield cls(), 2.5, draw.above_one(2, 3)
        yield cls(), 1.5, draw.above_one()


@op
class Zeta(HalfKnown):
    """The Hurwitz zeta function: the sum of 1 / (k + other)**input over k = 0, 1, ..."""

    name, node, missing, scipy = "special_zeta", "SpecialZetaBackward0", "zeta", "zeta"

    def slope(self, a: Any, x: Any) -> Any:
        return -a * v.special(as_array_like(a + 1, x), "zeta", x)


@op
class Igamma(HalfKnown):
    """The regularised lower incomplete gamma function."""

    name, missing, scipy = "igamma", "igamma: input", "gammainc"
    sign: ClassVar[int] = 1

    def slope(self, a: Any, x: Any) -> Any:
        return self.sign * v.exp((a - 1) * v.log(x) - x - v.special(as_array_like(a, x), "gammaln"))


@op
class Igammac(Igamma):
    """The regularised upper incomplete gamma function."""

    name, missing, scipy, sign = "igammac", "igammac: input", "gammaincc", -1


# --- Bessel functions -----------------------------------------------------------------------------
_special_row(
    "i0", "i0", "The modified Bessel function of the first kind, of order 0.",
    lambda x: (v.special(x, "i1"),), also=("i0",), kernel="i0_vml_cpu", at="[0., 1.]",
    gives="[1.0000, 1.2661]",
)  # fmt: skip
_special_row(
    "special_i0e", "i0e", "`i0` scaled by exp(-|x|).",
    lambda x, y: (v.special(x, "i1e") - direction(x) * y,), node="SpecialI0EBackward0",
    at="[0., 1.]", gives="[1.0000, 0.4658]",
)  # fmt: skip


def _i1_slope(x: Any, y: Any) -> Any:
    safe = v.where(x == 0, 1, x)
    return (v.where(x == 0, 0.5, v.special(safe, "i0") - y / safe),)


def _i1e_slope(x: Any, y: Any) -> Any:
    safe = v.where(x == 0, 1, x)
    slope = v.special(safe, "i0e") - y * (direction(safe) + 1 / safe)
    return (v.where(x == 0, 0.5, slope),)


_special_row(
    "special_i1", "i1", "The modified Bessel function of the first kind, of order 1.", _i1_slope,
    at="[0., 1.]", gives="[0.0000, 0.5652]",
)  # fmt: skip
_special_row(
    "special_i1e", "i1e", "`i1` scaled by exp(-|x|).", _i1e_slope, node="SpecialI1EBackward0",
    at="[0., 1.]", gives="[0.0000, 0.2079]",
)  # fmt: skip
for _name, _scipy, _text, _at_one in (
    ("bessel_j0", "j0", "Bessel function of the first kind, of order 0", 0.7652),
    ("bessel_j1", "j1", "Bessel function of the first kind, of order 1", 0.4401),
    ("bessel_y0", "y0", "Bessel function of the second kind, of order 0", 0.0883),
    ("bessel_y1", "y1", "Bessel function of the second kind, of order 1", -0.7812),
    ("modified_bessel_i0", "i0", "modified Bessel function of the first kind, of order 0", 1.2661),
    ("modified_bessel_i1", "i1", "modified Bessel function of the first kind, of order 1", 0.5652),
    ("modified_bessel_k0", "k0", "modified Bessel function of the second kind, of order 0", 0.4210),
    ("modified_bessel_k1", "k1", "modified Bessel function of the second kind, of order 1", 0.6019),
    ("scaled_modified_bessel_k0", "k0e", "`modified_bessel_k0` times exp(x), of order 0", 1.1445),
    ("scaled_modified_bessel_k1", "k1e", "`modified_bessel_k1` times exp(x), of order 1", 1.6362),
):  # fmt: skip
    row(
        "special_" + _name, Special, f"The {_text}.", None, scipy=_scipy, differentiable=False,
        saves=(), at="[1.]", gives=f"[{_at_one:.4f}]", **_IN_SPECIAL,
    )  # fmt: skip
_special["expit"] = functions["sigmoid"]


# --- products with logarithms ---------------------------------------------------------------------
@op
class Xlogy(Special):
    """input · log(other), and 0 where `input` is 0."""

    name, scipy, kernel = "xlogy", "xlogy", "xlogy_cpu"
    aten = "xlogy.Tensor"
    inputs, saves, domain = ("self", "other"), ("self", "other"), "positive"

    def partials(self, a: Any, b: Any) -> Any:
        return v.where(v.logical_and(a == 0, b <= 0), 0, v.log(widen_small_ints(b))), a / b


@op
class Xlog1py(Special):
    """input · log(1 + other), and 0 where `input` is 0."""

    name, node, scipy = "special_xlog1py", "SpecialXlog1PyBackward0", "xlog1py"
    inputs, saves, domain = ("self", "other"), ("self", "other"), "positive"

    def partials(self, a: Any, b: Any) -> Any:
        b = widen_small_ints(b)
        return v.where(v.logical_and(a == 0, b <= -1), 0, v.log1p(b)), a / (b + 1)


# --- the public functions -------------------------------------------------------------------------
def _expose_pair(cls: Any, stem: str, at: str, gives: str, **where: Any) -> None:
    """The function of an op that takes a number in the place of either tensor, where PyTorch's node
    has another name."""
    of_number, by_number = (
        type(cls.__name__, (cls,), {"node": f"{stem}Backward{n}", "shown_edges": (2 - n,)})()
        for n in (1, 2)
    )

    def choose(name: str, input: Any, other: Any) -> Any:
        first = isinstance(input, TensorBase)
        number, tensor = (other, input) if first else (input, other)
        if not (is_number(number) and isinstance(tensor, TensorBase)):
            raise invalid(
                name, (input, other), "(Tensor input, Tensor other, *, Tensor out = None)",
                "(Number self, Tensor other, *, Tensor out = None)",
                "(Tensor input, Number other, *, Tensor out = None)",
            )  # fmt: skip
        return by_number if first else of_number

    by_name[cls.scipy] = expose(cls, at, gives, choose=choose, **where)


_expose_pair(
    Xlogy, "Xlogy", "torch.tensor([0., 2.]), torch.tensor([0., 2.])", "[0.0000, 1.3863]",
    namespace="special",
)  # fmt: skip
_expose_pair(
    Xlog1py, "SpecialXlog1Py", "torch.tensor([0., 2.]), torch.tensor([-1., 1.])",
    "[0.0000, 1.3863]", **_IN_SPECIAL,
)  # fmt: skip
_expose_pair(Zeta, "SpecialZeta", "torch.tensor([2., 4.]), 1", "[1.6449, 1.0823]", **_IN_SPECIAL)
by_name["gammainc"] = expose(Igamma, "torch.tensor([4.]), torch.tensor([3.])", "[0.3528]")
by_name["gammaincc"] = expose(Igammac, "torch.tensor([4.]), torch.tensor([3.])", "[0.6472]")
_special["gammainc"], _special["gammaincc"] = functions["igamma"], functions["igammac"]


def _polygamma(n: Any, input: Any) -> Any:
    check_tensor(input, "polygamma", "input", 2)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return Polygamma(n), (input,)


@function(out=True, method=False, namespace="special")
def polygamma(n: int, input: Any) -> Any:
    """The derivative number `n` of `digamma`.

    Args:
        n: which derivative of `digamma`.

    >>> torch.polygamma(1, torch.tensor([1., 0.5]))
    tensor([1.6449, 4.9348])
    """
    return _polygamma(n, input)


@function(out=True, free=False, inplace=True, name="polygamma")
def polygamma_method(input: Any, n: int) -> Any:
    """See `rushlight.polygamma`.

    Args:
        n: which derivative of `digamma`.
    """
    return _polygamma(n, input)


@function(out=True, inplace=True)
def mvlgamma(input: Any, p: int) -> Any:
    """The logarithm of the gamma function of `p` dimensions.

    Args:
        p: the dimension of the multivariate function.

    >>> torch.mvlgamma(torch.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if p > 1 << 24:  # a term each: PyTorch finds no memory for them
        raise RuntimeError(f"DefaultCPUAllocator: not enough memory: mvlgamma of order {p}")
    return Mvlgamma(p), (input,)


_special["multigammaln"] = functions["mvlgamma"]


# --- primitives -----------------------------------------------------------------------------------
@implements("special")
def _by_name(x: Any, name: str, *others: Any) -> Any:
    made = by_name.get(name)
    if made is None:
        raise NotImplementedError(f"no op answers to the special function {name!r} on tensors")
    return binary(made, x, *others) if others else unary(made, x)


@implements("polygamma")
def _polygamma_word(x: Any, n: int) -> Any:
    return unary(Polygamma(n), x)
