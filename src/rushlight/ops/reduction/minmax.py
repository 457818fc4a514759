"""Largest and smallest: their values, their places, their gradients shared by ties."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight import dtypes, return_types
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Reduce
from rushlight.core.graph import Node, TensorBase
from rushlight.core.record import apply
from rushlight.ops.checks import check_nonempty, check_tensor, mismatch, raw_dtype, refuse_complex
from rushlight.ops.out import fill_out, write_outs
from rushlight.ops.reduction.family import (
    Fold,
    axes_from_end,
    check_dim,
    declare,
    dims_of,
    equal_with_nan,
    numpy_names,
)
from rushlight.ops.registry import function, functions, implements, op
from rushlight.ops.sample_inputs import drawn


class Even(Fold):
    """The reduction of which all elements equal to the result share the gradient evenly."""

    saves: ClassVar[tuple[str, ...]] = ("self", "result")
    reduce: ClassVar[Any] = staticmethod(v.reduce_max)

    def forward(self, x: Any) -> Any:
        return self.reduce(x, self.dims, self.keepdim)

    def hits(self, x: Any, y: Any) -> Any:
        return equal_with_nan(x, self.back(y, x.shape))

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
    saved_names = ""

    samples = drawn(real=[(None, False, (2, 3)), (None, False, ())])


@op
class MinAll(MaxAll):
    """The smallest of all elements: `x.min()`."""

    name, node, reduce = "min", "MinBackward1", staticmethod(v.reduce_min)


@op
class Amax(Even):
    """The largest over `dims`."""

    name = "amax"
    saved_names = "dim=dims* keepdim"

    def hits(self, x: Any, y: Any) -> Any:
        return v.equal(x, self.back(y, x.shape))

    @classmethod
    def samples(cls, draw: Any) -> Any:
        yield cls((-1,), False), draw.real(2, 3)
        yield cls((-2,), True), draw.real(2, 3)
        yield cls((-3, -1), False), draw.real(2, 3, 2)
        yield cls(None, False), draw.real()
        yield cls((-1,), False), draw.real(0, 2)


@op
class Amin(Amax):
    """The smallest over `dims`."""

    name, reduce = "amin", staticmethod(v.reduce_min)


@op
class AminMax(Amax):
    """Smallest and largest over `dims`."""

    name, outputs, saves = "aminmax", ("min", "max"), ("self", "min", "max")
    saved_names = "dim=dims keepdim"

    def forward(self, x: Any) -> Any:
        return v.reduce_min(x, self.dims, self.keepdim), v.reduce_max(x, self.dims, self.keepdim)

    def vjp(self, node: Node, g: Any, x: Any, low: Any, high: Any) -> Any:  # type: ignore[override]  # it saves more
        (first,) = super().vjp(node, g[0], x, low)
        (second,) = super().vjp(node, g[1], x, high)
        return (first + second,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return super().jvp(ts, xs, y[0]), super().jvp(ts, xs, y[1])

    samples = drawn(real=[((-1,), False, (2, 3)), (None, False, (2, 3))])


# --- one chosen element ---------------------------------------------------------------------------
class Chosen(Fold):
    """An op that chooses one element along a dimension: its value and its index.

    `choose(x, dim)` is the index, with the dimension kept as size 1.
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

    @classmethod
    def samples(cls, draw: Any) -> Any:
        make: Any = cls  # of those that need no more than this
        yield make((-1,), False), draw.real(2, 3)
        yield make((-2,), True), draw.real(4, 2)
        yield make((-1,), False), draw.real()


@op
class Max(Chosen):
    """The largest along a dimension, and where: `x.max(dim)`."""

    name, node = "max_dim", "MaxBackward0"
    aten = "max.dim"
    saved_names = "dim=dims keepdim self_sym_sizes=self.sizes"
    place: ClassVar[Any] = staticmethod(v.argmax)
    most: ClassVar[bool] = True

    def mover(self, rule: str) -> Any:
        if rule != "forward":
            return None
        return kernels.bound(kernels.extreme, self.dim, self.most, self.keepdim)

    def choose(self, x: Any, dim: int) -> Any:
        return self.place(x, dim, True)


@op
class Min(Max):
    """The smallest along a dimension, and where: `x.min(dim)`."""

    name, node, place, most = "min_dim", "MinBackward0", staticmethod(v.argmin), False
    aten = "min.dim"


@op
class ArgMax(Reduce):
    """Where the largest is, the first of several; among all elements if `dims` is None."""

    name, differentiable = "argmax", False
    place: ClassVar[Any] = staticmethod(v.argmax)
    most: ClassVar[bool] = True

    def mover(self, rule: str) -> Any:
        dim = None if self.dims is None else self.dims[0]
        return kernels.bound(kernels.extreme_place, dim, self.most, self.keepdim)

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return None if self.dims is None else super().vmap_rule(xs, flags, size)

    def forward(self, x: Any) -> Any:
        return self.place(x, None if self.dims is None else self.dims[0], self.keepdim)

    samples = drawn(real=[((-1,), False, (2, 3)), (None, False, (2, 3))])


@op
class ArgMin(ArgMax):
    """Where the smallest is, the first of several; among all elements if `dims` is None."""

    name, place, most = "argmin", staticmethod(v.argmin), False


# --- public ---------------------------------------------------------------------------------------
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


def _declare_amax(cls: Any, kernel: str, word: str, gives: str) -> None:
    """The function and the primitive of `amax` or `amin`."""
    name, whole = cls.name, cls(None, False)

    def fn(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
        array = check_tensor(input, name)
        if dim == () and not keepdim and out is None and array.dtype.kind == "f" and array.size:
            return apply(whole, input)  # the usual call, without the detours
        refuse_complex(kernel, array)
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

    declare(
        fn, name,
        f"The {word} element along dimensions; elements that tie share the gradient evenly.",
        f"torch.{name}(torch.tensor([[1., 5.], [3., 2.]]), 1)", gives,
    )  # fmt: skip
    _implement(f"reduce_{name.removeprefix('a')}", cls)


def _implement(primitive: str, cls: Any) -> None:
    """Let ops of a class implement a primitive on tensors."""

    def implement(x: Any, axes: Any, keep: bool) -> Any:
        return apply(cls(axes_from_end(axes, x._array.ndim), keep), x)

    implements(primitive)(implement)


_declare_amax(Amax, "max_values_cpu", "largest", "tensor([5., 3.])")
_declare_amax(Amin, "min_values_cpu", "smallest", "tensor([1., 2.])")


@function(returns="tuple[Tensor, Tensor]")
@numpy_names
def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest element, together.

    >>> torch.aminmax(torch.tensor([1., 5., 3.])).max
    tensor(5.)
    """
    array = check_tensor(input, "aminmax")
    refuse_complex("aminmax_cpu", array)
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


def _declare_max(
    name: str, every: Any, along: Any, kind: Any, words: tuple[str, str], gives: tuple[str, str]
) -> None:
    """The three forms of `max` or `min`: over all, along a dimension, of two tensors."""

    def fn(
        input: Any, dim: Any = ..., keepdim: bool = False, *, other: Any = ..., out: Any = None
    ) -> Any:
        if dim is not ... and not isinstance(input, TensorBase):
            raise mismatch(name, input, dim)
        array = check_tensor(input, name)
        if isinstance(dim, TensorBase):
            dim, other = ..., dim
        if other is not ...:
            if dim is not ... or not isinstance(other, TensorBase):
                raise mismatch(name, input, dim if other is ... else other)
            return functions[name + "imum"](input, other, out=out)
        if dim is ...:
            refuse_complex(name + "_all", array)
            if keepdim:
                raise mismatch(name, keepdim=keepdim)
            y = apply(every(_dims(name, array, None), False), input)
            return y if out is None else fill_out(name, out, y)
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise mismatch(name, dim)
        at = check_dim(name, dim, array.ndim)
        if array.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        check_nonempty(name, array.shape, at)
        return write_outs(name, kind, apply(along((at,), keepdim), input), out)

    most, more = words
    declare(
        fn, name,
        f"The {most} of all elements; or the {most} along a dimension, with its index; or the "
        f"{more}\nof two tensors, element by element.",
        f"x = torch.tensor([[1., 5.], [3., 2.]])\n>>> torch.{name}(x)\n{gives[0]}\n"
        f">>> torch.{name}(x, 1)", gives[1],
    )  # fmt: skip


_declare_max(
    "max", MaxAll, Max, return_types.max, ("largest", "larger"),
    ("tensor(5.)", "torch.return_types.max(\nvalues=tensor([5., 3.]),\nindices=tensor([1, 0]))"),
)  # fmt: skip
_declare_max(
    "min", MinAll, Min, return_types.min, ("smallest", "smaller"),
    ("tensor(1.)", "torch.return_types.min(\nvalues=tensor([1., 2.]),\nindices=tensor([0, 1]))"),
)  # fmt: skip


def _declare_arg(cls: Any, word: str, gives: str) -> None:
    """The function and the primitive of `argmax` or `argmin`."""
    name = cls.name

    def fn(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
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
        at = check_dim(name, dim, array.ndim)
        check_nonempty(name, array.shape, at)
        return cls((at,) if array.ndim else None, keepdim), (input,)

    declare(
        fn, name,
        f"The index of the {word} element, in the flattened tensor or along a dimension.",
        f"torch.{name}(torch.tensor([1., 5., 3.]))", gives, out=True,
    )  # fmt: skip
    _implement(name, cls)


_declare_arg(ArgMax, "largest", "tensor(1)")
_declare_arg(ArgMin, "smallest", "tensor(0)")
