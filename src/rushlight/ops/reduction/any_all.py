"""Whether any or all elements are true, and how many are not zero."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear, Reduce
from rushlight.core.record import apply
from rushlight.ops.apply import run
from rushlight.ops.checks import check_tensor
from rushlight.ops.out import fill_out
from rushlight.ops.reduction.family import Fold, axes_from_end, declare, dims_of, numpy_names
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import drawn


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

    def mover(self, rule: str) -> Any:
        plain = not self.numbers and not self.keepdim and self.dims is None
        return kernels.bound(kernels.nonzero, 0) if plain else None

    def forward(self, x: Any) -> Any:
        counted = v.equal(x, x) if self.numbers else v.not_equal(x, 0)
        return v.reduce_sum(counted, self.dims, self.keepdim)

    samples = drawn(real=[((-1,), (2, 3)), (None, (0,))])


@op
class Any_(Reduce):
    """Whether any element over `dims` is not zero."""

    name, differentiable, complex_too = "any", False, True
    aten = "any.default|dim|dims"
    test: ClassVar[Any] = staticmethod(v.reduce_any)
    of_all: ClassVar[int] = 1

    def mover(self, rule: str) -> Any:
        plain = not self.keepdim and self.dims is None
        return kernels.bound(kernels.nonzero, self.of_all) if plain else None

    def forward(self, x: Any) -> Any:
        return self.test(v.not_equal(x, 0), self.dims, self.keepdim)

    samples = drawn(real=[((-1,), False, (2, 3)), (None, False, (0,))])


@op
class All(Any_):
    """Whether all elements over `dims` are not zero."""

    name, test = "all", staticmethod(v.reduce_all)
    of_all = 2
    aten = "all.default|dim|dims"


@op
class Truth(Linear):
    """Each element as a bool, or as 0 and 1 of uint8: `x.any(dim=())` reduces nothing."""

    name, params, differentiable = "truth", ("dtype",), False
    aten = None
    dtype: Any

    def forward(self, x: Any) -> Any:
        return v.cast(v.cast(x, dtypes.bool_.numpy), self.dtype)

    samples = drawn(real=[(dtypes.bool_.numpy, (2, 3))])


def _declare_test(cls: Any, example: str) -> None:
    """The function and the primitive of `any` or `all`."""
    name = cls.name

    def fn(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
        array = check_tensor(input, name)
        if isinstance(dim, (tuple, list)) and not dim:
            y = apply(Truth(dtypes.bool_.numpy), input)
        else:
            y = apply(cls(dims_of(name, dim, array.ndim), keepdim), input)
        if array.dtype == dtypes.uint8.numpy:  # PyTorch's bool of old keeps its dtype
            y = apply(Truth(array.dtype), y)
        return y if out is None else fill_out(name, out, y)

    def implement(x: Any, axes: Any, keep: bool) -> Any:
        return apply(cls(axes_from_end(axes, x._array.ndim), keep), x)

    plural = "element is" if name == "any" else "elements are"
    declare(
        fn, name, f"Whether {name} {plural} true (not zero).",
        f"torch.{name}(torch.tensor({example}), 1)", "tensor([ True, False])",
    )  # fmt: skip
    implements("reduce_" + name)(implement)


_declare_test(Any_, "[[False, True], [False, False]]")
_declare_test(All, "[[True, True], [False, True]]")


@function(settles=True)
@numpy_names
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """How many elements are not zero.

    >>> torch.count_nonzero(torch.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """
    array = check_tensor(input, "count_nonzero")
    return run(CountNonzero(dims_of("count_nonzero", dim, array.ndim)), (input,))
