"""Whether any or all elements are true, and how many are not zero.

Built on the same parts as `reduce`, which counts with it.
"""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear, Reduce
from rushlight.core.record import apply
from rushlight.ops.apply import run
from rushlight.ops.checks import check_tensor
from rushlight.ops.out import fill_out
from rushlight.ops.reduction.family import Fold, dims_of, negatives, numpy_names
from rushlight.ops.registry import function, implements, op


@op
class CountNonzero(Fold):
    """How many elements over `dims` are not zero (with `numbers`: are not NaN)."""

    name, differentiable = "count_nonzero", False
    params = ("dims", "keepdim", "numbers")
    complex_too = True

    def __init__(
        self, dims: tuple[int, ...] | None, keepdim: bool = False, numbers: bool = False
    ) -> None:
        super().__init__(dims, keepdim)
        self.numbers = numbers

    def forward(self, x: Any) -> Any:
        counted = v.equal(x, x) if self.numbers else v.not_equal(x, 0)
        return v.reduce_sum(counted, self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield CountNonzero((-1,)), draw.real(2, 3)
        yield CountNonzero(None), draw.real(0)


@op
class Any_(Reduce):
    """Whether any element over `dims` is not zero."""

    name, differentiable = "any", False
    complex_too = True

    def forward(self, x: Any) -> Any:
        return v.reduce_any(v.not_equal(x, 0), self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Any_((-1,), False), draw.real(2, 3)
        yield Any_(None, False), draw.real(0)


@op
class All(Reduce):
    """Whether all elements over `dims` are not zero."""

    name, differentiable = "all", False
    complex_too = True

    def forward(self, x: Any) -> Any:
        return v.reduce_all(v.not_equal(x, 0), self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield All((-1,), False), draw.real(2, 3)
        yield All(None, False), draw.real(0)


@op
class Truth(Linear):
    """Each element as a bool, or as 0 and 1 of uint8: `x.any(dim=())` reduces nothing."""

    name, params, differentiable = "truth", ("dtype",), False

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Any) -> Any:
        return v.cast(v.cast(x, dtypes.bool_.numpy), self.dtype)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Truth(dtypes.bool_.numpy), draw.real(2, 3)


def _test(name: str, cls: Any, input: Any, dim: Any, keepdim: bool, out: Any) -> Any:
    array = check_tensor(input, name)
    if isinstance(dim, (tuple, list)) and not dim:
        y = apply(Truth(dtypes.bool_.numpy), input)
    else:
        y = apply(cls(dims_of(name, dim, array.ndim), keepdim), input)
    if array.dtype == dtypes.uint8.numpy:  # PyTorch's bool of old keeps its dtype
        y = apply(Truth(array.dtype), y)
    return y if out is None else fill_out(name, out, y)


@function(name="any")
@numpy_names
def any_(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """any(input, dim=None, keepdim=False, *, out=None) -> Tensor

    Whether any element is true (not zero).

    >>> import rushlight as torch
    >>> torch.any(torch.tensor([[False, True], [False, False]]), 1)
    tensor([ True, False])
    """
    return _test("any", Any_, input, dim, keepdim, out)


@function(name="all")
@numpy_names
def all_(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """all(input, dim=None, keepdim=False, *, out=None) -> Tensor

    Whether all elements are true (not zero).

    >>> import rushlight as torch
    >>> torch.all(torch.tensor([[True, True], [False, True]]), 1)
    tensor([ True, False])
    """
    return _test("all", All, input, dim, keepdim, out)


@function()
@numpy_names
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """count_nonzero(input, dim=None) -> Tensor

    How many elements are not zero.

    >>> import rushlight as torch
    >>> torch.count_nonzero(torch.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """
    array = check_tensor(input, "count_nonzero")
    return run(CountNonzero(dims_of("count_nonzero", dim, array.ndim)), (input,))


@implements("reduce_any")
def _anything(x: Any, axes: Any, keep: bool) -> Any:
    return apply(Any_(negatives(axes, x._array.ndim), keep), x)


@implements("reduce_all")
def _everything(x: Any, axes: Any, keep: bool) -> Any:
    return apply(All(negatives(axes, x._array.ndim), keep), x)
