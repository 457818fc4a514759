"""Sums, means, products and what counts or weighs all elements: one result for many.

Norms stand in `vector_norm.py`, largest and smallest in `minmax.py`, running ones in
`cumulative.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.quick import products_of_others
from rushlight.core.families import Linear, conj, is_complex
from rushlight.core.graph import Node, TensorBase
from rushlight.core.record import apply
from rushlight.ops.apply import run
from rushlight.ops.checks import check_dtype, check_tensor, mismatch, not_implemented
from rushlight.ops.out import fill_out
from rushlight.ops.reduction.any_all import CountNonzero
from rushlight.ops.reduction.family import (
    Fold,
    InDtype,
    axes_from_end,
    dims_of,
    fold,
    narrow,
    numpy_names,
    reduced_count,
    shift,
    unfold,
    widen,
)
from rushlight.ops.registry import (
    describe,
    function,
    implements,
    op,
    variant,
)
from rushlight.ops.sample_inputs import drawn

_F32: Final = dtypes.float32.numpy
_F64: Final = dtypes.float64.numpy
_NAN: Final = math.nan
_LITTLE: Final = 4096  # elements that are written sooner than a view is made


# --- sum ------------------------------------------------------------------------------------------
@op
class Sum(InDtype):
    """The sum over `dims`, in `dtype` (None: as it is)."""

    name, node = "sum_dim", "SumBackward1"
    aten = "sum.dim_IntList"
    saved_names = "dim=dims* keepdim self_sym_sizes=self.sizes"
    asked_once = True

    def forward(self, x: Any) -> Any:
        if self.dtype is None:
            return v.reduce_sum(x, self.dims, self.keepdim)
        return v.cast(v.reduce_sum(v.cast(x, self.dtype), self.dims, self.keepdim), self.dtype)

    def vjp(self, node: Node, g: Any) -> Any:
        shapes = node._input_shapes
        assert shapes is not None
        if self.dims is not None:
            g = self.back(g, shapes[0])
        return (v.broadcast(g, shapes[0]),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0])

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Sum((-1,), False), draw.real(2, 3)
        yield Sum((-2,), True), draw.real(2, 3)
        yield Sum((-3, -1), False), draw.real(2, 3, 2)
        yield Sum((-1,), False), draw.real(2, 0)
        yield Sum(None, True), draw.real(2, 2)
        yield Sum((-1,), False), draw.complex(2, 2)


@op
class SumAll(Sum):
    """The sum of all elements: `x.sum()`."""

    name, node = "sum", "SumBackward0"
    aten = "sum.default"
    saved_names = "self_sym_sizes=self.sizes"

    samples = drawn(real=[(2, 3), (), (0, 2)], complex=[(3,)])


def _sum_dtype(given: Any, array: Any) -> Any:
    """The raw dtype a sum is asked to have; None if it is that of the input anyway."""
    want = dtypes.sum_dtype(array.dtype) if given is None else given.numpy
    return None if want is array.dtype and want.kind != "b" else want


def _declare_sum(
    name: str, whole: Any, some: Any, find_dtype: Callable[[Any, Any], Any], text: str,
    example: str, gives: str,
) -> None:  # fmt: skip
    """The function `sum` or `mean`, from the op over all elements, the class of ops over
    dimensions, and what gives the raw dtype of the result (None: the input's)."""
    every = type(whole)

    def fn(
        input: Any, dim: Any = ..., keepdim: bool = False, *, dtype: Any = None, out: Any = None,
        axis: Any = ..., keepdims: bool | None = None, **wrong: Any,
    ) -> Any:  # fmt: skip
        array = check_tensor(input, name)
        if wrong:
            raise mismatch(name, **wrong)
        check_dtype(dtype, name)
        want = find_dtype(dtype, array)
        if axis is not ...:
            dim = axis
        if keepdims is not None:
            keepdim = keepdims
        if dim is ...:
            if keepdim:
                raise mismatch(name, keepdim=keepdim)
            y = apply(whole if want is None else every(None, False, want), input)
        else:
            y = apply(some(dims_of(name, dim, array.ndim), keepdim, want), input)
        return y if out is None else fill_out(name, out, y)

    function(settles="rank")(variant(fn, name, describe(text, example, gives)))


SUM: Final = SumAll()
_declare_sum(
    "sum", SUM, Sum, _sum_dtype,
    "The sum of all elements, or along one or more dimensions. Integers are summed as int64.",
    "torch.tensor([[1., 2.], [3., 4.]]).sum(0)", "tensor([4., 6.])",
)  # fmt: skip


@implements("reduce_sum")
def _total(x: Any, axes: Any, keep: bool) -> Any:
    want = _sum_dtype(None, x._array)
    if axes is None and not keep:
        return apply(SUM if want is None else SumAll(None, False, want), x)
    return apply(Sum(axes_from_end(axes, x._array.ndim), keep, want), x)


# --- mean -----------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=1024)
def _kept(shape: tuple[int, ...], dims: tuple[int, ...] | None) -> tuple[Any, int, bool]:
    """The shape with 1 for the axes of a mean, over how many elements it goes, and whether all of
    them are few."""
    axes = range(len(shape)) if dims is None else [d % len(shape) for d in dims if shape]
    kept = tuple([1 if d in axes else n for d, n in enumerate(shape)])
    return kept, reduced_count(shape, dims), math.prod(shape) <= _LITTLE


@op
class Mean(Sum):
    """The mean over `dims`, in `dtype` (None: as it is)."""

    name, node = "mean_dim", "MeanBackward1"
    aten = "mean.dim"
    saved_names = "dim=dims* keepdim self_sym_numel=self.numel self_sym_sizes=self.sizes"

    def forward(self, x: Any) -> Any:
        x = self.convert(x)
        n = reduced_count(x.shape, self.dims)
        y = v.reduce_sum(widen(x), self.dims, self.keepdim)
        return narrow(y / n if n else y * _NAN, x)

    def vjp(self, node: Node, g: Any) -> Any:
        shapes = node._input_shapes
        assert shapes is not None
        shape = shapes[0]
        kept, n, little = _kept(shape, self.dims)
        # PyTorch gives a dense one; a leaf would copy an expanded one anyway
        dense = not isinstance(g, TensorBase) and (
            little or isinstance(node._next_edges[0], TensorBase)
        )
        if little and dense and (made := kernels.spread(shape, kept, n or 1, g)) is not None:
            return (made,)
        spread = v.broadcast(self.back(g / n if n else g, shape), shape)
        return (v.copy(spread) if dense else spread,)

    samples = drawn(
        real=[((-1,), False, (2, 3)), ((-2, -1), True, (2, 3))], complex=[((-1,), False, (2, 2))]
    )


@op
class MeanAll(Mean):
    """The mean of all elements: `x.mean()`."""

    name, node = "mean", "MeanBackward0"
    aten = "mean.default"
    saved_names = "self_sym_numel=self.numel self_sym_sizes=self.sizes"

    def vjp_kernel_for(self, shape: tuple[int, ...]) -> Any:
        n = math.prod(shape)
        if self.dtype is not None or n > _LITTLE:  # where a view costs less than a copy
            return None
        return kernels.bound(kernels.spread, shape, (1,) * len(shape), n or 1)

    samples = drawn(real=[(2, 3), ()], complex=[(3,)])


def _mean_dtype(given: Any, array: Any) -> Any:
    """The raw dtype of a mean; None if it is that of the input."""
    have = dtypes.of(array.dtype) if given is None else given
    if not (have.is_floating_point or have.is_complex):
        source = "Input" if given is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {source} dtype must be either a floating point "
            f"or complex dtype. Got: {have.scalar_type}\n"
            "Say in which: `x.float().mean()`, or `x.mean(dtype=torch.float32)`."
        )
    return None if have.numpy is array.dtype else have.numpy


_declare_sum(
    "mean", MeanAll(), Mean, _mean_dtype,
    "The mean of all elements, or along one or more dimensions.",
    "torch.tensor([[1., 2.], [3., 4.]]).mean(1)", "tensor([1.5000, 3.5000])",
)  # fmt: skip


# --- sums that pass over NaN ----------------------------------------------------------------------
@op
class NanSum(Sum):
    """The sum over `dims` of what is not NaN."""

    name, node = "nansum", "NansumBackward0"
    aten = "nansum.default"
    saved_names = "dim=dims* keepdim"
    saves = ("self",)

    def forward(self, x: Any) -> Any:
        x = self.convert(x)
        return v.reduce_sum(v.where(v.isnan(x), 0, x), self.dims, self.keepdim)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:  # type: ignore[override]  # what it saves
        return (v.where(v.isnan(x), 0, self.back(g, x.shape)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.reduce_sum(v.where(v.isnan(xs[0]), 0, ts[0]), self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield NanSum((-1,), False), draw.real(2, 3)
        yield NanSum(None, False), draw.real(2, 3)
        yield NanSum(None, False), draw.real()
        yield NanSum((-2,), True), draw.real(0, 3)


@function(out=True)
@numpy_names
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements that are not NaN.

    >>> torch.nansum(torch.tensor([1., float('nan'), 2.]))
    tensor(3.)
    """
    array = check_tensor(input, "nansum")
    if array.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    dims = dims_of("nansum", dim, array.ndim)
    want = _sum_dtype(dtype, array)
    if array.dtype.kind in "iub":
        return Sum(dims, keepdim, want), (input,)
    return NanSum(dims, keepdim, want), (input,)


@function()
@numpy_names
def nanmean(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Any:
    """The mean of all elements that are not NaN.

    >>> torch.nanmean(torch.tensor([1., float('nan'), 2.]))
    tensor(1.5000)
    """
    array = check_tensor(input, "nanmean")
    if array.dtype.kind in "iub":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{dtypes.of(array.dtype).scalar_type}"
        )
    dims = dims_of("nanmean", dim, array.ndim)
    above = nansum(input, dim, keepdim, dtype=dtype)
    below = apply(CountNonzero(dims, keepdim, numbers=True), input)
    y = above / below
    return y if out is None else fill_out("nanmean", out, y)


# --- product --------------------------------------------------------------------------------------
@op
class Prod(InDtype):
    """The product over `dims`, in `dtype` (None: as it is).

    Its derivative, the product of the others, is made of products from the left and from the
    right: without a division, it is right at zeros too, and so are its own derivatives.
    """

    name, node = "prod_dim", "ProdBackward1"
    aten = "prod.dim_int"
    saved_names = "dim=dims keepdim"
    saves = ("self", "result")

    def forward(self, x: Any) -> Any:
        return v.product(self.convert(x), self.dims, self.keepdim)

    def others(self, x: Any) -> Any:
        """For each element the product of the others that go into the same result, unrounded."""
        shape = x.shape
        x = widen(fold(self.convert(x), self.dims))
        quick = products_of_others(x)
        if quick is not None:
            return unfold(quick, self.dims, shape)
        if 0 not in x.shape:
            left = shift(v.cumprod(x, -1), 1, 1)
            right = shift(v.cumprod(v.flip(x, (-1,)), -1), 1, 1)
            x = left * v.flip(right, (-1,))
        return unfold(x, self.dims, shape)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        slope = conj(v.contiguous(self.others(x)))
        return (narrow(widen(self.back(g, x.shape)) * slope, g),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = v.reduce_sum(widen(ts[0]) * self.others(xs[0]), self.dims, self.keepdim)
        return narrow(t, y)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Prod((-1,), False), draw.real(2, 3)
        yield Prod((-2,), True), draw.real(3, 2)
        yield Prod((-3, -1), False), draw.real(2, 2, 3)
        yield Prod((-1,), False), draw.real(2, 0)
        yield Prod((-1,), False), draw.complex(2, 3)


@op
class ProdAll(Prod):
    """The product of all elements: `x.prod()`."""

    name, node = "prod", "ProdBackward0"
    aten = "prod.default"
    saved_names = ""

    samples = drawn(real=[(2, 3), (), (0,)], complex=[(3,)])


@function(out=True, settles=True)
@numpy_names
def prod(input: Any, dim: Any = ..., keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all elements, or along a dimension. Integers are multiplied as int64.

    >>> torch.tensor([2., 3., 4.]).prod()
    tensor(24.)
    """
    array = check_tensor(input, "prod")
    want = _sum_dtype(dtype, array)
    if dim is ...:
        return ProdAll(None, False, want), (input,)
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise mismatch("prod", dim)
    return Prod(dims_of("prod", dim, array.ndim), keepdim, want), (input,)


@implements("product")
def _product(x: Any, axes: Any, keep: bool) -> Any:
    return apply(Prod(axes_from_end(axes, x._array.ndim), keep, _sum_dtype(None, x._array)), x)


# --- logsumexp ------------------------------------------------------------------------------------
@op
class LogSumExp(Fold):
    """log(sum(exp(x))) over `dims`, computed from the largest down."""

    name, saves = "logsumexp", ("self", "result")
    saved_names = "dim=dims* keepdim"

    def forward(self, x: Any) -> Any:
        w = widen(x)
        if reduced_count(x.shape, self.dims) == 0:
            return narrow(v.log(v.reduce_sum(v.exp(w), self.dims, self.keepdim)), x)
        top = v.reduce_max(v.real(w) if is_complex(w) else w, self.dims, True)
        top = v.where(v.isinf(top), 0, top)
        y = v.log(v.reduce_sum(v.exp(w - top), self.dims, True)) + top
        if not self.keepdim:
            y = v.reduce_sum(y, self.dims, False)
        return narrow(y, x)

    def weights(self, x: Any, y: Any) -> Any:
        return v.exp(x - self.back(y, x.shape))

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        return (self.back(g, x.shape) * conj(self.weights(x, y)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.reduce_sum(ts[0] * self.weights(xs[0], y), self.dims, self.keepdim)

    samples = drawn(
        real=[((-1,), False, (2, 3)), ((-2, -1), True, (2, 3)), (None, False, ())],
        complex=[((-1,), False, (2, 2))],
    )


@function(out=True, namespace="special", settles=True)
@numpy_names
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials along one or more dimensions, without overflow.

    >>> torch.logsumexp(torch.tensor([100., 100.]), 0)
    tensor(100.6931)
    """
    array = check_tensor(input, "logsumexp")
    if array.dtype.kind in "iub":
        input = v.cast(input, dtypes.default_numpy)
    return LogSumExp(dims_of("logsumexp", dim, array.ndim), keepdim), (input,)


# --- trace ----------------------------------------------------------------------------------------
@op
class Trace(Linear):
    """The sum along the diagonal of a matrix."""

    name, params = "trace", ("dtype",)
    saved_names = "self_sym_sizes=self.sizes"
    dtype: Any = None

    def forward(self, x: Any) -> Any:
        if self.dtype is not None:
            x = v.cast(x, self.dtype)
        return v.reduce_sum(v.diagonal(x, 0, -2, -1), (-1,), False)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        rows, columns = shape[-2:]
        i = v.iota(g, rows, dtypes.int64.numpy)
        j = v.iota(g, columns, dtypes.int64.numpy)
        return v.where(v.equal(v.reshape(i, (rows, 1)), j), v.reshape(g, (*g.shape, 1, 1)), 0)

    samples = drawn(real=[(3, 3), (2, 3), (0, 0)], complex=[(2, 2)])


@function()
def trace(input: Any) -> Any:
    """The sum along the diagonal of a matrix.

    >>> torch.trace(torch.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    array = check_tensor(input, "trace")
    if array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {array.ndim}")
    if array.dtype.kind == "b":
        raise not_implemented("trace", array.dtype)
    return run(Trace(_sum_dtype(None, array)), (input,))
