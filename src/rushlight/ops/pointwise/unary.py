"""Functions of one tensor: sign, rounding, exponentials, logarithms, trigonometry.

Each op is a class; the function made from it stands right below, by `expose` where it takes one
tensor and nothing else. Powers are in `power.py`, functions of two tensors in `binary.py`,
bounds in `clamp.py`, complex numbers in `complex.py`, special functions in `special.py`,
comparisons in `comparison.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Elementwise, conj, is_complex
from rushlight.core.graph import Node
from rushlight.ops.apply import run_inplace
from rushlight.ops.arguments import raw_dtype
from rushlight.ops.checks import check_tensors
from rushlight.ops.operands import integral, zeros
from rushlight.ops.pointwise.family import (
    LN2,
    LN10,
    PI,
    Flat,
    Pointwise,
    Smooth,
    direction,
    expose,
    register_impl,
)
from rushlight.ops.registry import function, functions, implements, methods, op
from rushlight.ops.sample_inputs import Draw


# --- sign and size --------------------------------------------------------------------------------
@op
class Abs(Pointwise):
    """The absolute value of each element."""

    name = "abs"
    saves = ("self",)
    refuses = "b"
    scalar = "fabs({0})"

    def forward(self, x: Any) -> Any:
        return v.absolute(x)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (g * direction(x),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        return v.real(conj(t) * direction(xs[0])) if is_complex(t) else t * direction(xs[0])

    def partials(self, x: Any) -> Any:
        return (direction(x),)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for shape in ((2, 3), (), (0, 2)):
            yield Abs(), draw.real(*shape)
        yield Abs(), draw.complex(2, 2)


ABS = expose(Abs, "torch.tensor([-1., 2.])", "tensor([1., 2.])", aliases=("absolute",))
register_impl("absolute", ABS)
methods["__abs__"] = functions["abs"]


@function(name="abs_", aliases=("absolute_",))
def abs_in_place(input: Any) -> Any:
    """abs_() -> Tensor

    In-place version of `abs`, for real tensors.
    """
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


SIGN = expose(Sign, "torch.tensor([-3., 0., 2.])", "tensor([-1.,  0.,  1.])")


@op
class Sgn(Elementwise):
    """x / |x|: the sign of real numbers, the direction of complex ones."""

    name = "sgn"
    saves = ("self", "result")

    def forward(self, x: Any) -> Any:
        return v.copy(x) if raw_dtype(x).kind == "b" else direction(x)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        return (self.along(g, x, y),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.along(ts[0], xs[0], y)

    def along(self, t: Any, x: Any, y: Any) -> Any:
        """The derivative is its own transpose: what is across the direction, over the size."""
        if not is_complex(x):
            return zeros(t)
        size = v.absolute(x)
        q = t / v.where(size == 0, 1, size)
        return v.where(size == 0, 0, q - v.real(q * conj(y)) * y)

    def partials(self, x: Any, y: Any) -> Any:
        return (0,)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sgn(), draw.real(*shape)
        yield Sgn(), draw.complex(2, 2)


SGN = expose(Sgn, "torch.tensor([-3., 0., 2.])", "tensor([-1.,  0.,  1.])")
register_impl("sign", SGN)


@op
class Signbit(Elementwise):
    """Whether the sign bit is set: -0. counts as negative."""

    name, promotion, differentiable = "signbit", "bool", False

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise NotImplementedError("signbit is not implemented for complex tensors.")

    def forward(self, x: Any) -> Any:
        return x < 0 if integral(x) else v.signbit(x)


register_impl(
    "signbit",
    expose(Signbit, "torch.tensor([-1., -0., 0.])", "tensor([ True,  True, False])", inplace=False),
)


@function()
def positive(input: Any) -> Any:
    """positive(input) -> Tensor

    The tensor itself, as the operator `+` gives it; not for bools.

    >>> import rushlight as torch
    >>> torch.positive(torch.tensor([1., -2.]))
    tensor([ 1., -2.])
    """
    check_tensors("positive", input=input)
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


implements("positive")(positive)
methods["__pos__"] = positive


# --- rounding -------------------------------------------------------------------------------------
class Rounding(Flat):
    """Rounding leaves integers as they are."""

    refuses = "bc"
    rounded: ClassVar[Any] = None

    def check(self, common: Any) -> None:
        if common.is_complex and self.name != "round":
            raise NotImplementedError(f"{self.name} is not supported for complex inputs")
        super().check(common)

    def forward(self, x: Any) -> Any:
        return v.copy(x) if integral(x) else type(self).rounded(x)


@op
class Floor(Rounding):
    """Round down."""

    name, scalar, rounded = "floor", "floor({0})", v.floor
    kernel = "floor_vml_cpu"


@op
class Ceil(Rounding):
    """Round up."""

    name, scalar, rounded = "ceil", "ceil({0})", v.ceil
    kernel = "ceil_vml_cpu"


@op
class Trunc(Rounding):
    """Round towards zero."""

    name, scalar, rounded = "trunc", "trunc({0})", v.trunc
    kernel = "trunc_vml_cpu"


@op
class Round(Rounding):
    """Round to the nearest integer; halves go to the even one."""

    name, scalar, rounded = "round", "rint({0})", v.rint
    kernel = "round_vml_cpu"


@op
class RoundDecimals(Flat):
    """Round to a number of decimals."""

    name, node, params, refuses = "round_decimals", "RoundBackward1", ("decimals",), "bic"
    aten = "round.decimals"
    kernel = "round_vml_cpu"

    def __init__(self, decimals: int) -> None:
        super().__init__()
        self.decimals = decimals

    def forward(self, x: Any) -> Any:
        if self.decimals == 0:
            return v.rint(x)
        ten = 10.0 ** abs(self.decimals)
        return v.rint(x * ten) / ten if self.decimals > 0 else v.rint(x / ten) * ten

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield RoundDecimals(1), draw.real(2, 3)
        yield RoundDecimals(-1), draw.real()


FLOOR = expose(Floor, "torch.tensor([1.5, -1.5])", "tensor([ 1., -2.])")
CEIL = expose(Ceil, "torch.tensor([1.5, -1.5])", "tensor([ 2., -1.])")
TRUNC = expose(Trunc, "torch.tensor([1.5, -1.5])", "tensor([ 1., -1.])", aliases=("fix",))
ROUND = Round()
register_impl("floor", FLOOR)
register_impl("ceil", CEIL)
register_impl("trunc", TRUNC)
register_impl("rint", ROUND)


@function(out=True, inplace=True, name="round", namespace="special")
def round_to(input: Any, *, decimals: int | None = None) -> Any:
    """round(input, *, decimals=0, out=None) -> Tensor

    Round to the nearest integer, halves to the even one; or to a number of decimals.

    >>> import rushlight as torch
    >>> torch.round(torch.tensor([0.5, 1.5])), torch.round(torch.tensor([0.1234]), decimals=2)
    (tensor([0., 2.]), tensor([0.1200]))
    """
    check_tensors("round", input=input)
    return (ROUND if decimals is None else RoundDecimals(decimals)), (input,)


@op
class Frac(Pointwise):
    """The part after the decimal point, with the sign of the element."""

    name, refuses = "frac", "bic"

    def forward(self, x: Any) -> Any:
        return x - v.trunc(x)

    def partials(self) -> Any:
        return (1,)


expose(Frac, "torch.tensor([1.5, -1.25])", "tensor([ 0.5000, -0.2500])")


# --- exponentials and logarithms ------------------------------------------------------------------
@op
class Exp(Smooth):
    """e to the power of each element."""

    name, saves, scalar = "exp", ("result",), "exp({0})"

    def forward(self, x: Any) -> Any:
        return v.exp(x)

    def partials(self, y: Any) -> Any:
        return (y,)


@op
class Exp2(Smooth):
    """2 to the power of each element."""

    name, saves, scalar = "exp2", ("result",), "exp2({0})"

    def forward(self, x: Any) -> Any:
        if is_complex(x):  # by parts: times a complex LN2, infinities would become NaN
            return v.exp(v.complex_of(v.real(x) * LN2, v.imag(x) * LN2))
        return v.exp2(x)

    def partials(self, y: Any) -> Any:
        return (y * LN2,)


@op
class Expm1(Smooth):
    """exp(x) - 1, exact for small x."""

    name, saves, scalar = "expm1", ("result",), "expm1({0})"

    def forward(self, x: Any) -> Any:
        return v.expm1(x)

    def partials(self, y: Any) -> Any:
        return (y + 1,)


class OneOver(Smooth):
    """A function whose derivative is one over something.

    Gradients and tangents are divided by it: at a complex pole `g / 0` is infinite, as in PyTorch,
    but `g * (1 / 0)` is NaN.
    """

    saves = ("self",)

    def below(self, x: Any) -> Any:
        """What the derivative has below the line."""
        raise NotImplementedError

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (g / conj(self.below(x)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return ts[0] / self.below(xs[0])

    def partials(self, x: Any) -> Any:
        return (1 / self.below(x),)


class Logarithm(OneOver):
    """A logarithm."""

    domain = "positive"


@op
class Log(Logarithm):
    """The natural logarithm."""

    name, scalar = "log", "log({0})"

    def forward(self, x: Any) -> Any:
        return v.log(x)

    def below(self, x: Any) -> Any:
        return x


@op
class Log2(Logarithm):
    """The logarithm to base 2."""

    name, scalar = "log2", "log2({0})"

    def forward(self, x: Any) -> Any:
        return v.log2(x)

    def below(self, x: Any) -> Any:
        return x * LN2


@op
class Log10(Logarithm):
    """The logarithm to base 10."""

    name, scalar = "log10", "log10({0})"

    def forward(self, x: Any) -> Any:
        if raw_dtype(x) == dtypes.float32.numpy:  # NumPy's is a bit off even at powers of ten
            return v.cast(v.log10(v.cast(x, dtypes.float64.numpy)), raw_dtype(x))
        return v.log10(x)

    def below(self, x: Any) -> Any:
        return x * LN10


@op
class Log1p(Logarithm):
    """log(1 + x), exact for small x."""

    name, node, scalar = "log1p", "Log1PBackward0", "log1p({0})"

    def forward(self, x: Any) -> Any:
        return v.log1p(x)

    def below(self, x: Any) -> Any:
        return x + 1


EXP = expose(Exp, "torch.tensor([0., 1.])", "tensor([1.0000, 2.7183])")
EXP2 = expose(Exp2, "torch.tensor([0., 3.])", "tensor([1., 8.])", namespace="special")
EXPM1 = expose(Expm1, "torch.tensor([0., 1.])", "tensor([0.0000, 1.7183])", namespace="special")
LOG = expose(Log, "torch.tensor([1., 2.])", "tensor([0.0000, 0.6931])")
LOG2 = expose(Log2, "torch.tensor([1., 8.])", "tensor([0., 3.])")
LOG10 = expose(Log10, "torch.tensor([1., 100.])", "tensor([0., 2.])")
LOG1P = expose(Log1p, "torch.tensor([0., 1.])", "tensor([0.0000, 0.6931])", namespace="special")
for _word, _op in (
    ("exp", EXP), ("exp2", EXP2), ("expm1", EXPM1), ("log", LOG), ("log2", LOG2),
    ("log10", LOG10), ("log1p", LOG1P),
):  # fmt: skip
    register_impl(_word, _op)


@op
class Sigmoid(Smooth):
    """1 / (1 + exp(-x)): from 0 to 1."""

    name, saves = "sigmoid", ("result",)
    scalar = "(1.0 / (1.0 + exp(-{0})))"

    def forward(self, x: Any) -> Any:
        return 1 / (1 + v.exp(-x)) if is_complex(x) else v.special(x, "expit")

    def partials(self, y: Any) -> Any:
        return (y * (1 - y),)


SIGMOID = expose(Sigmoid, "torch.tensor([0., 2.])", "tensor([0.5000, 0.8808])")


@op
class Logit(Pointwise):
    """log(x / (1 - x)), the inverse of sigmoid."""

    name, saves, params = "logit", ("self",), ("eps",)
    promotion, refuses, kernel = "float", "c", "logit_cpu"

    def __init__(self, eps: float | None = None) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: Any) -> Any:
        if self.eps is not None:
            low, high = self.eps, 1 - self.eps
            x = v.where(x < low, low, v.where(x > high, high, x))
        return v.log(x / (1 - x))

    def partials(self, x: Any) -> Any:
        low, outside = (0.0, math.nan) if self.eps is None else (self.eps, 0.0)
        inside = v.logical_and(x >= low, x <= 1 - low)
        return (v.where(inside, 1 / (x * (1 - x)), outside),)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Logit(), draw.probability(2, 3)
        yield Logit(), draw.probability()
        yield Logit(0.2), draw.probability(0, 2)
        yield Logit(0.2), draw.probability(2, 3)


LOGIT = Logit()


@function(out=True, inplace=True, namespace="special")
def logit(input: Any, eps: float | None = None) -> Any:
    """logit(input, eps=None, *, out=None) -> Tensor

    log(x / (1 - x)); with `eps`, x is first clamped to [eps, 1 - eps].

    Args:
        eps: `input` is clamped to [eps, 1 - eps] first; not at all if None.

    >>> import rushlight as torch
    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    check_tensors("logit", input=input)
    return (LOGIT if eps is None or eps < 0 else Logit(float(eps))), (input,)


# --- trigonometry ---------------------------------------------------------------------------------
@op
class Sin(Smooth):
    """The sine, of radians."""

    name, saves, scalar = "sin", ("self",), "sin({0})"

    def forward(self, x: Any) -> Any:
        return v.sin(x)

    def partials(self, x: Any) -> Any:
        return (v.cos(x),)


@op
class Cos(Smooth):
    """The cosine, of radians."""

    name, saves, scalar = "cos", ("self",), "cos({0})"

    def forward(self, x: Any) -> Any:
        return v.cos(x)

    def partials(self, x: Any) -> Any:
        return (-v.sin(x),)


@op
class Tan(Smooth):
    """The tangent, of radians."""

    name, saves, scalar, domain = "tan", ("result",), "tan({0})", "unit"

    def forward(self, x: Any) -> Any:
        return v.tan(x)

    def partials(self, y: Any) -> Any:
        return (1 + y * y,)


@op
class Asin(Smooth):
    """The inverse of the sine, in radians."""

    name, saves, scalar, domain = "asin", ("self",), "asin({0})", "unit"

    def forward(self, x: Any) -> Any:
        return v.arcsin(x)

    def partials(self, x: Any) -> Any:
        return (1 / v.sqrt(1 - x * x),)


@op
class Acos(Smooth):
    """The inverse of the cosine, in radians."""

    name, saves, scalar, domain = "acos", ("self",), "acos({0})", "unit"

    def forward(self, x: Any) -> Any:
        return v.arccos(x)

    def partials(self, x: Any) -> Any:
        return (-1 / v.sqrt(1 - x * x),)


@op
class Atan(OneOver):
    """The inverse of the tangent, in radians."""

    name, scalar = "atan", "atan({0})"

    def forward(self, x: Any) -> Any:
        return v.arctan(x)

    def below(self, x: Any) -> Any:
        return x * x + 1


@op
class Sinh(Smooth):
    """The hyperbolic sine."""

    name, saves, scalar = "sinh", ("self",), "sinh({0})"

    def forward(self, x: Any) -> Any:
        return v.sinh(x)

    def partials(self, x: Any) -> Any:
        return (v.cosh(x),)


@op
class Cosh(Smooth):
    """The hyperbolic cosine."""

    name, saves, scalar = "cosh", ("self",), "cosh({0})"

    def forward(self, x: Any) -> Any:
        return v.cosh(x)

    def partials(self, x: Any) -> Any:
        return (v.sinh(x),)


@op
class Tanh(Smooth):
    """The hyperbolic tangent: from -1 to 1."""

    name, saves, scalar = "tanh", ("result",), "tanh({0})"

    def forward(self, x: Any) -> Any:
        return v.tanh(x)

    def partials(self, y: Any) -> Any:
        return (1 - y * y,)


@op
class Asinh(Smooth):
    """The inverse of the hyperbolic sine."""

    name, saves, scalar = "asinh", ("self",), "asinh({0})"

    def forward(self, x: Any) -> Any:
        return v.arcsinh(x)

    def partials(self, x: Any) -> Any:
        return (1 / v.sqrt(x * x + 1),)


@op
class Acosh(Smooth):
    """The inverse of the hyperbolic cosine."""

    name, saves, scalar, domain = "acosh", ("self",), "acosh({0})", "above_one"

    def forward(self, x: Any) -> Any:
        return v.arccosh(x)

    def partials(self, x: Any) -> Any:
        if is_complex(x):  # the root of the product is on another branch
            # not `x - 1`, which keeps the sign of a zero imaginary part: both roots must be of
            # the same side of the cut
            return (1 / v.sqrt(x + -1) / v.sqrt(x + 1),)
        return (1 / v.sqrt(x * x - 1),)


@op
class Atanh(OneOver):
    """The inverse of the hyperbolic tangent."""

    name, scalar, domain = "atanh", "atanh({0})", "unit"

    def forward(self, x: Any) -> Any:
        return v.arctanh(x)

    def below(self, x: Any) -> Any:
        return 1 - x * x


SIN = expose(Sin, "torch.tensor([0., 1.])", "tensor([0.0000, 0.8415])")
COS = expose(Cos, "torch.tensor([0., 1.])", "tensor([1.0000, 0.5403])")
TAN = expose(Tan, "torch.tensor([0., 1.])", "tensor([0.0000, 1.5574])")
ASIN = expose(Asin, "torch.tensor([0., 1.])", "tensor([0.0000, 1.5708])", aliases=("arcsin",))
ACOS = expose(Acos, "torch.tensor([0., 1.])", "tensor([1.5708, 0.0000])", aliases=("arccos",))
ATAN = expose(Atan, "torch.tensor([0., 1.])", "tensor([0.0000, 0.7854])", aliases=("arctan",))
SINH = expose(Sinh, "torch.tensor([0., 1.])", "tensor([0.0000, 1.1752])")
COSH = expose(Cosh, "torch.tensor([0., 1.])", "tensor([1.0000, 1.5431])")
TANH = expose(Tanh, "torch.tensor([0., 1.])", "tensor([0.0000, 0.7616])")
ASINH = expose(Asinh, "torch.tensor([0., 1.])", "tensor([0.0000, 0.8814])", aliases=("arcsinh",))
ACOSH = expose(Acosh, "torch.tensor([1., 2.])", "tensor([0.0000, 1.3170])", aliases=("arccosh",))
ATANH = expose(Atanh, "torch.tensor([0., .5])", "tensor([0.0000, 0.5493])", aliases=("arctanh",))
for _word, _op in (
    ("sin", SIN), ("cos", COS), ("tan", TAN), ("arcsin", ASIN), ("arccos", ACOS), ("arctan", ATAN),
    ("sinh", SINH), ("cosh", COSH), ("tanh", TANH), ("arcsinh", ASINH), ("arccosh", ACOSH),
    ("arctanh", ATANH),
):  # fmt: skip
    register_impl(_word, _op)


@op
class Atan2(Pointwise):
    """The angle of the point (other, input)."""

    name, inputs, saves, promotion = "atan2", ("self", "other"), ("self", "other"), "float"
    refuses, scalar = "c", "atan2({0}, {1})"

    def forward(self, a: Any, b: Any) -> Any:
        return v.arctan2(a, b)

    def partials(self, a: Any, b: Any) -> Any:
        square = a * a + b * b
        over = v.where(square == 0, 0, 1 / square)
        return b * over, -a * over


ATAN2 = Atan2()
register_impl("arctan2", ATAN2)


@function(out=True, inplace=True, aliases=("arctan2",))
def atan2(input: Any, other: Any) -> Any:
    """atan2(input, other, *, out=None) -> Tensor

    The angle of the point (other, input) with the first axis, in radians.

    >>> import rushlight as torch
    >>> torch.atan2(torch.tensor([1., -1.]), torch.tensor([1., -1.]))
    tensor([ 0.7854, -2.3562])
    """
    check_tensors("atan2", input=input, other=other)
    return ATAN2, (input, other)


class Scaled(Elementwise):
    """A constant times the element."""

    promotion: ClassVar[str] = "float"
    factor: ClassVar[float] = 1.0

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise RuntimeError(f"{self.name} is not supported for complex tensors.")

    def forward(self, x: Any) -> Any:
        return x * self.factor

    def partials(self) -> Any:
        return (self.factor,)


@op
class Deg2Rad(Scaled):
    """From degrees to radians."""

    name, node, factor = "deg2rad", "Deg2RadBackward0", PI / 180


@op
class Rad2Deg(Scaled):
    """From radians to degrees."""

    name, node, factor = "rad2deg", "Rad2DegBackward0", 180 / PI


register_impl("deg2rad", expose(Deg2Rad, "torch.tensor([180., 90.])", "tensor([3.1416, 1.5708])"))
register_impl(
    "rad2deg", expose(Rad2Deg, "torch.tensor([3.1416, 0.])", "tensor([180.0004,   0.0000])")
)


@op
class Sinc(Smooth):
    """sin(πx) / πx, and 1 at 0."""

    name, saves = "sinc", ("self",)

    def forward(self, x: Any) -> Any:
        return v.special(x, "sinc")

    def partials(self, x: Any) -> Any:
        p = x * PI
        below = p * x
        return (v.where(below == 0, 0, (p * v.cos(p) - v.sin(p)) / below),)


SINC = expose(Sinc, "torch.tensor([0., 0.5])", "tensor([1.0000, 0.6366])", namespace="special")
