"""Sorting, and what is chosen by rank: top, k-th, median, most frequent.

NaN counts as the largest. Gradients go to the chosen elements.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes, return_types
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_nonempty, check_tensor, not_implemented
from rushlight.ops.each_member import batch_leading
from rushlight.ops.out import fill_out, write_outs
from rushlight.ops.reduction.family import (
    axes_from_end,
    check_dim,
    declare,
    fold,
    numpy_names,
    shift,
    widen,
)
from rushlight.ops.reduction.minmax import Chosen, Even
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import drawn

_INT64 = dtypes.int64.numpy


# --- sort -----------------------------------------------------------------------------------------
class Ranked(Op):
    """An op that lists elements along `dim` in a new order: their values and their indices.

    Give `places(x)`, the indices.
    """

    outputs: ClassVar[tuple[str, ...]] = ("values", "indices")
    saves: ClassVar[tuple[str, ...]] = ("indices",)
    params: ClassVar[tuple[str, ...]] = ("dim", "descending")
    vmap_rule = batch_leading
    dim: int
    descending: bool

    def mover(self, rule: str) -> Any:
        if rule != "forward":
            return None
        k, both = getattr(self, "k", -1), len(self.outputs) == 2
        return kernels.bound(kernels.ranked, self.dim, self.descending, k, both)

    def places(self, x: Any) -> Any:
        # PyTorch's sort on the CPU is stable whether asked or not
        return v.sort(widen(x), self.dim, self.descending, True)

    def forward(self, x: Any) -> Any:
        if x.ndim == 0:
            return v.copy(x), v.full(x, (), 0, _INT64)
        index = self.places(x)
        return v.gather(x, self.dim, index), index

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        shapes, kinds = node._input_shapes, node._input_dtypes
        assert shapes is not None and kinds is not None
        if shapes[0] == ():
            return (g[0],)
        return (v.scatter(v.full(g[0], shapes[0], 0, kinds[0]), self.dim, index, g[0]),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        return (v.gather(t, self.dim, y[1]) if t.ndim else t), y[1] * 0


@op
class Sort(Ranked):
    """The elements in order along `dim`."""

    name, lies = "sort", "input"
    saved_names = "dim self_sym_sizes=self.sizes"

    samples = drawn(
        real=[(-1, False, (2, 3)), (-2, True, (3, 2)), (-1, False, ()), (-1, False, (2, 0))]
    )


@op
class SortStable(Sort):
    """The same, where the caller said `stable=`: PyTorch gives that a node of another name."""

    name, node = "sort_stable", "SortBackward1"
    aten = "sort.stable"


@op
class ArgSort(Sort):
    """The indices that sort along `dim`."""

    name, outputs, saves, differentiable = "argsort", ("result",), (), False

    def forward(self, x: Any) -> Any:
        return self.places(x) if x.ndim else v.full(x, (), 0, _INT64)


@op
class TopK(Ranked):
    """The first `k` in order along `dim`."""

    name = "topk"
    saved_names = "dim self_sym_sizes=self.sizes"
    params = ("dim", "descending", "k")
    k: int

    def places(self, x: Any) -> Any:
        order = super().places(x)
        cut = [slice(None)] * x.ndim
        cut[self.dim] = slice(0, self.k)
        return v.copy(v.window(order, tuple(cut)))

    @staticmethod
    def samples(draw: Any) -> Any:
        yield TopK(-1, True, 2), draw.real(2, 3)
        yield TopK(-2, False, 1), draw.real(3, 2)
        yield TopK(-1, True, 1), draw.real()
        yield TopK(-1, True, 0), draw.real(2, 3)


def _check_sortable(array: Any) -> None:
    if array.dtype.kind in "cW":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")


def _sort(input: Any, dim: Any, descending: bool, stable: bool | None, out: Any) -> Any:
    array = check_tensor(input, "sort")
    _check_sortable(array)
    cls = Sort if stable is None else SortStable
    what = cls(check_dim("sort", dim, array.ndim), bool(descending))
    return write_outs("sort", return_types.sort, apply(what, input), out)


@function(returns="tuple[Tensor, Tensor]", settles=True)
@numpy_names
def sort(
    input: Any, dim: Any = -1, descending: bool = False, *, stable: bool | None = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """The elements in order along a dimension, and the indices they came from.

    >>> torch.sort(torch.tensor([3., 1., 2.]))
    torch.return_types.sort(
    values=tensor([1., 2., 3.]),
    indices=tensor([1, 2, 0]))
    """
    if isinstance(dim, bool):  # sort(input, descending)
        dim, descending = -1, dim
    return _sort(input, dim, descending, stable, out)


@function(out=True, settles=True)
@numpy_names
def argsort(input: Any, dim: Any = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """The indices that sort a tensor along a dimension.

    >>> torch.argsort(torch.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    array = check_tensor(input, "argsort")
    _check_sortable(array)
    return ArgSort(check_dim("argsort", dim, array.ndim), bool(descending)), (input,)


@function()
def msort(input: Any, *, out: Any = None) -> Any:
    """The elements in order along the first dimension.

    >>> torch.msort(torch.tensor([[3., 1.], [2., 4.]]))
    tensor([[2., 1.],
            [3., 4.]])
    """
    y = _sort(input, 0, False, None, None)[0]
    return y if out is None else fill_out("msort", out, y)


@function(returns="tuple[Tensor, Tensor]", settles=True)
@numpy_names
def topk(
    input: Any, k: int, dim: Any = -1, largest: bool = True, sorted: bool = True, *,
    out: Any = None,
) -> Any:  # fmt: skip
    """The `k` largest (or smallest) elements along a dimension, in order, and their indices.

    Args:
        k: how many to give.

    >>> torch.topk(torch.tensor([1., 4., 3., 2.]), 2).values
    tensor([4., 3.])
    """
    array = check_tensor(input, "topk")
    at = check_dim("topk", dim, array.ndim)
    if not 0 <= k <= (array.shape[at] if array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if array.dtype.kind in "bc":
        bool_ = array.dtype.kind == "b"
        what = "topk does not support bool" if bool_ else " topk does not support complex"
        raise RuntimeError(f"{what} dtypes on CPU")
    return write_outs("topk", return_types.topk, apply(TopK(at, bool(largest), k), input), out)


@implements("sort")
def _sort_word(x: Any, axis: int, descending: bool, stable: bool) -> Any:
    axes = axes_from_end(axis, x._array.ndim)
    assert axes is not None
    return apply(ArgSort(axes[0], descending), x)


# --- one element by rank --------------------------------------------------------------------------
@op
class KthValue(Chosen):
    """The `k`-th smallest along a dimension."""

    name = "kthvalue"
    saved_names = "dim=dims keepdim self_sym_sizes=self.sizes"
    params = ("dims", "keepdim", "k")

    def __init__(self, dims: tuple[int, ...], keepdim: bool, k: int) -> None:
        super().__init__(dims, keepdim)
        self.k = k

    def choose(self, x: Any, dim: int) -> Any:
        order = v.sort(widen(x), dim, False, True)
        cut = [slice(None)] * x.ndim
        cut[dim] = slice(self.k - 1, self.k)
        return v.copy(v.window(order, tuple(cut)))

    samples = drawn(
        real=[((-1,), False, 2, (2, 3)), ((-2,), True, 1, (3, 2)), ((-1,), False, 1, ())]
    )


@op
class Median(Chosen):
    """The lower middle element along a dimension; the first NaN if there is one."""

    name, node = "median_dim", "MedianBackward1"
    aten = "median.dim"
    saved_names = "dim=dims keepdim self_sym_sizes=self.sizes"

    def choose(self, x: Any, dim: int) -> Any:
        n = x.shape[dim]
        nans = v.reduce_sum(v.isnan(x), (dim,), True)
        order = v.sort(widen(x), dim, False, True)
        return v.gather(order, dim, v.where(v.equal(nans, 0), (n - 1) // 2, n - nans))


@op
class NanMedian(Chosen):
    """The lower middle element of those that are not NaN, along a dimension."""

    name, node = "nanmedian_dim", "NanmedianBackward1"
    aten = "nanmedian.dim"

    def choose(self, x: Any, dim: int) -> Any:
        numbers = v.reduce_sum(v.equal(x, x), (dim,), True)
        order = v.sort(widen(x), dim, False, True)
        return v.gather(order, dim, v.where(v.equal(numbers, 0), 0, (numbers - 1) // 2))


@op
class MedianAll(Even):
    """The lower middle of all elements: `x.median()`. Equal elements share its gradient."""

    name, node = "median", "MedianBackward0"
    saved_names = ""
    chosen = Median

    def forward(self, x: Any) -> Any:
        z = fold(x, self.dims)
        if z.shape[-1] == 0:
            whole = x.dtype.kind in "iu"
            nothing = -(1 << (8 * x.dtype.itemsize - 1)) if whole else float("nan")
            return v.full(x, z.shape[:-1], 0 if x.dtype.kind == "u" else nothing, x.dtype)
        return self.chosen((-1,), self.keepdim).forward(z)[0]

    samples = drawn(real=[(None, False, (2, 3)), (None, False, ())])


@op
class NanMedianAll(MedianAll):
    """The lower middle of all elements that are not NaN."""

    name, node = "nanmedian", "NanmedianBackward0"
    chosen = NanMedian  # type: ignore[assignment]  # another class of the same form


@op
class Mode(Chosen):
    """The most frequent element along a dimension, the smallest of several; its last place."""

    name = "mode"

    def choose(self, x: Any, dim: int) -> Any:
        order = v.swap(v.sort(widen(x), dim, False, True), dim, -1)
        z = v.gather(v.swap(x, dim, -1), -1, order)
        places = v.iota(x, z.shape[-1], _INT64)
        starts = v.where(v.equal(z, shift(z, 1, 0)), 0, places)
        length = places - v.running(starts, -1, True)
        best = v.argmax(length, -1, True)
        return v.swap(v.gather(order, -1, best), dim, -1)


def _refuse(kernel: str, array: Any, kinds: str) -> None:
    if array.dtype.kind in kinds:
        raise not_implemented(kernel, array.dtype)


@function(returns="tuple[Tensor, Tensor]", settles=True)
@numpy_names
def kthvalue(input: Any, k: int, dim: Any = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The `k`-th smallest element along a dimension (`k` counts from 1), and its index.

    Args:
        k: which one: 1 is the smallest.

    >>> torch.kthvalue(torch.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """
    array = check_tensor(input, "kthvalue")
    at = check_dim("kthvalue", dim, array.ndim)
    check_nonempty("kthvalue", array.shape, at)
    _refuse("kthvalue_cpu", array, "bc")
    if not 1 <= k <= (array.shape[at] if array.ndim else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {at + max(array.ndim, 1)}"
        )
    what = KthValue((at,), keepdim, k)
    return write_outs("kthvalue", return_types.kthvalue, apply(what, input), out)


def _declare_median(every: Any, along: Any, kind: Any, text: str, example: str, gives: str) -> None:
    """The function `median` or `nanmedian`."""
    name = every.name

    def fn(input: Any, dim: Any = ..., keepdim: bool = False, *, out: Any = None) -> Any:
        array = check_tensor(input, name)
        _refuse("median_cpu" if dim is ... else "median_out", array, "bc")
        if dim is ...:
            y = apply(every(None, False), input)
            return y if out is None else fill_out(name, out, y)
        at = check_dim(name, dim, array.ndim)
        check_nonempty("median", array.shape, at)
        return write_outs(name, kind, apply(along((at,), keepdim), input), out)

    declare(fn, name, text, f"torch.{name}(torch.tensor({example}))", gives)


_declare_median(
    MedianAll, Median, return_types.median,
    "The middle element, the lower of two: of all, or along a dimension with its index.",
    "[3., 1., 2., 4.]", "tensor(2.)",
)  # fmt: skip
_declare_median(
    NanMedianAll, NanMedian, return_types.nanmedian,
    "The middle element of those that are not NaN.", "[3., float('nan'), 2., 4.]", "tensor(3.)",
)  # fmt: skip


@function(returns="tuple[Tensor, Tensor]")
@numpy_names
def mode(input: Any, dim: Any = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent element along a dimension, the smallest of several, and its last index.

    >>> torch.mode(torch.tensor([1, 2, 2, 3])).values
    tensor(2)
    """
    array = check_tensor(input, "mode")
    at = check_dim("mode", dim, array.ndim)
    check_nonempty("mode", array.shape, at)
    _refuse("mode_cpu", array, "c")
    return write_outs("mode", return_types.mode, apply(Mode((at,), keepdim), input), out)
