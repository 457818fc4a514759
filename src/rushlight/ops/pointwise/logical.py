"""Logic on whether elements are zero, and on the bits of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import unary
from rushlight.core.families import Elementwise, is_complex
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import invalid, is_number
from rushlight.ops.operands import attach_operator, integral
from rushlight.ops.pointwise.family import Pointwise, register_impl, row
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
    complex_too, of_bools = True, True


_PAIR: Final = "torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])"
row(
    "logical_and", Logic, "Whether both elements are other than zero.",
    lambda a, b: v.logical_and(truth(a), truth(b)), primitive="logical_and",
    at=_PAIR, gives="[False, False,  True]",
)  # fmt: skip
row(
    "logical_or", Logic, "Whether either element is other than zero.",
    lambda a, b: v.logical_or(truth(a), truth(b)), primitive="logical_or",
    at=_PAIR, gives="[False,  True,  True]",
)  # fmt: skip
row(
    "logical_xor", Logic, "Whether just one of the elements is other than zero.",
    lambda a, b: v.logical_xor(truth(a), truth(b)), primitive="logical_xor",
    at=_PAIR, gives="[False,  True, False]",
)  # fmt: skip
row(
    "logical_not", Test, "Whether elements are zero.", lambda x: v.logical_not(truth(x)),
    complex_too=True, primitive="logical_not", at="[0, 1, 2]", gives="[ True, False, False]",
)  # fmt: skip


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


def _bits(
    name: str, text: str, forward: Any, primitive: str, operator: str, at: str, gives: str,
    **facts: Any,
) -> None:  # fmt: skip
    """An op on bits, its function and its operator."""
    row(
        name,
        Bits,
        text,
        forward,
        primitive=primitive,
        choose=_check_bits,
        at=at,
        gives=gives,
        **facts,
    )
    attach_operator(operator, functions[name], functions[name + "_"])


_bits(
    "bitwise_and", "The bits that both have.", v.bitwise_and, "bitwise_and", "and",
    "torch.tensor([3, 6]), 2", "[2, 2]",
    aten="bitwise_and.Tensor|Scalar", whole=True, of_bools=True,
)  # fmt: skip
_bits(
    "bitwise_or", "The bits that either has.", v.bitwise_or, "bitwise_or", "or",
    "torch.tensor([1, 4]), 2", "[3, 6]",
    aten="bitwise_or.Tensor|Scalar", whole=True, of_bools=True,
)  # fmt: skip
_bits(
    "bitwise_xor", "The bits that just one has.", v.bitwise_xor, "bitwise_xor", "xor",
    "torch.tensor([3, 6]), 2", "[1, 4]",
    aten="bitwise_xor.Tensor|Scalar", whole=True, of_bools=True,
)  # fmt: skip
_bits(
    "bitwise_left_shift", "The bits of input moved up by other.", v.left_shift, "left_shift",
    "lshift", "torch.tensor([1, 3]), 2", "[ 4, 12]", kernel="lshift_cpu", refuses="bfc",
)  # fmt: skip
_bits(
    "bitwise_right_shift", "The bits of input moved down by other; the sign stays.", v.right_shift,
    "right_shift", "rshift", "torch.tensor([8, -8]), 2", "[ 2, -2]", kernel="rshift_cpu",
    refuses="bfc",
)  # fmt: skip
BITWISE_NOT = BitwiseNot()
register_impl("invert", BITWISE_NOT)


@function(out=True, inplace=True)
def bitwise_not(input: Any) -> Any:
    """The bits that are not set; not, of bools.

    >>> torch.bitwise_not(torch.tensor([0, 5]))
    tensor([-1, -6])
    """
    BITWISE_NOT.check(dtypes.of(input._array.dtype))  # the fast path for floats does not
    return BITWISE_NOT, (input,)


def _invert(self: Any) -> Any:
    if not integral(self):
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return unary(BITWISE_NOT, self)


methods["__invert__"] = _invert
