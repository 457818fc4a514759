"""Largest and smallest: their values, their places, their gradients shared by ties.

Built on the same parts as `reduce`; `order` sorts.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from rushlight import dtypes, return_types
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Reduce
from rushlight.core.graph import Node, TensorBase
from rushlight.core.record import apply
from rushlight.ops.arguments import raw_dtype
from rushlight.ops.checks import check_nonempty, check_tensor, mismatch, not_implemented
from rushlight.ops.out import fill_out, write_outs
from rushlight.ops.reduction.family import Fold, dims_of, negatives, numpy_names, same, single
from rushlight.ops.registry import function, functions, implements, op


class Even(Fold):
    """The reduction of which all elements equal to the result share the gradient evenly."""

    saves: ClassVar[tuple[str, ...]] = ("self", "result")

    def hits(self, x: Any, y: Any) -> Any:
        return same(x, self.back(y, x.shape))

    def share(self, hits: Any, like: Any) -> Any:
        """What each hit gets; NaN where nothing was hit (all is NaN then)."""
        n = v.reduce_sum(v.cast(hits, raw_dtype(like)), self.dims, True)
        return 1 / v.where(v.equal(n, 0), math.nan, n)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        hits = self.hits(x, y)
        return (v.cast(hits, raw_dtype(x)) * (self.back(g, x.shape) * self.share(hits, x)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        hits = self.hits(xs[0], y)
        return v.reduce_sum(v.where(hits, ts[0], 0) * self.share(hits, y), self.dims, self.keepdim)


@op
class MaxAll(Even):
    """The largest of all elements: `x.max()`."""

    name, node = "max", "MaxBackward1"

    def forward(self, x: Any) -> Any:
        return v.reduce_max(x, self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield MaxAll(None, False), draw.real(2, 3)
        yield MaxAll(None, False), draw.real()


@op
class MinAll(Even):
    """The smallest of all elements: `x.min()`."""

    name, node = "min", "MinBackward1"

    def forward(self, x: Any) -> Any:
        return v.reduce_min(x, self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield MinAll(None, False), draw.real(2, 3)
        yield MinAll(None, False), draw.real()


@op
class Amax(Even):
    """The largest over `dims`."""

    name = "amax"

    def hits(self, x: Any, y: Any) -> Any:
        return v.equal(x, self.back(y, x.shape))

    def forward(self, x: Any) -> Any:
        return v.reduce_max(x, self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Amax((-1,), False), draw.real(2, 3)
        yield Amax((-2,), True), draw.real(2, 3)
        yield Amax((-3, -1), False), draw.real(2, 3, 2)
        yield Amax(None, False), draw.real()
        yield Amax((-1,), False), draw.real(0, 2)


@op
class Amin(Amax):
    """The smallest over `dims`."""

    name = "amin"

    def forward(self, x: Any) -> Any:
        return v.reduce_min(x, self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Amin((-1,), False), draw.real(2, 3)
        yield Amin((-2,), True), draw.real(2, 3)
        yield Amin(None, False), draw.real()


@op
class AminMax(Amax):
    """Smallest and largest over `dims`."""

    name, outputs, saves = "aminmax", ("min", "max"), ("self", "min", "max")

    def forward(self, x: Any) -> Any:
        return v.reduce_min(x, self.dims, self.keepdim), v.reduce_max(x, self.dims, self.keepdim)

    def vjp(self, node: Node, g: Any, x: Any, low: Any, high: Any) -> Any:  # type: ignore[override]  # it saves more
        (first,) = super().vjp(node, g[0], x, low)
        (second,) = super().vjp(node, g[1], x, high)
        return (first + second,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return super().jvp(ts, xs, y[0]), super().jvp(ts, xs, y[1])

    @staticmethod
    def samples(draw: Any) -> Any:
        yield AminMax((-1,), False), draw.real(2, 3)
        yield AminMax(None, False), draw.real(2, 3)


# --- one chosen element ---------------------------------------------------------------------------
class Chosen(Fold):
    """An op that chooses one element along a dimension: its value and its index.

    Give `choose(x, dim)`: the index, with the dimension kept as size 1.
    """

    outputs, saves = ("values", "indices"), ("indices",)

    def __init__(self, dims: tuple[int, ...], keepdim: bool) -> None:
        super().__init__(dims, keepdim)
        self.dim: int = dims[0]

    def choose(self, x: Any, dim: int) -> Any:
        raise NotImplementedError

    def forward(self, x: Any) -> Any:
        if x.ndim == 0:
            return v.copy(x), v.full(x, (), 0, dtypes.int64.numpy)
        index = self.choose(x, self.dim)
        value = v.gather(x, self.dim, index)
        if self.keepdim:
            return value, index
        shape = list(x.shape)
        del shape[self.dim]
        return v.reshape(value, tuple(shape)), v.reshape(index, tuple(shape))

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        shapes, kinds = node._input_shapes, node._input_dtypes
        assert shapes is not None and kinds is not None
        shape = shapes[0]
        if shape == ():
            return (g[0],)
        zeros = v.full(g[0], shape, 0, kinds[0])
        return (v.scatter(zeros, self.dim, self.back(index, shape), self.back(g[0], shape)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        if t.ndim == 0:
            return t, y[1] * 0
        moved = v.gather(t, self.dim, self.back(y[1], t.shape))
        return v.reshape(moved, y[0].shape), y[1] * 0


@op
class Max(Chosen):
    """The largest along a dimension, and where: `x.max(dim)`."""

    name, node = "max_dim", "MaxBackward0"

    def choose(self, x: Any, dim: int) -> Any:
        return v.argmax(x, dim, True)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Max((-1,), False), draw.real(2, 3)
        yield Max((-2,), True), draw.real(2, 3)
        yield Max((-1,), False), draw.real()


@op
class Min(Chosen):
    """The smallest along a dimension, and where: `x.min(dim)`."""

    name, node = "min_dim", "MinBackward0"

    def choose(self, x: Any, dim: int) -> Any:
        return v.argmin(x, dim, True)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Min((-1,), False), draw.real(2, 3)
        yield Min((-2,), True), draw.real(2, 3)
        yield Min((-1,), False), draw.real()


@op
class ArgMax(Reduce):
    """Where the largest is, the first of several; among all elements if `dims` is None."""

    name, differentiable = "argmax", False

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return None if self.dims is None else super().vmap_rule(xs, flags, size)

    def forward(self, x: Any) -> Any:
        return v.argmax(x, None if self.dims is None else self.dims[0], self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield ArgMax((-1,), False), draw.real(2, 3)
        yield ArgMax(None, False), draw.real(2, 3)


@op
class ArgMin(Reduce):
    """Where the smallest is, the first of several; among all elements if `dims` is None."""

    name, differentiable = "argmin", False

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return None if self.dims is None else super().vmap_rule(xs, flags, size)

    def forward(self, x: Any) -> Any:
        return v.argmin(x, None if self.dims is None else self.dims[0], self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield ArgMin((-1,), False), draw.real(2, 3)
        yield ArgMin(None, False), draw.real(2, 3)


# --- public ---------------------------------------------------------------------------------------
def _refuse_complex(kernel: str, array: Any) -> None:
    if array.dtype.kind == "c":
        raise not_implemented(kernel, array.dtype)


def _dims(name: str, array: Any, dim: Any) -> tuple[int, ...] | None:
    """The dimensions of `amax` and its like, none of them empty."""
    dims = dims_of(name, dim, array.ndim)
    if dims is None:
        if array.size == 0:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                "the reduction dim with the 'dim' argument."
            )
    else:
        for d in dims:
            check_nonempty(name, array.shape, d)
    return dims


_WHOLE: Final = {Amax: Amax(None, False), Amin: Amin(None, False)}


def _amax(name: str, cls: Any, input: Any, dim: Any, keepdim: bool, out: Any) -> Any:
    array = check_tensor(input, name)
    if dim == () and not keepdim and out is None and array.dtype.kind == "f" and array.size:
        return apply(_WHOLE[cls], input)  # the usual call, without the detours
    _refuse_complex("max_values_cpu" if cls is Amax else "min_values_cpu", array)
    y = apply(cls(_dims(name, array, dim), keepdim), input)
    if out is None:
        return y
    if isinstance(out, TensorBase) and out._array.dtype != array.dtype:
        raise RuntimeError(
            "Expected the dtype for input and out to match, but got "
            f"{dtypes.of(array.dtype).scalar_type} for input's dtype and "
            f"{dtypes.of(out._array.dtype).scalar_type} for out's dtype."
        )
    return fill_out(name, out, y)


@function()
@numpy_names
def amax(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """amax(input, dim=(), keepdim=False, *, out=None) -> Tensor

    The largest element along dimensions; elements that tie share the gradient evenly.

    >>> import rushlight as torch
    >>> torch.amax(torch.tensor([[1., 5.], [3., 2.]]), 1)
    tensor([5., 3.])
    """
    return _amax("amax", Amax, input, dim, keepdim, out)


@function()
@numpy_names
def amin(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """amin(input, dim=(), keepdim=False, *, out=None) -> Tensor

    The smallest element along dimensions; elements that tie share the gradient evenly.

    >>> import rushlight as torch
    >>> torch.amin(torch.tensor([[1., 5.], [3., 2.]]), 1)
    tensor([1., 2.])
    """
    return _amax("amin", Amin, input, dim, keepdim, out)


@function()
@numpy_names
def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """aminmax(input, *, dim=None, keepdim=False, out=None) -> (Tensor min, Tensor max)

    The smallest and the largest element, together.

    >>> import rushlight as torch
    >>> torch.aminmax(torch.tensor([1., 5., 3.])).max
    tensor(5.)
    """
    array = check_tensor(input, "aminmax")
    _refuse_complex("aminmax_cpu", array)
    if dim is None:
        if array.size == 0:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                "no identity."
            )
        dims = None
    else:
        if not hasattr(dim, "__index__"):
            raise TypeError(f"aminmax(): argument 'dim' must be int, not {dtypes.type_name(dim)}")
        dims = dims_of("aminmax", dim, array.ndim)
        if dims is not None and array.shape[dims[0]] == 0:
            raise IndexError(
                f"aminmax: Expected reduction dim {dims[0] + array.ndim} to have non-zero size."
            )
    return write_outs("aminmax", return_types.aminmax, apply(AminMax(dims, keepdim), input), out)


def _largest(name: str, input: Any, dim: Any, keepdim: bool, other: Any, out: Any) -> Any:
    """The three forms of `max` and `min`: over all, along a dimension, of two tensors."""
    if dim is not ... and not isinstance(input, TensorBase):
        raise mismatch(name, input, dim)
    array = check_tensor(input, name)
    if isinstance(dim, TensorBase):
        dim, other = ..., dim
    if other is not ...:
        if dim is not ... or not isinstance(other, TensorBase):
            raise mismatch(name, input, dim if other is ... else other)
        return functions[name + "imum"](input, other, out=out)
    most = name == "max"
    if dim is ...:
        _refuse_complex(name + "_all", array)
        if keepdim:
            raise mismatch(name, keepdim=keepdim)
        y = apply((MaxAll if most else MinAll)(_dims(name, array, None), False), input)
        return y if out is None else fill_out(name, out, y)
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise mismatch(name, dim)
    at = single(name, dim, array.ndim)
    if array.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    check_nonempty(name, array.shape, at)
    kind = return_types.max if most else return_types.min
    return write_outs(name, kind, apply((Max if most else Min)((at,), keepdim), input), out)


@function()
@numpy_names
def max(
    input: Any, dim: Any = ..., keepdim: bool = False, *, other: Any = ..., out: Any = None
) -> Any:
    """max(input) or max(input, dim, keepdim=False, *, out=None) or max(input, other) -> Tensor

    The largest of all elements; or the largest along a dimension, with its index; or the larger
    of two tensors, element by element.

    >>> import rushlight as torch
    >>> x = torch.tensor([[1., 5.], [3., 2.]])
    >>> torch.max(x)
    tensor(5.)
    >>> torch.max(x, 1).indices
    tensor([1, 0])
    """
    return _largest("max", input, dim, keepdim, other, out)


@function()
@numpy_names
def min(
    input: Any, dim: Any = ..., keepdim: bool = False, *, other: Any = ..., out: Any = None
) -> Any:
    """min(input) or min(input, dim, keepdim=False, *, out=None) or min(input, other) -> Tensor

    The smallest of all elements; or the smallest along a dimension, with its index; or the
    smaller of two tensors, element by element.

    >>> import rushlight as torch
    >>> x = torch.tensor([[1., 5.], [3., 2.]])
    >>> torch.min(x)
    tensor(1.)
    >>> torch.min(x, 1).values
    tensor([1., 2.])
    """
    return _largest("min", input, dim, keepdim, other, out)


def _arg(name: str, cls: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    array = check_tensor(input, name)
    if array.dtype.kind in "cb":
        what = "complex" if array.dtype.kind == "c" else "bool"
        raise RuntimeError(f"{name}(): does not support {what} input")
    if dim is None:
        if array.size == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
            )
        return cls(None, keepdim), (input,)
    at = single(name, dim, array.ndim)
    check_nonempty(name, array.shape, at)
    return cls((at,) if array.ndim else None, keepdim), (input,)


@function(out=True)
@numpy_names
def argmax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """argmax(input, dim=None, keepdim=False) -> Tensor

    The index of the largest element, in the flattened tensor or along a dimension.

    >>> import rushlight as torch
    >>> torch.argmax(torch.tensor([1., 5., 3.]))
    tensor(1)
    """
    return _arg("argmax", ArgMax, input, dim, keepdim)


@function(out=True)
@numpy_names
def argmin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """argmin(input, dim=None, keepdim=False) -> Tensor

    The index of the smallest element, in the flattened tensor or along a dimension.

    >>> import rushlight as torch
    >>> torch.argmin(torch.tensor([1., 5., 3.]))
    tensor(0)
    """
    return _arg("argmin", ArgMin, input, dim, keepdim)


# --- words ----------------------------------------------------------------------------------------
@implements("reduce_max")
def _largest_word(x: Any, axes: Any, keep: bool) -> Any:
    return apply(Amax(negatives(axes, x._array.ndim), keep), x)


@implements("reduce_min")
def _smallest_word(x: Any, axes: Any, keep: bool) -> Any:
    return apply(Amin(negatives(axes, x._array.ndim), keep), x)


@implements("argmax")
def _argmax_word(x: Any, axis: int | None, keep: bool) -> Any:
    return apply(ArgMax(negatives(axis, x._array.ndim), keep), x)


@implements("argmin")
def _argmin_word(x: Any, axis: int | None, keep: bool) -> Any:
    return apply(ArgMin(negatives(axis, x._array.ndim), keep), x)
