"""Special functions: error functions, gamma functions, Bessel functions; the namespace `special`.

Their values come from SciPy, which is imported when one of them is first used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import binary, unary
from rushlight.core.elementwise import operand
from rushlight.core.graph import Node, TensorBase
from rushlight.ops.arguments import raw_dtype
from rushlight.ops.checks import check_tensors, invalid, is_number
from rushlight.ops.operands import roomy
from rushlight.ops.pointwise.family import Pointwise, direction, expose
from rushlight.ops.pointwise.unary import SIGMOID, SINC
from rushlight.ops.registry import function, functions, implements, namespaces, op
from rushlight.ops.sample_inputs import Draw

ROOT_PI: Final = math.sqrt(math.pi)
ROOT_2PI: Final = math.sqrt(2 * math.pi)
ROOT_2: Final = math.sqrt(2.0)


def lifted(x: Any, like: Any) -> Any:
    """A number as an array in the dtype of `like`: SciPy takes bare numbers for doubles."""
    return x if hasattr(x, "dtype") else v.constant(like, x, raw_dtype(like))


class Special(Pointwise):
    """A special function of real numbers: `scipy` is SciPy's name for it."""

    promotion, refuses = "float", "c"
    saves: ClassVar[tuple[str, ...]] = ("self",)
    scipy: ClassVar[str] = ""

    def forward(self, *xs: Any) -> Any:
        like = next(x for x in xs if hasattr(x, "dtype"))
        ready = [lifted(x, like) for x in xs]
        return v.special(ready[0], self.scipy, *ready[1:])


# --- error functions ------------------------------------------------------------------------------
@op
class Erf(Special):
    """The error function."""

    name, scipy, kernel, scalar = "erf", "erf", "erf_vml_cpu", "erf({0})"

    def partials(self, x: Any) -> Any:
        return (2 / ROOT_PI * v.exp(-(x * x)),)


@op
class Erfc(Special):
    """One minus the error function, exact where that is small."""

    name, scipy, kernel, scalar = "erfc", "erfc", "erfc_vml_cpu", "erfc({0})"

    def partials(self, x: Any) -> Any:
        return (-2 / ROOT_PI * v.exp(-(x * x)),)


@op
class Erfinv(Special):
    """The inverse of the error function."""

    name, scipy, kernel, domain = "erfinv", "erfinv", "erfinv_vml_cpu", "unit"

    def partials(self, x: Any) -> Any:
        y = v.special(x, "erfinv")
        return (ROOT_PI / 2 * v.exp(y * y),)


@op
class Erfcx(Special):
    """exp(x²) · erfc(x), exact where that is small."""

    name, node, scipy = "special_erfcx", "SpecialErfcxBackward0", "erfcx"
    saves = ("self", "result")

    def partials(self, x: Any, y: Any) -> Any:
        return (2 * x * y - 2 / ROOT_PI,)


@op
class Ndtr(Special):
    """The share of a normal distribution below x."""

    name, scipy = "special_ndtr", "ndtr"

    def partials(self, x: Any) -> Any:
        return (v.exp(x * x * -0.5) * (1 / ROOT_2PI),)


@op
class Ndtri(Special):
    """The x below which a share of a normal distribution lies."""

    name, scipy, saves, domain = "special_ndtri", "ndtri", ("result",), "probability"

    def partials(self, y: Any) -> Any:
        return (v.exp(y * y * 0.5) * ROOT_2PI,)


@op
class LogNdtr(Special):
    """The logarithm of the share of a normal distribution below x."""

    name, scipy = "special_log_ndtr", "log_ndtr"

    def partials(self, x: Any) -> Any:
        return (math.sqrt(2 / math.pi) / v.special(x * (-1 / ROOT_2), "erfcx"),)


@op
class Entr(Special):
    """-x · log(x): a share's part of the entropy."""

    name, scipy, domain = "special_entr", "entr", "positive"

    def partials(self, x: Any) -> Any:
        return (-1 - v.log(x),)


# --- gamma functions ------------------------------------------------------------------------------
@op
class Lgamma(Special):
    """The logarithm of the absolute value of the gamma function."""

    name, scipy, kernel, domain = "lgamma", "gammaln", "lgamma_vml_cpu", "positive"

    def forward(self, *xs: Any) -> Any:
        x = xs[0]
        return v.where(x == -math.inf, math.inf, v.special(x, "gammaln"))  # SciPy has -inf there

    def partials(self, x: Any) -> Any:
        return (v.special(x, "digamma"),)


@op
class Digamma(Special):
    """The derivative of `lgamma`."""

    name, scipy, kernel, domain = "digamma", "digamma", "digamma", "positive"

    def forward(self, *xs: Any) -> Any:
        x = xs[0]
        # SciPy is right everywhere but at the pole in zero, whose side the sign of zero tells
        return v.where(x == 0, v.copysign(math.inf, -x), v.special(x, "digamma"))

    def partials(self, x: Any) -> Any:
        return (v.polygamma(x, 1),)


@op
class Polygamma(Special):
    """The derivative number `n` of `digamma`."""

    name, params, kernel, domain = "polygamma", ("n",), "polygamma", "positive"

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, *xs: Any) -> Any:
        return v.polygamma(xs[0], self.n)

    def partials(self, x: Any) -> Any:
        return (v.polygamma(x, self.n + 1),)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Polygamma(1), draw.positive(2, 3)
        yield Polygamma(2), draw.positive()
        yield Polygamma(0), draw.positive(0, 2)


@op
class Mvlgamma(Special):
    """The logarithm of the gamma function of `p` dimensions."""

    name, params, kernel = "mvlgamma", ("p",), "mvlgamma"
    lies = "rows"

    def __init__(self, p: int) -> None:
        super().__init__()
        self.p = p

    def forward(self, *xs: Any) -> Any:
        y = self.summed(xs[0], "gammaln")
        return y + self.p * (self.p - 1) / 4 * math.log(math.pi)

    def partials(self, x: Any) -> Any:
        return (self.summed(x, "digamma"),)

    def summed(self, x: Any, name: str) -> Any:
        """The sum of a function at x, x - 1/2, x - 1, ..."""
        y = v.special(x, name)
        for k in range(1, self.p):
            y = y + v.special(x - k / 2, name)
        return y

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Mvlgamma(1), draw.above_one(2, 3)
        yield Mvlgamma(3), draw.above_one()
        yield Mvlgamma(2), draw.above_one(0, 2)


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
        return -a * v.special(lifted(a + 1, x), "zeta", x)


class ZetaOfNumber(Zeta):
    """The Hurwitz zeta function with a number first."""

    node = "SpecialZetaBackward1"


class ZetaAtNumber(Zeta):
    """The Hurwitz zeta function with a number last."""

    node = "SpecialZetaBackward2"


@op
class Igamma(HalfKnown):
    """The regularised lower incomplete gamma function."""

    name, missing, scipy = "igamma", "igamma: input", "gammainc"
    sign: ClassVar[int] = 1

    def slope(self, a: Any, x: Any) -> Any:
        return self.sign * v.exp((a - 1) * v.log(x) - x - v.special(lifted(a, x), "gammaln"))


@op
class Igammac(Igamma):
    """The regularised upper incomplete gamma function."""

    name, missing, scipy, sign = "igammac", "igammac: input", "gammaincc", -1


# --- Bessel functions -----------------------------------------------------------------------------
@op
class I0(Special):
    """The modified Bessel function of the first kind, of order 0."""

    name, scipy, kernel = "i0", "i0", "i0_vml_cpu"

    def partials(self, x: Any) -> Any:
        return (v.special(x, "i1"),)


@op
class I0e(Special):
    """`i0` scaled by exp(-|x|)."""

    name, node, scipy, saves = "special_i0e", "SpecialI0EBackward0", "i0e", ("self", "result")

    def partials(self, x: Any, y: Any) -> Any:
        return (v.special(x, "i1e") - direction(x) * y,)


@op
class I1(Special):
    """The modified Bessel function of the first kind, of order 1."""

    name, scipy, saves = "special_i1", "i1", ("self", "result")

    def partials(self, x: Any, y: Any) -> Any:
        safe = v.where(x == 0, 1, x)
        return (v.where(x == 0, 0.5, v.special(safe, "i0") - y / safe),)


@op
class I1e(Special):
    """`i1` scaled by exp(-|x|)."""

    name, node, scipy, saves = "special_i1e", "SpecialI1EBackward0", "i1e", ("self", "result")

    def partials(self, x: Any, y: Any) -> Any:
        safe = v.where(x == 0, 1, x)
        slope = v.special(safe, "i0e") - y * (direction(safe) + 1 / safe)
        return (v.where(x == 0, 0.5, slope),)


class Bessel(Special):
    """A function without derivatives."""

    differentiable, saves = False, ()


_BESSEL: Final = (
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
)  # fmt: skip


# --- products with logarithms ---------------------------------------------------------------------
@op
class Xlogy(Special):
    """input · log(other), and 0 where input is 0."""

    name, scipy, kernel = "xlogy", "xlogy", "xlogy_cpu"
    aten = "xlogy.Tensor"
    inputs, saves, domain = ("self", "other"), ("self", "other"), "positive"

    def partials(self, a: Any, b: Any) -> Any:
        return v.where(v.logical_and(a == 0, b <= 0), 0, v.log(roomy(b))), a / b


class XlogyOfNumber(Xlogy):
    """A number · log(other)."""

    shown_edges = (1,)

    node = "XlogyBackward1"


class XlogyByNumber(Xlogy):
    """input · log of a number."""

    shown_edges = (0,)

    node = "XlogyBackward2"


@op
class Xlog1py(Special):
    """input · log(1 + other), and 0 where input is 0."""

    name, node, scipy = "special_xlog1py", "SpecialXlog1PyBackward0", "xlog1py"
    inputs, saves, domain = ("self", "other"), ("self", "other"), "positive"

    def partials(self, a: Any, b: Any) -> Any:
        b = roomy(b)
        return v.where(v.logical_and(a == 0, b <= -1), 0, v.log1p(b)), a / (b + 1)


class Xlog1pyOfNumber(Xlog1py):
    """A number · log(1 + other)."""

    node = "SpecialXlog1PyBackward1"


class Xlog1pyByNumber(Xlog1py):
    """input · log(1 + a number)."""

    node = "SpecialXlog1PyBackward2"


# --- the public functions -------------------------------------------------------------------------
by_name: Final[dict[str, Any]] = {"expit": SIGMOID, "sinc": SINC}
_special: Final = namespaces["special"]


def _both_ways(cls: Any, example: str, shown: str, *special: str) -> None:
    """A function in `torch` and, under its names there, in `torch.special`."""
    made = by_name[cls.scipy] = expose(cls, example, shown)
    for name in special:
        _special[name] = functions[made.name]


def _in_special(cls: Any, name: str, example: str, shown: str) -> None:
    """A function in `torch.special` alone."""
    by_name[cls.scipy] = expose(
        cls, example, shown, name=name, inplace=False, method=False, free=False, namespace="special"
    )


_both_ways(Erf, "torch.tensor([0., 1.])", "tensor([0.0000, 0.8427])", "erf")
_both_ways(Erfc, "torch.tensor([0., 1.])", "tensor([1.0000, 0.1573])", "erfc")
_both_ways(Erfinv, "torch.tensor([0., 0.5])", "tensor([0.0000, 0.4769])", "erfinv")
_both_ways(Lgamma, "torch.tensor([1., 4.])", "tensor([0.0000, 1.7918])", "gammaln")
_both_ways(Digamma, "torch.tensor([1., 4.])", "tensor([-0.5772,  1.2561])", "digamma", "psi")
_both_ways(I0, "torch.tensor([0., 1.])", "tensor([1.0000, 1.2661])", "i0")
_in_special(Erfcx, "erfcx", "torch.tensor([0., 1.])", "tensor([1.0000, 0.4276])")
_in_special(Ndtr, "ndtr", "torch.tensor([0., 1.])", "tensor([0.5000, 0.8413])")
_in_special(Ndtri, "ndtri", "torch.tensor([0.5, 0.9])", "tensor([0.0000, 1.2816])")
_in_special(LogNdtr, "log_ndtr", "torch.tensor([0., 1.])", "tensor([-0.6931, -0.1728])")
_in_special(Entr, "entr", "torch.tensor([0., 0.5])", "tensor([0.0000, 0.3466])")
_in_special(I0e, "i0e", "torch.tensor([0., 1.])", "tensor([1.0000, 0.4658])")
_in_special(I1, "i1", "torch.tensor([0., 1.])", "tensor([0.0000, 0.5652])")
_in_special(I1e, "i1e", "torch.tensor([0., 1.])", "tensor([0.0000, 0.2079])")
for _name, _scipy, _text, _at_one in _BESSEL:
    _cls: Any = op(
        type(
            _name.title().replace("_", ""),
            (Bessel,),
            {"name": "special_" + _name, "scipy": _scipy, "__doc__": f"The {_text}.",
             "__module__": __name__},
        )
    )  # fmt: skip
    expose(
        _cls, "torch.tensor([1.])", f"tensor([{_at_one:.4f}])", name=_name, inplace=False,
        method=False, free=False, namespace="special",
    )  # fmt: skip
_special["expit"] = functions["sigmoid"]

XLOGY, XLOG1PY, ZETA = Xlogy(), Xlog1py(), Zeta()
IGAMMA, IGAMMAC = Igamma(), Igammac()
_OF_NUMBER: Final = {XLOGY: XlogyOfNumber(), XLOG1PY: Xlog1pyOfNumber(), ZETA: ZetaOfNumber()}
_BY_NUMBER: Final = {XLOGY: XlogyByNumber(), XLOG1PY: Xlog1pyByNumber(), ZETA: ZetaAtNumber()}
by_name.update({
    "xlogy": XLOGY, "xlog1py": XLOG1PY, "zeta": ZETA, "gammainc": IGAMMA, "gammaincc": IGAMMAC,
})  # fmt: skip


def _choose(name: str, made: Any, input: Any, other: Any) -> Any:
    """The op by which of the operands is a number."""
    first, second = isinstance(input, TensorBase), isinstance(other, TensorBase)
    if not (first or second) or not all(
        isinstance(x, TensorBase) or is_number(x) for x in (input, other)
    ):
        raise invalid(
            name, (input, other), "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Number self, Tensor other, *, Tensor out = None)",
            "(Tensor input, Number other, *, Tensor out = None)",
        )  # fmt: skip
    if not first:
        made = _OF_NUMBER[made]
    elif not second:
        made = _BY_NUMBER[made]
    return made, (operand(input), operand(other))


@function(out=True, inplace=True, namespace="special")
def xlogy(input: Any, other: Any) -> Any:
    """xlogy(input, other, *, out=None) -> Tensor

    input · log(other), and 0 where `input` is 0.

    >>> import rushlight as torch
    >>> torch.xlogy(torch.tensor([0., 2.]), torch.tensor([0., 2.]))
    tensor([0.0000, 1.3863])
    """
    return _choose("xlogy", XLOGY, input, other)


@function(out=True, free=False, method=False, namespace="special")
def xlog1py(input: Any, other: Any) -> Any:
    """xlog1py(input, other, *, out=None) -> Tensor

    input · log(1 + other), and 0 where `input` is 0.

    >>> import rushlight as torch
    >>> torch.special.xlog1py(torch.tensor([0., 2.]), torch.tensor([-1., 1.]))
    tensor([0.0000, 1.3863])
    """
    return _choose("special_xlog1py", XLOG1PY, input, other)


@function(out=True, free=False, method=False, namespace="special")
def zeta(input: Any, other: Any) -> Any:
    """zeta(input, other, *, out=None) -> Tensor

    The Hurwitz zeta function: the sum of 1 / (k + other)**input over k = 0, 1, ...

    >>> import rushlight as torch
    >>> torch.special.zeta(torch.tensor([2., 4.]), 1)
    tensor([1.6449, 1.0823])
    """
    return _choose("special_zeta", ZETA, input, other)


@function(out=True, inplace=True)
def igamma(input: Any, other: Any) -> Any:
    """igamma(input, other, *, out=None) -> Tensor

    The regularised lower incomplete gamma function.

    >>> import rushlight as torch
    >>> torch.igamma(torch.tensor([4.]), torch.tensor([3.]))
    tensor([0.3528])
    """
    check_tensors("igamma", input=input, other=other)
    return IGAMMA, (input, other)


@function(out=True, inplace=True)
def igammac(input: Any, other: Any) -> Any:
    """igammac(input, other, *, out=None) -> Tensor

    The regularised upper incomplete gamma function.

    >>> import rushlight as torch
    >>> torch.igammac(torch.tensor([4.]), torch.tensor([3.]))
    tensor([0.6472])
    """
    check_tensors("igammac", input=input, other=other)
    return IGAMMAC, (input, other)


_special["gammainc"], _special["gammaincc"] = functions["igamma"], functions["igammac"]


def _polygamma(n: Any, input: Any) -> Any:
    check_tensors("polygamma", input=input)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return Polygamma(n), (input,)


@function(out=True, method=False, namespace="special")
def polygamma(n: int, input: Any) -> Any:
    """polygamma(n, input, *, out=None) -> Tensor

    The derivative number `n` of `digamma`.

    Args:
        n: which derivative of `digamma`.

    >>> import rushlight as torch
    >>> torch.polygamma(1, torch.tensor([1., 0.5]))
    tensor([1.6449, 4.9348])
    """
    return _polygamma(n, input)


@function(out=True, free=False, inplace=True, name="polygamma")
def polygamma_method(input: Any, n: int) -> Any:
    """polygamma(n) -> Tensor

    See `rushlight.polygamma`.

    Args:
        n: which derivative of `digamma`.
    """
    return _polygamma(n, input)


@function(out=True, inplace=True)
def mvlgamma(input: Any, p: int) -> Any:
    """mvlgamma(input, p, *, out=None) -> Tensor

    The logarithm of the gamma function of `p` dimensions.

    Args:
        p: the dimension of the multivariate function.

    >>> import rushlight as torch
    >>> torch.mvlgamma(torch.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    check_tensors("mvlgamma", input=input)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if p > 1 << 24:  # a term each: PyTorch finds no memory for them
        raise RuntimeError(f"DefaultCPUAllocator: not enough memory: mvlgamma of order {p}")
    return Mvlgamma(p), (input,)


_special["multigammaln"] = functions["mvlgamma"]


# --- the words of rules ---------------------------------------------------------------------------
@implements("special")
def _by_name(x: Any, name: str, *others: Any) -> Any:
    made = by_name.get(name)
    if made is None:
        raise NotImplementedError(f"no op answers to the special function {name!r} on tensors")
    return binary(made, x, *others) if others else unary(made, x)


@implements("polygamma")
def _polygamma_word(x: Any, n: int) -> Any:
    return unary(Polygamma(n), x)
