"""Questions about one tensor: what its elements are (`isnan`) and what its dtype is."""

from __future__ import annotations

import math
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.elementwise import operand, result_dtype
from rushlight.core.families import Elementwise
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import invalid, is_number, raw_dtype
from rushlight.ops.operands import integral
from rushlight.ops.pointwise.family import row
from rushlight.ops.registry import function


# --- of each element ------------------------------------------------------------------------------
class Test(Elementwise):
    """A question about each element."""

    promotion, differentiable = "bool", False


class RealTest(Test):
    """A question about real numbers only."""

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise RuntimeError(f"{self.name} does not support complex inputs.")


def _all_false(x: Any) -> Any:
    return v.not_equal(x, x)


def _isreal(x: Any) -> Any:
    if raw_dtype(x).kind in "cW":
        return v.equal(v.imag(x), 0)
    return v.full(x, tuple(x.shape), True, dtypes.bool_.numpy)


_SAMPLE: Final = "[1., torch.inf, -torch.inf, torch.nan]"
row(
    "isnan", Test, "Whether elements are NaN.",
    lambda x: _all_false(x) if integral(x) else v.isnan(x), complex_too=True, primitive="isnan",
    inplace=False, out=False, at=_SAMPLE, gives="[False, False, False,  True]",
)  # fmt: skip
row(
    "isinf", Test, "Whether elements are infinite.",
    lambda x: _all_false(x) if integral(x) else v.isinf(x), complex_too=True, primitive="isinf",
    inplace=False, out=False, at=_SAMPLE, gives="[False,  True,  True, False]",
)  # fmt: skip
row(
    "isfinite", Test, "Whether elements are neither infinite nor NaN.",
    lambda x: v.equal(x, x) if integral(x) else v.isfinite(x), complex_too=True,
    primitive="isfinite", inplace=False, out=False, at=_SAMPLE,
    gives="[ True, False, False, False]",
)  # fmt: skip
row(
    "isposinf", RealTest, "Whether elements are plus infinity.",
    lambda x: _all_false(x) if integral(x) else v.equal(x, math.inf), inplace=False,
    at=_SAMPLE, gives="[False,  True, False, False]",
)  # fmt: skip
row(
    "isneginf", RealTest, "Whether elements are minus infinity.",
    lambda x: _all_false(x) if integral(x) else v.equal(x, -math.inf), inplace=False,
    at=_SAMPLE, gives="[False, False,  True, False]",
)  # fmt: skip
row(
    "isreal", Test, "Whether elements have no imaginary part.", _isreal, complex_too=True,
    inplace=False, out=False, at=_SAMPLE, gives="[True, True, True, True]",
)  # fmt: skip


# --- of the whole tensor --------------------------------------------------------------------------
@function()
def is_nonzero(input: Any) -> bool:
    """Whether a tensor of one element is not zero.

    >>> torch.is_nonzero(torch.tensor([0.]))
    False
    """
    size = input._array.size
    if size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if size > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(input._array)


@function()
def is_floating_point(input: Any) -> bool:
    """Whether the tensor's dtype is one of the floats.

    >>> torch.is_floating_point(torch.tensor([1.]))
    True
    """
    return dtypes.of(input._array.dtype).is_floating_point


@function()
def is_complex(input: Any) -> bool:
    """Whether the tensor's dtype is complex.

    >>> torch.is_complex(torch.tensor([1j]))
    True
    """
    return dtypes.of(input._array.dtype).is_complex


@function()
def is_signed(input: Any) -> bool:
    """Whether the tensor's dtype has negative numbers.

    >>> torch.is_signed(torch.tensor([1], dtype=torch.uint8))
    False
    """
    return dtypes.of(input._array.dtype).is_signed


@function(method=False, name="result_type", returns="dtype")
def result_type_of(tensor1: Any, tensor2: Any) -> Any:
    """The dtype that arithmetic on two tensors or numbers gives.

    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    for x in (tensor1, tensor2):
        if not isinstance(x, TensorBase) and not is_number(x):
            raise invalid(
                "result_type", (tensor1, tensor2), "(Tensor tensor, Tensor other)",
                "(Number scalar, Tensor tensor)", "(Tensor tensor, Number other)",
                "(Number scalar1, Number scalar2)",
            )  # fmt: skip
    return result_dtype((operand(tensor1), operand(tensor2)))
