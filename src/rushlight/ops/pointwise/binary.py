"""Functions of two tensors: remainders, the larger and the smaller, signs and exponents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import binary
from rushlight.core.elementwise import number_beside, operand
from rushlight.core.families import Elementwise, conj, is_complex
from rushlight.core.graph import Node, TensorBase
from rushlight.ops.checks import (
    check_operands,
    check_second,
    check_tensors,
    invalid,
    is_number,
    raw_dtype,
)
from rushlight.ops.operands import (
    attach_operator,
    check_integers,
    match_dtypes,
    widen_small_ints,
    zeros,
)
from rushlight.ops.pointwise.arithmetic import DivFloor
from rushlight.ops.pointwise.family import (
    LN2,
    Numbered,
    Pointwise,
    Unfinished,
    expose,
    register_impl,
    row,
)
from rushlight.ops.registry import function, functions, implements, op, shared_op
from rushlight.ops.sample_inputs import Draw, drawn


# --- remainders -----------------------------------------------------------------------------------
@op
class Fmod(Elementwise):
    """What is left of input after division by other, with input's sign."""

    name, node, inputs, saves = "fmod", "FmodBackward1", ("self", "other"), ("self", "other")
    aten = "fmod.Tensor"
    reads: ClassVar[dict[int, tuple[str, ...]]] = {1: ("self", "other")}
    domain = "positive"

    def forward(self, a: Any, b: Any) -> Any:
        return v.fmod(a, b)

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        return g, (-g * self.times(a, b) if node._needs_grad(1) else None)

    def partials(self, a: Any, b: Any) -> Any:
        return 1, -self.times(a, b)

    def times(self, a: Any, b: Any) -> Any:
        """How often other goes into input."""
        a, b = match_dtypes(a, b)
        return v.trunc(a / b)


@op
class Remainder(Fmod):
    """What is left of input after division by other, with other's sign."""

    name, node = "remainder", "RemainderBackward1"
    aten = "remainder.Tensor"

    def forward(self, a: Any, b: Any) -> Any:
        return v.remainder(a, b)

    def times(self, a: Any, b: Any) -> Any:
        a, b = match_dtypes(a, b)
        return v.floor_divide(a, b)


@op
class FmodNumber(Numbered):
    """What is left of input after division by a number, with input's sign."""

    name, node, params = "fmod_number", "FmodBackward0", ("other",)
    aten = "fmod.Scalar"
    saved_names = ""

    def __init__(self, other: Any) -> None:
        super().__init__()
        self.other = other
        self.count(other)

    def forward(self, x: Any) -> Any:
        return v.fmod(self.lift_bools(x), self.other)

    def partials(self) -> Any:
        return (1,)

    samples = drawn(real=[(0.7, (2, 3)), (0.7, ())])


@op
class RemainderNumber(FmodNumber):
    """What is left of input after division by a number, with the number's sign."""

    name, node = "remainder_number", "RemainderBackward0"
    aten = "remainder.Scalar"

    def forward(self, x: Any) -> Any:
        return v.remainder(self.lift_bools(x), self.other)

    samples = drawn(real=[(0.7, (2, 3)), (-0.7, ())])


class RemainderOfNumber(Unfinished):
    """What is left of a number after division by a tensor."""

    name, inputs = "remainder", ("self", "other")
    aten = "remainder.Tensor"

    def forward(self, a: Any, b: Any) -> Any:
        return v.remainder(a, b)


class FloorDivide(Unfinished):
    """input / other, rounded down."""

    name, inputs, unrounded = "floor_divide", ("self", "other"), (1,)

    def forward(self, a: Any, b: Any) -> Any:
        return v.floor_divide(a, b)


FMOD, REMAINDER, FLOOR_DIVIDE = Fmod(), Remainder(), FloorDivide()
REMAINDER_OF_NUMBER = RemainderOfNumber()


def _implement_division(primitive: str, kernel: str, made: Any) -> None:
    """Let an op that divides implement a primitive on tensors."""

    def implement(a: Any, b: Any) -> Any:
        check_integers(kernel, a, b)
        return binary(made, operand(a), operand(b))

    implements(primitive)(implement)


_implement_division("fmod", "fmod_cpu", FMOD)
_implement_division("remainder", "remainder_cpu", REMAINDER)
_implement_division("floor_divide", "div_floor_cpu", DivFloor())


@function(out=True, inplace=True, settles=True)
def fmod(input: Any, other: Any) -> Any:
    """What is left after division, with the sign of `input`.

    >>> torch.fmod(torch.tensor([5., -5.]), 3)
    tensor([ 2., -2.])
    """
    check_second("fmod", input, other)
    check_integers("fmod_cpu", input, other)
    if isinstance(other, TensorBase):
        return FMOD, (input, other)
    return shared_op(FmodNumber, number_beside(input, operand(other))), (input,)


@function(out=True, inplace=True, settles=True)
def remainder(input: Any, other: Any) -> Any:
    """What is left after division, with the sign of `other`: Python's `%`.

    >>> torch.remainder(torch.tensor([5., -5.]), 3)
    tensor([2., 1.])
    """
    numbers = sum(not isinstance(x, TensorBase) for x in (input, other))
    if numbers > 1 or (numbers and not is_number(other) and not is_number(input)):
        raise invalid(
            "remainder", (input, other), "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Number self, Tensor other)", "(Tensor input, Number other, *, Tensor out = None)",
        )  # fmt: skip
    check_integers("remainder_cpu", input, other)
    if isinstance(input, TensorBase):
        check_second("remainder", input, other)
        if isinstance(other, TensorBase):
            return REMAINDER, (input, other)
        return shared_op(RemainderNumber, number_beside(input, operand(other))), (input,)
    return REMAINDER_OF_NUMBER, (input, other)


@function(out=True, inplace=True, settles=True)
def floor_divide(input: Any, other: Any) -> Any:
    """Divide and round down: Python's `//`.

    >>> torch.floor_divide(torch.tensor([5, -5]), 2)
    tensor([ 2, -3])
    """
    check_operands("floor_divide", input, other)
    check_integers("div_floor_cpu", input, other)
    return FLOOR_DIVIDE, (input, other)


attach_operator("mod", functions["remainder"], functions["remainder_"])
attach_operator("floordiv", functions["floor_divide"], functions["floor_divide_"])


# --- two tensors ----------------------------------------------------------------------------------
row(
    "hypot", Pointwise, "√(input² + other²).", v.hypot, lambda a, b, y: (a / y, b / y),
    inputs=("self", "other"), refuses="bic", primitive="hypot",
    at="torch.tensor([3.]), torch.tensor([4.])", gives="[5.]",
)  # fmt: skip


def _logaddexp(a: Any, b: Any) -> Any:
    if is_complex(a):
        swap = v.real(a) < v.real(b)
        return v.where(swap, b, a) + v.log1p(v.exp(v.where(swap, a - b, b - a)))
    return v.logaddexp(a, b)


row(
    "logaddexp", Pointwise, "log(exp(input) + exp(other)), without overflow.", _logaddexp,
    lambda a, b: (1 / (1 + v.exp(b - a)), 1 / (1 + v.exp(a - b))), inputs=("self", "other"),
    refuses="bi", complex_too=True, primitive="logaddexp", inplace=False,
    at="torch.tensor([0.]), torch.tensor([0.])", gives="[0.6931]",
)  # fmt: skip
row(
    "logaddexp2", Pointwise, "log2(2**input + 2**other), without overflow.", v.logaddexp2,
    lambda a, b: (1 / (1 + v.exp2(b - a)), 1 / (1 + v.exp2(a - b))), inputs=("self", "other"),
    refuses="bic", primitive="logaddexp2", inplace=False,
    at="torch.tensor([0.]), torch.tensor([0.])", gives="[1.]",
)  # fmt: skip


class Extreme(Elementwise):
    """The larger or smaller of two; who is equal shares the gradient."""

    inputs = saves = ("self", "other")

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise RuntimeError(f"{self.name} not implemented for complex tensors.")

    def loses(self, a: Any, b: Any) -> Any:
        """Where `a` is surely not the answer."""
        raise NotImplementedError

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        a, b = match_dtypes(a, b)
        half = v.where(a == b, g / 2, g)
        return (
            v.where(self.loses(a, b), 0, half) if node._needs_grad(0) else None,
            v.where(self.loses(b, a), 0, half) if node._needs_grad(1) else None,
        )

    def partials(self, a: Any, b: Any) -> Any:
        a, b = match_dtypes(a, b)
        half = 1 - 0.5 * v.where(a == b, a * 0 + 1, a * 0)
        return v.where(self.loses(a, b), 0, half), v.where(self.loses(b, a), 0, half)


row(
    "maximum", Extreme, "The larger of two elements; NaN wins.", v.maximum,
    loses=lambda a, b: a < b, scalar="fmax({0}, {1})", primitive="maximum", inplace=False,
    at="torch.tensor([1., 4.]), torch.tensor([3., 2.])", gives="[3., 4.]",
)  # fmt: skip
row(
    "minimum", Extreme, "The smaller of two elements; NaN wins.", v.minimum,
    loses=lambda a, b: a > b, scalar="fmin({0}, {1})", primitive="minimum", inplace=False,
    at="torch.tensor([1., 4.]), torch.tensor([3., 2.])", gives="[1., 2.]",
)  # fmt: skip


class Choice(Extreme):
    """The larger or smaller of two; NaN loses, and the first takes the gradient of equals."""

    def first(self, a: Any, b: Any) -> Any:
        """Where the answer is `a`."""
        raise NotImplementedError

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        a, b = match_dtypes(a, b)
        mine = self.first(a, b)
        return v.where(mine, g, 0), v.where(mine, 0, g)

    def partials(self, a: Any, b: Any) -> Any:
        a, b = match_dtypes(a, b)
        mine = self.first(a, b)
        return v.cast(mine, raw_dtype(a)), v.cast(v.logical_not(mine), raw_dtype(a))


row(
    "fmax", Choice, "The larger of two elements; NaN loses.", v.fmax,
    first=lambda a, b: v.logical_or(a >= b, v.isnan(b)), primitive="fmax", inplace=False,
    at="torch.tensor([1., torch.nan]), torch.tensor([3., 2.])", gives="[3., 2.]",
)  # fmt: skip
row(
    "fmin", Choice, "The smaller of two elements; NaN loses.", v.fmin,
    first=lambda a, b: v.logical_or(a <= b, v.isnan(b)), primitive="fmin", inplace=False,
    at="torch.tensor([1., torch.nan]), torch.tensor([3., 2.])", gives="[1., 2.]",
)  # fmt: skip


class Heaviside(Unfinished):
    """0 below zero, 1 above it, and `values` at zero."""

    name, inputs = "heaviside", ("self", "values")

    def forward(self, a: Any, b: Any) -> Any:
        return v.where(a == 0, b, v.cast(a > 0, raw_dtype(b)))


@op
class NextAfter(Pointwise):
    """The next number that can be represented, from input towards other."""

    name, inputs, saves = "nextafter", ("self", "other"), ("self", "other")
    refuses, low = "bic", True

    def forward(self, a: Any, b: Any) -> Any:
        return v.nextafter(a, b)

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        a, b = match_dtypes(a, b)
        return v.where(a == b, 0, g), zeros(g)

    def partials(self, a: Any, b: Any) -> Any:
        a, b = match_dtypes(a, b)
        return v.cast(a != b, raw_dtype(a)), b * 0


expose(NextAfter, "torch.tensor([1.]), torch.tensor([2.])", "[1.0000]", primitive="nextafter")


@op
class Ldexp(Elementwise):
    """`input` times 2 to the power of `other`.

    Args:
        other: the exponents of 2.
    """

    name, inputs, saves = "ldexp", ("self", "other"), ("other", "result")
    aten = "ldexp.Tensor"
    reads: ClassVar[dict[int, tuple[str, ...]]] = {0: ("other",), 1: ("result",)}
    promotion, complex_too = "float", True
    leads = (0,)  # 2 ** other lies in rows

    def forward(self, a: Any, b: Any) -> Any:
        return a * self.factor(b)

    def vjp(self, node: Node, g: Any, b: Any, y: Any) -> Any:
        return (
            g * conj(self.factor(b)) if node._needs_grad(0) else None,
            g * conj(y * LN2) if node._needs_grad(1) else None,
        )

    def partials(self, b: Any, y: Any) -> Any:
        return self.factor(b), y * LN2

    def factor(self, b: Any) -> Any:
        return v.exp(b * LN2) if is_complex(b) else v.exp2(widen_small_ints(b))


expose(Ldexp, "torch.tensor([1.]), torch.tensor([1, 2, 3])", "[2., 4., 8.]", primitive="ldexp")


class OfIntegers(Pointwise):
    """A function of two integers."""

    inputs, refuses, differentiable = ("self", "other"), "bfc", False

    @classmethod
    def samples(cls, draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield cls(), draw.ints(-9, 10, 2, 3), draw.ints(1, 10, 2, 3)
        yield cls(), draw.ints(-9, 10, 2, 1), draw.ints(1, 10, 3)
        yield cls(), draw.ints(-9, 10), draw.ints(1, 10)


row(
    "gcd", OfIntegers, "The greatest common divisor.", v.gcd, primitive="gcd",
    at="torch.tensor([12, 15]), torch.tensor([8, 10])", gives="[4, 5]",
)  # fmt: skip
row(
    "lcm", OfIntegers, "The least common multiple.", v.lcm, primitive="lcm",
    at="torch.tensor([4, 5]), torch.tensor([6, 10])", gives="[12, 10]",
)  # fmt: skip
HEAVISIDE = Heaviside()
register_impl("heaviside", HEAVISIDE)


@function(out=True, inplace=True)
def heaviside(input: Any, values: Any) -> Any:
    """0 below zero, 1 above it, and `values` at zero.

    Args:
        values: the result where `input` is 0.

    >>> torch.heaviside(torch.tensor([-1., 0., 2.]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    check_tensors("heaviside", input=input, values=values)
    if is_complex(input) or is_complex(values):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if raw_dtype(input) != raw_dtype(values):
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return HEAVISIDE, (input, values)


@op
class CopySign(Pointwise):
    """The size of `input` with the sign of `other`."""

    name, node, inputs = "copysign", "CopysignBackward0", ("self", "other")
    aten = "copysign.Tensor"
    saves, promotion, refuses = ("self", "result"), "float", "c"

    def forward(self, a: Any, b: Any) -> Any:
        return v.copysign(a, b)

    def vjp(self, node: Node, g: Any, a: Any, y: Any) -> Any:
        return g * self.sign_change(a, y), zeros(g)

    def partials(self, a: Any, y: Any) -> Any:
        return self.sign_change(a, y), y * 0

    def sign_change(self, a: Any, y: Any) -> Any:
        """1 where the sign stayed, -1 where it changed, 0 at zero."""
        return v.where(a == 0, 0, y / a)


class CopySignNumber(CopySign):
    """The size of input with the sign of a number."""

    node, shown_edges, has_rules_of = "CopysignBackward1", (0,), CopySign


COPYSIGN_NUMBER = CopySignNumber()


def _choose_copysign(name: str, input: Any, other: Any) -> Any:
    check_second(name, input, other)
    return COPYSIGN_NUMBER


expose(
    CopySign, "torch.tensor([1., -2.]), torch.tensor([-1., 1.])", "[-1.,  2.]",
    primitive="copysign", choose=_choose_copysign,
)  # fmt: skip
