"""Logic on whether elements are zero, and on the bits of integers.

`tensor` may import this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import unary
from rushlight.core.families import Elementwise, is_complex
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import check_tensors, invalid, is_number
from rushlight.ops.operands import attach_operator, integral
from rushlight.ops.pointwise.family import Pointwise, expose, expose_pair, register_impl
from rushlight.ops.pointwise.predicates import Test
from rushlight.ops.registry import function, functions, methods, op
from rushlight.ops.sample_inputs import Draw


# --- logic ----------------------------------------------------------------------------------------
def truth(x: Any) -> Any:
    """Complex numbers as whether they are other than zero: CuPy's logic does not take them."""
    return x != 0 if is_complex(x) else x


class Logic(Elementwise):
    """Logic on whether elements are zero."""

    inputs, promotion, differentiable = ("self", "other"), "bool", False
    complex_too = True


@op
class LogicalAnd(Logic):
    """Whether both elements are other than zero."""

    name = "logical_and"

    def forward(self, a: Any, b: Any) -> Any:
        return v.logical_and(truth(a), truth(b))


@op
class LogicalOr(Logic):
    """Whether either element is other than zero."""

    name = "logical_or"

    def forward(self, a: Any, b: Any) -> Any:
        return v.logical_or(truth(a), truth(b))


@op
class LogicalXor(Logic):
    """Whether just one of the elements is other than zero."""

    name = "logical_xor"

    def forward(self, a: Any, b: Any) -> Any:
        return v.logical_xor(truth(a), truth(b))


@op
class LogicalNot(Test):
    """Whether elements are zero."""

    name = "logical_not"
    complex_too = True

    def forward(self, x: Any) -> Any:
        return v.logical_not(truth(x))


_SAMPLE: Final = "torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])"
for _cls, _shown in (
    (LogicalAnd, "tensor([False, False,  True])"),
    (LogicalOr, "tensor([False,  True,  True])"),
    (LogicalXor, "tensor([False,  True, False])"),
):  # fmt: skip
    register_impl(_cls.name, expose_pair(_cls, _SAMPLE, _shown, inplace=True))
register_impl(
    "logical_not", expose(LogicalNot, "torch.tensor([0, 1, 2])", "tensor([ True, False, False])")
)


# --- bits -----------------------------------------------------------------------------------------
class Bits(Pointwise):
    """An op on the bits of integers (or bools)."""

    inputs: ClassVar[tuple[str, ...]] = ("self", "other")
    promotion, differentiable, refuses = "int", False, "fc"

    @classmethod
    def samples(cls, draw: Draw) -> Iterator[tuple[Any, ...]]:
        for first, second in (((2, 3), (2, 3)), ((2, 1), (3,)), ((), ())):
            xs = (draw.ints(-9, 10, *first), draw.ints(0, 8, *second))
            yield (cls(), *xs[: len(cls.inputs)])


@op
class BitwiseAnd(Bits):
    """The bits that both have."""

    name = "bitwise_and"
    aten = "bitwise_and.Tensor|Scalar"

    def forward(self, a: Any, b: Any) -> Any:
        return v.bitwise_and(a, b)


@op
class BitwiseOr(Bits):
    """The bits that either has."""

    name = "bitwise_or"
    aten = "bitwise_or.Tensor|Scalar"

    def forward(self, a: Any, b: Any) -> Any:
        return v.bitwise_or(a, b)


@op
class BitwiseXor(Bits):
    """The bits that just one has."""

    name = "bitwise_xor"
    aten = "bitwise_xor.Tensor|Scalar"

    def forward(self, a: Any, b: Any) -> Any:
        return v.bitwise_xor(a, b)


@op
class BitwiseLeftShift(Bits):
    """The bits of input moved up by other."""

    name, kernel, refuses = "bitwise_left_shift", "lshift_cpu", "bfc"

    def forward(self, a: Any, b: Any) -> Any:
        return v.left_shift(a, b)


@op
class BitwiseRightShift(Bits):
    """The bits of input moved down by other; the sign stays."""

    name, kernel, refuses = "bitwise_right_shift", "rshift_cpu", "bfc"

    def forward(self, a: Any, b: Any) -> Any:
        return v.right_shift(a, b)


@op
class BitwiseNot(Bits):
    """The bits that are not set; not, of bools."""

    name, inputs = "bitwise_not", ("self",)

    def forward(self, x: Any) -> Any:
        return v.invert(x)


def _check_bits(name: str, input: Any, other: Any) -> None:
    """A tensor and a number, in either order: PyTorch's error unless they are."""
    tensors = [isinstance(x, TensorBase) for x in (input, other)]
    if not any(tensors) or not all(t or is_number(x) for t, x in zip(tensors, (input, other))):
        raise invalid(
            name, (input, other), "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Number self, Tensor other)", "(Tensor input, Number other, *, Tensor out = None)",
        )  # fmt: skip


def _expose_bits(cls: Any, primitive: str, operator: str, args: str, shown: str) -> None:
    """The function, the operator and the word of an op on bits."""
    register_impl(primitive, expose_pair(cls, args, shown, inplace=True, check=_check_bits))
    attach_operator(operator, functions[cls.name], functions[cls.name + "_"])


_expose_bits(BitwiseAnd, "bitwise_and", "and", "torch.tensor([3, 6]), 2", "tensor([2, 2])")
_expose_bits(BitwiseOr, "bitwise_or", "or", "torch.tensor([1, 4]), 2", "tensor([3, 6])")
_expose_bits(BitwiseXor, "bitwise_xor", "xor", "torch.tensor([3, 6]), 2", "tensor([1, 4])")
_expose_bits(
    BitwiseLeftShift, "left_shift", "lshift", "torch.tensor([1, 3]), 2", "tensor([ 4, 12])"
)
_expose_bits(
    BitwiseRightShift, "right_shift", "rshift", "torch.tensor([8, -8]), 2", "tensor([ 2, -2])"
)
BITWISE_NOT = BitwiseNot()
register_impl("invert", BITWISE_NOT)


@function(out=True, inplace=True)
def bitwise_not(input: Any) -> Any:
    """bitwise_not(input, *, out=None) -> Tensor

    The bits that are not set; not, of bools.

    >>> import rushlight as torch
    >>> torch.bitwise_not(torch.tensor([0, 5]))
    tensor([-1, -6])
    """
    check_tensors("bitwise_not", input=input)
    BITWISE_NOT.check(dtypes.of(input._array.dtype))  # the fast path for floats does not
    return BITWISE_NOT, (input,)


def _invert(self: Any) -> Any:
    if not integral(self):
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return unary(BITWISE_NOT, self)


methods["__invert__"] = _invert
