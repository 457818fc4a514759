"""Addition, subtraction, multiplication, division, negation.

The rules of the five hottest ops stand in `core.arithmetic`, which is compiled;
`docs/adding-an-op.md` says why.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.arithmetic import Add, Div, Mul, Neg, Sub, refuse_bools
from rushlight.core.dispatch import binary, unary
from rushlight.core.elementwise import operand, result_dtype
from rushlight.core.families import Elementwise
from rushlight.core.graph import TensorBase
from rushlight.core.operators import table as operators
from rushlight.ops import old_forms
from rushlight.ops.apply import run
from rushlight.ops.checks import check_operands, invalid
from rushlight.ops.numbers import Number
from rushlight.ops.operands import attach_operator, check_integers, integral, number_from
from rushlight.ops.pointwise.family import Flat
from rushlight.ops.registry import function, functions, implements, op

for _cls in (Add, Div, Mul, Neg, Sub):
    op(_cls)

ADD, SUB, MUL, DIV, NEG = Add(), Sub(), Mul(), Div(), Neg()
operators.add, operators.sub, operators.mul = ADD, SUB, MUL
operators.div, operators.neg = DIV, NEG
implements("add")(partial(binary, ADD))
implements("subtract")(partial(binary, SUB))
implements("multiply")(partial(binary, MUL))
implements("divide")(partial(binary, DIV))
implements("negative")(partial(unary, NEG))


# --- addition and subtraction ---------------------------------------------------------------------
def check_alpha(function: str, alpha: Any, input: Any, other: Any) -> Any:
    """`alpha` as a number that fits the operands' dtype."""
    alpha = number_from(alpha, function, "alpha")
    common = result_dtype((operand(input), operand(other)))
    if isinstance(alpha, bool) and common is not dtypes.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and not (common.is_floating_point or common.is_complex):
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if isinstance(alpha, complex) and not common.is_complex:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if common is dtypes.bool_:
        return bool(alpha)
    if isinstance(alpha, int) and common.numpy.kind == "u":
        alpha %= 1 << common.itemsize * 8  # negative numbers wrap round
    return alpha


@function(out=True, inplace=True, settles=True)
def add(input: Any, other: Any, *deprecated: Any, alpha: Number = 1) -> Any:
    """Add `other`, scaled by `alpha`, to `input`.

    >>> torch.add(torch.tensor([1., 2.]), 10, alpha=2)
    tensor([21., 22.])
    """
    if deprecated:
        args = (input, other, *deprecated)
        input, other, alpha = old_forms.reorder_scaled("add", args, "alpha", "other")
    check_operands("add", input, other)
    if type(alpha) is int and alpha == 1:
        return ADD, (input, other)
    return Add(check_alpha("add", alpha, input, other)), (input, other)


@function(out=True, inplace=True, aliases=("subtract",), settles=True)
def sub(input: Any, other: Any, *deprecated: Any, alpha: Number = 1) -> Any:
    """Subtract `other`, scaled by `alpha`, from `input`.

    >>> torch.sub(torch.tensor([1., 2.]), 10, alpha=2)
    tensor([-19., -18.])
    """
    if deprecated:
        args = (input, other, *deprecated)
        input, other, alpha = old_forms.reorder_scaled("sub", args, "alpha", "other")
    check_operands("sub", input, other)
    input, other = operand(input), operand(other)
    refuse_bools((input, other))
    if type(alpha) is int and alpha == 1:
        return SUB, (input, other)
    return Sub(check_alpha("sub", alpha, input, other)), (input, other)


@op
class Rsub(Elementwise):
    """other - alpha * input."""

    name, inputs, params = "rsub", ("self", "other"), ("alpha",)
    aten = "rsub.Scalar"
    complex_too = True
    scalar = "({1} - {0})"
    alpha: Any = 1
    whole = True

    def check_operands(self, xs: tuple[Any, ...]) -> None:
        refuse_bools(xs)

    def forward(self, a: Any, b: Any) -> Any:
        return b - a if self.alpha == 1 else b - a * self.alpha

    def partials(self) -> Any:
        return -self.alpha, 1


class RsubNumber(Rsub):
    """other - alpha * input, for a number."""

    node, shown_edges, has_rules_of = "RsubBackward1", (0,), Rsub


operators.rsub = RsubNumber()


@function(method=False)
def rsub(input: Any, other: Any, *, alpha: Number = 1) -> Any:
    """`other` minus `input` scaled by `alpha`: subtraction the other way round.

    >>> torch.rsub(torch.tensor([1., 2.]), 10)
    tensor([9., 8.])
    """
    if not isinstance(input, TensorBase):
        raise invalid(
            "rsub", (input, other), "(Tensor input, Tensor other, *, Number alpha = 1)",
            "(Tensor input, Number other, Number alpha = 1)",
        )  # fmt: skip
    check_operands("rsub", input, other)
    input, other = operand(input), operand(other)
    refuse_bools((input, other))
    alpha = check_alpha("rsub", alpha, input, other)
    return run((Rsub if isinstance(other, TensorBase) else RsubNumber)(alpha), (input, other))


# --- multiplication and division ------------------------------------------------------------------
@function(out=True, inplace=True, aliases=("multiply",), settles=True)
def mul(input: Any, other: Any) -> Any:
    """Multiply element by element.

    >>> torch.mul(torch.tensor([1., 2.]), 3)
    tensor([3., 6.])
    """
    check_operands("mul", input, other)
    return MUL, (input, other)


class DivRounded(Flat):
    """input / other, rounded to an integer."""

    inputs, unrounded = ("self", "other"), (1,)
    node, aten, params = "DivBackward2", "div.Tensor_mode", ("rounding_mode",)
    rounding_mode: ClassVar[str] = ""


@op
class DivTrunc(DivRounded):
    """input / other, rounded towards zero."""

    name = "div_trunc"
    rounding_mode = "trunc"

    def forward(self, a: Any, b: Any) -> Any:
        if integral(a if hasattr(a, "dtype") else b):
            # C's division: from the floor, up by one where that rounded away from zero
            q = a // b
            return v.where(v.logical_and(q < 0, q * b != a), q + 1, q)
        return v.trunc(a / b)


@op
class DivFloor(DivRounded):
    """input / other, rounded down."""

    name = "div_floor"
    rounding_mode = "floor"

    def forward(self, a: Any, b: Any) -> Any:
        return v.floor_divide(a, b)


DIV_TRUNC, DIV_FLOOR = DivTrunc(), DivFloor()


@function(out=True, inplace=True, aliases=("divide",), settles=True)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Divide element by element; `rounding_mode` 'trunc' rounds towards zero and 'floor' down.

    >>> x = torch.tensor([5, -5])
    >>> torch.div(x, 2), torch.div(x, 2, rounding_mode="floor")
    (tensor([ 2.5000, -2.5000]), tensor([ 2, -3]))
    """
    check_operands("div", input, other)
    if rounding_mode is None:
        return DIV, (input, other)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    check_integers(f"div_{rounding_mode}_cpu", input, other)
    return (DIV_TRUNC if rounding_mode == "trunc" else DIV_FLOOR), (input, other)


@function(out=True, inplace=True, settles=True)
def true_divide(input: Any, other: Any) -> Any:
    """Divide element by element; integers give floats.

    >>> torch.true_divide(torch.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """
    check_operands("true_divide", input, other)
    return DIV, (input, other)


# --- negation -------------------------------------------------------------------------------------
@function(out=True, inplace=True, aliases=("negative",), settles="rank")
def neg(input: Any) -> Any:
    """The negative of each element.

    >>> torch.neg(torch.tensor([1., -2.]))
    tensor([-1.,  2.])
    """
    return NEG, (input,)


# --- Python's operators ---------------------------------------------------------------------------
attach_operator("add", None, functions["add_"])
attach_operator("sub", None, functions["sub_"])
attach_operator("mul", None, functions["mul_"])
attach_operator("truediv", None, functions["div_"])
attach_operator("div", functions["div"], functions["div_"], swapped=False)


@function(name="__rdiv__", free=False)
def _rdiv(input: Any, other: Any) -> Any:
    """`__rtruediv__` by its old name. (Asked for that by name, a compiled class would first try
    the other operand's division.)"""
    return functions["reciprocal"](input) * other
