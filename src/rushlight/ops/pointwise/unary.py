"""Functions of one tensor: sign, rounding, exponentials, logarithms, trigonometry.

An op with rules of one line each is a `row`. Others are classes; the function made from one stands
right below, by `expose` where it takes tensors and nothing else.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Elementwise, conj, is_complex
from rushlight.core.graph import Node
from rushlight.ops.apply import run_inplace
from rushlight.ops.checks import check_tensors, raw_dtype
from rushlight.ops.operands import integral, zeros
from rushlight.ops.pointwise.family import (
    LN2,
    LN10,
    PI,
    Flat,
    OneOver,
    Pointwise,
    Smooth,
    Through,
    direction,
    expose,
    register_impl,
    row,
)
from rushlight.ops.registry import function, functions, implements, methods, op
from rushlight.ops.sample_inputs import drawn


# --- sign and size --------------------------------------------------------------------------------
@op
class Abs(Pointwise):
    """The absolute value of each element."""

    name, saves, refuses, scalar = "abs", ("self",), "b", "fabs({0})"
    complex_too = True

    def forward(self, x: Any) -> Any:
        return v.absolute(x)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (g * direction(x),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        return v.real(conj(t) * direction(xs[0])) if is_complex(t) else t * direction(xs[0])


ABS = expose(Abs, "[-1., 2.]", "[1., 2.]", aliases=("absolute",), primitive="absolute")
methods["__abs__"] = functions["abs"]


@function(name="abs_", aliases=("absolute_",))
def abs_in_place(input: Any) -> Any:
    """In-place version of `abs`, for real tensors."""
    check_tensors("abs_", input=input)
    if is_complex(input):
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return run_inplace(ABS, (input,))


@op
class Sign(Flat):
    """-1, 0 or 1, by the sign of each element."""

    name = "sign"

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise NotImplementedError(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                "torch.sgn instead."
            )

    def forward(self, x: Any) -> Any:
        return v.copy(x) if raw_dtype(x).kind == "b" else direction(x)


expose(Sign, "[-3., 0., 2.]", "[-1.,  0.,  1.]")


@op
class Sgn(Through, Elementwise):
    """x / |x|: the sign of real numbers, the direction of complex ones."""

    name, saves, complex_too = "sgn", ("self", "result"), True

    def forward(self, x: Any) -> Any:
        return v.copy(x) if raw_dtype(x).kind == "b" else direction(x)

    def through(self, t: Any, x: Any, y: Any) -> Any:
        """The derivative is its own transpose: what is across the direction, over the size."""
        if not is_complex(x):
            return zeros(t)
        size = v.absolute(x)
        q = t / v.where(size == 0, 1, size)
        return v.where(size == 0, 0, q - v.real(q * conj(y)) * y)


expose(Sgn, "[-3., 0., 2.]", "[-1.,  0.,  1.]", primitive="sign")


@op
class Signbit(Elementwise):
    """Whether the sign bit is set: -0. counts as negative."""

    name, promotion, differentiable = "signbit", "bool", False

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise NotImplementedError("signbit is not implemented for complex tensors.")

    def forward(self, x: Any) -> Any:
        return x < 0 if integral(x) else v.signbit(x)


expose(Signbit, "[-1., -0., 0.]", "[ True,  True, False]", inplace=False, primitive="signbit")


@function()
def positive(input: Any) -> Any:
    """The tensor itself, as the operator `+` gives it; not for bools.

    >>> torch.positive(torch.tensor([1., -2.]))
    tensor([ 1., -2.])
    """
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


implements("positive")(positive)
methods["__pos__"] = positive


# --- rounding -------------------------------------------------------------------------------------
class Rounding(Flat):
    """Rounding by `rounded`, which leaves integers as they are."""

    refuses = "bc"
    rounded: ClassVar[Any] = None

    def check(self, common: Any) -> None:
        if common.is_complex and self.name != "round":
            raise NotImplementedError(f"{self.name} is not supported for complex inputs")
        super().check(common)

    def forward(self, x: Any) -> Any:
        return v.copy(x) if integral(x) else self.rounded(x)


row(
    "floor", Rounding, "Round down.", None, rounded=v.floor, scalar="floor({0})",
    kernel="floor_vml_cpu", primitive="floor", at="[1.5, -1.5]", gives="[ 1., -2.]",
)  # fmt: skip
row(
    "ceil", Rounding, "Round up.", None, rounded=v.ceil, scalar="ceil({0})", kernel="ceil_vml_cpu",
    primitive="ceil", at="[1.5, -1.5]", gives="[ 2., -1.]",
)  # fmt: skip
row(
    "trunc", Rounding, "Round towards zero.", None, rounded=v.trunc, scalar="trunc({0})",
    kernel="trunc_vml_cpu", primitive="trunc", aliases=("fix",), at="[1.5, -1.5]",
    gives="[ 1., -1.]",
)  # fmt: skip


@op
class Round(Rounding):
    """Round to the nearest integer; halves go to the even one."""

    name, scalar, rounded, kernel = "round", "rint({0})", v.rint, "round_vml_cpu"


@op
class RoundDecimals(Flat):
    """Round to a number of decimals."""

    name, node, params, refuses = "round_decimals", "RoundBackward1", ("decimals",), "bic"
    aten = "round.decimals"
    kernel = "round_vml_cpu"
    decimals: int

    def forward(self, x: Any) -> Any:
        if self.decimals == 0:
            return v.rint(x)
        ten = 10.0 ** abs(self.decimals)
        return v.rint(x * ten) / ten if self.decimals > 0 else v.rint(x / ten) * ten

    samples = drawn(real=[(1, (2, 3)), (-1, ())])


ROUND = Round()
register_impl("rint", ROUND)


@function(out=True, inplace=True, name="round", namespace="special")
def round_to(input: Any, *, decimals: int | None = None) -> Any:
    """Round to the nearest integer, halves to the even one; or to a number of decimals.

    >>> torch.round(torch.tensor([0.5, 1.5])), torch.round(torch.tensor([0.1234]), decimals=2)
    (tensor([0., 2.]), tensor([0.1200]))
    """
    return (ROUND if decimals is None else RoundDecimals(decimals)), (input,)


row(
    "frac", Pointwise, "The part after the decimal point, with the sign of the element.",
    lambda x: x - v.trunc(x), lambda: (1,), refuses="bic", at="[1.5, -1.25]",
    gives="[ 0.5000, -0.2500]",
)  # fmt: skip


# --- exponentials and logarithms ------------------------------------------------------------------
row(
    "exp", Smooth, "e to the power of each element.", v.exp, lambda y: (y,), scalar="exp({0})",
    primitive="exp", at="[0., 1.]", gives="[1.0000, 2.7183]",
)  # fmt: skip


def _exp2(x: Any) -> Any:
    if is_complex(x):  # by parts: times a complex LN2, infinities would become NaN
        return v.exp(v.complex_of(v.real(x) * LN2, v.imag(x) * LN2))
    return v.exp2(x)


row(
    "exp2", Smooth, "2 to the power of each element.", _exp2, lambda y: (y * LN2,),
    scalar="exp2({0})", primitive="exp2", namespace="special", at="[0., 3.]", gives="[1., 8.]",
)  # fmt: skip
row(
    "expm1", Smooth, "exp(x) - 1, exact for small x.", v.expm1, lambda y: (y + 1,),
    scalar="expm1({0})", primitive="expm1", namespace="special", at="[0., 1.]",
    gives="[0.0000, 1.7183]",
)  # fmt: skip
row(
    "log", OneOver, "The natural logarithm.", v.log, below=lambda x: x, domain="positive",
    scalar="log({0})", primitive="log", at="[1., 2.]", gives="[0.0000, 0.6931]",
)  # fmt: skip
row(
    "log2", OneOver, "The logarithm to base 2.", v.log2, below=lambda x: x * LN2, domain="positive",
    scalar="log2({0})", primitive="log2", at="[1., 8.]", gives="[0., 3.]",
)  # fmt: skip


def _log10(x: Any) -> Any:
    if raw_dtype(x) == dtypes.float32.numpy:  # NumPy's is a bit off even at powers of ten
        return v.cast(v.log10(v.cast(x, dtypes.float64.numpy)), raw_dtype(x))
    return v.log10(x)


row(
    "log10", OneOver, "The logarithm to base 10.", _log10, below=lambda x: x * LN10,
    domain="positive", scalar="log10({0})", primitive="log10", at="[1., 100.]", gives="[0., 2.]",
)  # fmt: skip
row(
    "log1p", OneOver, "log(1 + x), exact for small x.", v.log1p, below=lambda x: x + 1,
    domain="positive", scalar="log1p({0})", primitive="log1p", node="Log1PBackward0",
    namespace="special", at="[0., 1.]", gives="[0.0000, 0.6931]",
)  # fmt: skip
SIGMOID = row(
    "sigmoid", Smooth, "1 / (1 + exp(-x)): from 0 to 1.",
    lambda x: 1 / (1 + v.exp(-x)) if is_complex(x) else v.special(x, "expit"),
    lambda y: (y * (1 - y),), scalar="(1.0 / (1.0 + exp(-{0})))", at="[0., 2.]",
    gives="[0.5000, 0.8808]",
)  # fmt: skip


@op
class Logit(Pointwise):
    """log(x / (1 - x)), the inverse of sigmoid."""

    name, saves, params = "logit", ("self",), ("eps",)
    promotion, refuses, kernel = "float", "c", "logit_cpu"
    eps: float | None = None

    def forward(self, x: Any) -> Any:
        if self.eps is not None:
            low, high = self.eps, 1 - self.eps
            x = v.where(x < low, low, v.where(x > high, high, x))
        return v.log(x / (1 - x))

    def partials(self, x: Any) -> Any:
        low, outside = (0.0, math.nan) if self.eps is None else (self.eps, 0.0)
        inside = v.logical_and(x >= low, x <= 1 - low)
        return (v.where(inside, 1 / (x * (1 - x)), outside),)

    samples = drawn(probability=[(2, 3), (), (0.2, (0, 2)), (0.2, (2, 3))])


LOGIT = Logit()


@function(out=True, inplace=True, namespace="special")
def logit(input: Any, eps: float | None = None) -> Any:
    """log(x / (1 - x)); with `eps`, x is first clamped to [eps, 1 - eps].

    Args:
        eps: `input` is clamped to [eps, 1 - eps] first; not at all if None.

    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    return (LOGIT if eps is None or eps < 0 else Logit(float(eps))), (input,)


# --- trigonometry ---------------------------------------------------------------------------------
row(
    "sin", Smooth, "The sine, of radians.", v.sin, lambda x: (v.cos(x),), scalar="sin({0})",
    primitive="sin", at="[0., 1.]", gives="[0.0000, 0.8415]",
)  # fmt: skip
row(
    "cos", Smooth, "The cosine, of radians.", v.cos, lambda x: (-v.sin(x),), scalar="cos({0})",
    primitive="cos", at="[0., 1.]", gives="[1.0000, 0.5403]",
)  # fmt: skip
row(
    "tan", Smooth, "The tangent, of radians.", v.tan, lambda y: (1 + y * y,), scalar="tan({0})",
    primitive="tan", domain="unit", at="[0., 1.]", gives="[0.0000, 1.5574]",
)  # fmt: skip
row(
    "asin", Smooth, "The inverse of the sine, in radians.", v.arcsin,
    lambda x: (1 / v.sqrt(1 - x * x),), scalar="asin({0})", primitive="arcsin", aliases=("arcsin",),
    domain="unit", at="[0., 1.]", gives="[0.0000, 1.5708]",
)  # fmt: skip
row(
    "acos", Smooth, "The inverse of the cosine, in radians.", v.arccos,
    lambda x: (-1 / v.sqrt(1 - x * x),), scalar="acos({0})", primitive="arccos",
    aliases=("arccos",), domain="unit", at="[0., 1.]", gives="[1.5708, 0.0000]",
)  # fmt: skip
row(
    "atan", OneOver, "The inverse of the tangent, in radians.", v.arctan, below=lambda x: x * x + 1,
    scalar="atan({0})", primitive="arctan", aliases=("arctan",), at="[0., 1.]",
    gives="[0.0000, 0.7854]",
)  # fmt: skip
row(
    "sinh", Smooth, "The hyperbolic sine.", v.sinh, lambda x: (v.cosh(x),), scalar="sinh({0})",
    primitive="sinh", at="[0., 1.]", gives="[0.0000, 1.1752]",
)  # fmt: skip
row(
    "cosh", Smooth, "The hyperbolic cosine.", v.cosh, lambda x: (v.sinh(x),), scalar="cosh({0})",
    primitive="cosh", at="[0., 1.]", gives="[1.0000, 1.5431]",
)  # fmt: skip
row(
    "tanh", Smooth, "The hyperbolic tangent: from -1 to 1.", v.tanh, lambda y: (1 - y * y,),
    scalar="tanh({0})", primitive="tanh", at="[0., 1.]", gives="[0.0000, 0.7616]",
)  # fmt: skip
row(
    "asinh", Smooth, "The inverse of the hyperbolic sine.", v.arcsinh,
    lambda x: (1 / v.sqrt(x * x + 1),), scalar="asinh({0})", primitive="arcsinh",
    aliases=("arcsinh",), at="[0., 1.]", gives="[0.0000, 0.8814]",
)  # fmt: skip


def _acosh_slope(x: Any) -> Any:
    if is_complex(x):  # the root of the product is on another branch
        # not `x - 1`, which keeps the sign of a zero imaginary part: both roots must be of the
        # same side of the cut
        return (1 / v.sqrt(x + -1) / v.sqrt(x + 1),)
    return (1 / v.sqrt(x * x - 1),)


row(
    "acosh", Smooth, "The inverse of the hyperbolic cosine.", v.arccosh, _acosh_slope,
    scalar="acosh({0})", primitive="arccosh", aliases=("arccosh",), domain="above_one",
    at="[1., 2.]", gives="[0.0000, 1.3170]",
)  # fmt: skip
row(
    "atanh", OneOver, "The inverse of the hyperbolic tangent.", v.arctanh,
    below=lambda x: 1 - x * x, scalar="atanh({0})", primitive="arctanh", aliases=("arctanh",),
    domain="unit", at="[0., .5]", gives="[0.0000, 0.5493]",
)  # fmt: skip


def _atan2_slopes(a: Any, b: Any) -> Any:
    square = a * a + b * b
    over = v.where(square == 0, 0, 1 / square)
    return b * over, -a * over


row(
    "atan2", Pointwise, "The angle of the point (other, input) with the first axis, in radians.",
    v.arctan2, _atan2_slopes, inputs=("self", "other"), promotion="float", refuses="c",
    scalar="atan2({0}, {1})", primitive="arctan2", aliases=("arctan2",),
    at="torch.tensor([1., -1.]), torch.tensor([1., -1.])", gives="[ 0.7854, -2.3562]",
)  # fmt: skip


class Scaled(Elementwise):
    """A constant times the element."""

    promotion = "float"
    factor: ClassVar[float] = 1.0

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise RuntimeError(f"{self.name} is not supported for complex tensors.")

    def forward(self, x: Any) -> Any:
        return x * self.factor

    def partials(self) -> Any:
        return (self.factor,)


row(
    "deg2rad", Scaled, "From degrees to radians.", None, factor=PI / 180, node="Deg2RadBackward0",
    primitive="deg2rad", at="[180., 90.]", gives="[3.1416, 1.5708]",
)  # fmt: skip
row(
    "rad2deg", Scaled, "From radians to degrees.", None, factor=180 / PI, node="Rad2DegBackward0",
    primitive="rad2deg", at="[3.1416, 0.]", gives="[180.0004,   0.0000]",
)  # fmt: skip


def _sinc_slope(x: Any) -> Any:
    p = x * PI
    below = p * x
    return (v.where(below == 0, 0, (p * v.cos(p) - v.sin(p)) / below),)


SINC = row(
    "sinc", Smooth, "sin(πx) / πx, and 1 at 0.", lambda x: v.special(x, "sinc"), _sinc_slope,
    namespace="special", at="[0., 0.5]", gives="[1.0000, 0.6366]",
)  # fmt: skip
