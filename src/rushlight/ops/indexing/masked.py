"""Masks and flat positions: `masked_*`, `take`, `put`, `nonzero`; and a region written to a copy:
`select_scatter` and its kin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values, is_scalar
from rushlight.arrays.layouts import is_dense
from rushlight.core.graph import Node, Op, TensorBase, wrap
from rushlight.core.observer import observer
from rushlight.core.record import apply
from rushlight.core.views.history import order_of, replay_views
from rushlight.core.views.views import apply_view
from rushlight.core.views.views import put as put_region
from rushlight.errors import OVERLAPS
from rushlight.ops.apply import run_out
from rushlight.ops.checks import (
    c_name,
    check_tensor,
    check_tensors,
    is_batched,
    one_dim,
    raw_dtype,
    varies,
)
from rushlight.ops.creation.fill import number_for, same_device
from rushlight.ops.each_member import one_by_one
from rushlight.ops.indexing.family import check_bounds, or_zeros, scalar_type_of, scattering
from rushlight.ops.indexing.gather import gather
from rushlight.ops.numbers import Operand
from rushlight.ops.operands import zeros
from rushlight.ops.registry import function, methods, op
from rushlight.ops.sample_inputs import Draw, drawn
from rushlight.ops.view.as_strided import AsStrided, Diagonal
from rushlight.ops.view.expand import Expand, broadcast_shape
from rushlight.ops.view.select import Select, Slice

_FIRST: Final = (v.SLOT,)


class Masked(Op):
    """An op on the places where `mask` is true."""

    inputs: ClassVar[tuple[str, ...]] = ("self", "mask")
    saves = ("mask",)
    overlap: ClassVar[bool] = False  # whether in-place forms refuse a target that overlaps itself
    complex_too = True


def _fill_where(x: Any, mask: Any, value: Any) -> None:
    """x[mask] = value in place; the mask may be smaller than `x`, not larger."""
    if mask.shape != x.shape:
        shape = broadcast_shape(mask.shape, x.shape)
        if shape != x.shape:
            raise RuntimeError(
                f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}"
            )
        mask = v.broadcast(mask, x.shape)
    v.store(x, value, _FIRST, mask)


@op
class MaskedFill(Masked):
    """One number where `mask` is true."""

    name, params = "masked_fill", ("value",)
    aten = "masked_fill.Scalar"
    saved_names = ""
    shown_edges = (0,)
    value: Any
    lies = "rows"

    def forward(self, x: Any, mask: Any) -> Any:
        return v.where(mask, v.constant(x, self.value, raw_dtype(x)), x)

    def store(self, x: Any, mask: Any) -> None:
        _fill_where(x, mask, self.value)

    def vjp(self, node: Node, g: Any, mask: Any) -> Any:
        return v.where(mask, 0, g), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.where(xs[1], 0, ts[0])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield MaskedFill(2.0), draw.real(2, 3), draw.mask(2, 3)
        yield MaskedFill(2.0), draw.real(2, 3), draw.mask(3)
        yield MaskedFill(2.0), draw.real(3), draw.mask(2, 1)
        yield MaskedFill(2.0), draw.complex(3), draw.mask(3)
        yield MaskedFill(2.0), draw.real(), draw.mask()


@op
class MaskedFillWith(Masked):
    """The value of a 0-d tensor where `mask` is true."""

    name, node = "masked_fill_tensor", "MaskedFillBackward1"
    aten = "masked_fill.Tensor"
    shown_edges = (0, 2)
    inputs = ("self", "mask", "value")
    lies = "rows"

    def forward(self, x: Any, mask: Any, value: Any) -> Any:
        return v.where(mask, v.cast(value, raw_dtype(x)), x)

    def store(self, x: Any, mask: Any, value: Any) -> None:
        _fill_where(x, mask, v.cast(value, x.dtype))

    def vjp(self, node: Node, g: Any, mask: Any) -> Any:
        hole = v.where(mask, 0, g) if node._needs_grad(0) else None
        return (
            hole,
            None,
            (v.reduce_sum(v.where(mask, g, 0), None, False) if node._needs_grad(2) else None),
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = or_zeros(ts[0], y)
        return v.where(xs[1], 0 if ts[2] is None else ts[2], t)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield MaskedFillWith(), draw.real(2, 3), draw.mask(3), draw.real()
        yield MaskedFillWith(), draw.complex(3), draw.mask(3), draw.complex()


def _check_mask(name: str, mask: Any, value: Any) -> None:
    if not isinstance(mask, TensorBase):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got "
            f"({dtypes.type_name(mask)}, {dtypes.type_name(value)}), but expected one of:\n"
            " * (Tensor mask, Tensor value)\n * (Tensor mask, Number value)"
        )


@scattering(out=False, settles=True)
def masked_fill(input: Any, mask: Any, value: Operand) -> Any:
    """`input` with `value`, a number or a 0-d tensor, where the boolean `mask` is true.

    >>> torch.tensor([1., 2., 3.]).masked_fill(torch.tensor([True, False, True]), 0)
    tensor([0., 2., 0.])
    """
    check_tensor(input, "masked_fill")
    _check_mask("masked_fill", mask, value)
    if is_scalar(value):
        value = value.item()
    if not isinstance(value, (TensorBase, bool, int, float, complex)):
        raise TypeError(
            "masked_fill() received an invalid combination of arguments - got "
            f"(Tensor, {dtypes.type_name(value)}), but expected one of:\n"
            " * (Tensor mask, Tensor value)\n * (Tensor mask, Number value)"
        )
    if isinstance(value, TensorBase) and value._array.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{c_name(mask._array.dtype)}"
        )
    broadcast_shape(mask._array.shape, input._array.shape)
    if isinstance(value, TensorBase):
        if value._array.dtype != input._array.dtype and not varies(value._array):
            observer.keep_nothing()
            number_for(value._array.item(), input._array.dtype)  # refuses what does not fit
        return MaskedFillWith(), (input, mask, same_device(value, input))
    return MaskedFill(number_for(value, input._array.dtype)), (input, mask)


# --- masked_scatter, masked_select ----------------------------------------------------------------
@op
class MaskedScatter(Masked):
    """The values of `source`, in order, where `mask` is true.

    Written with the count of true places so far rather than with their number: shapes then do not
    depend on values.
    """

    name = "masked_scatter"
    shown_edges = (0, 2)
    inputs = ("self", "mask", "source")
    overlap = True

    def ranks(self, mask: Any, shape: tuple[int, ...], size: int) -> tuple[Any, Any]:
        """The mask in full shape, and which value of the source each true place receives."""
        mask = v.broadcast(mask, shape)
        flat = v.cast(v.reshape(mask, (-1,)), dtypes.int64.numpy)
        rank = v.minimum(v.maximum(v.cumsum(flat, 0) - 1, 0), max(size - 1, 0))
        return mask, v.reshape(rank, shape)

    def forward(self, x: Any, mask: Any, source: Any) -> Any:
        shape = broadcast_shape(mask.shape, x.shape)
        size = math.prod(source.shape)
        if not size:
            return v.copy(v.broadcast(x, shape))
        mask, rank = self.ranks(mask, shape, size)
        return v.where(mask, v.pick(v.reshape(source, (-1,)), _FIRST, rank), x)

    def store(self, x: Any, mask: Any, source: Any) -> None:
        shape = broadcast_shape(mask.shape, x.shape)
        if shape != x.shape:
            raise RuntimeError(
                f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}"
            )
        v.overwrite(x, self.forward(x, mask, source))

    def vjp(self, node: Any, g: Any, mask: Any) -> Any:
        hole = v.where(mask, 0, g) if node._needs_grad(0) else None
        part: Any = None
        if node._needs_grad(2):
            size = math.prod(node._input_shapes[2])
            if size:
                full, rank = self.ranks(mask, g.shape, size)
                part = v.unpick(v.where(full, g, 0), (size,), _FIRST, rank)
                part = v.reshape(part, node._input_shapes[2])
        return hole, None, part

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = or_zeros(ts[0], xs[0])
        return self.forward(t, xs[1], or_zeros(ts[2], xs[2]))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield MaskedScatter(), draw.real(2, 3), draw.mask(2, 3), draw.real(7)
        yield MaskedScatter(), draw.real(2, 3), draw.mask(3), draw.real(3, 2)
        yield MaskedScatter(), draw.real(3), draw.mask(2, 1), draw.real(6)


@scattering(out=False)
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """`input` with the values of `source`, in order, where the boolean `mask` is true.

    >>> torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.tensor([5., 6.]))
    tensor([5., 0., 6.])
    """
    check_tensors("masked_scatter", input=input, mask=mask, source=source)
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_type_of(input)} and {scalar_type_of(source)}"
        )
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{scalar_type_of(mask)}"
        )
    shape = broadcast_shape(mask._array.shape, input._array.shape)
    if has_values(mask._array):
        ones = int(v.broadcast(mask._array, shape).sum())
        if ones > source._array.size:
            raise RuntimeError("Number of elements of source < number of ones in mask")
    return MaskedScatter(), (input, mask, source)


@op
class MaskedSelect(Masked):
    """The values where `mask` is true, as a vector."""

    name, dynamic = "masked_select", True
    shown_edges = (0,)

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        if flags[1]:
            raise RuntimeError(
                "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot "
                "support this because for each batch this would return a differently shaped "
                "Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
                "need this feature.\n"
                "Keep all elements, and choose with `torch.where(mask, x, other)`."
            )
        return None

    def mover(self, rule: str) -> Any:
        return kernels.masked if rule == "forward" else None

    def forward(self, x: Any, mask: Any) -> Any:
        shape = broadcast_shape(mask.shape, x.shape)
        return v.pick(v.broadcast(x, shape), _FIRST, v.broadcast(mask, shape))

    def vjp(self, node: Any, g: Any, mask: Any) -> Any:
        shape = broadcast_shape(mask.shape, node._input_shapes[0])
        return v.unpick(g, shape, _FIRST, v.broadcast(mask, shape)), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield MaskedSelect(), draw.real(2, 3), draw.mask(2, 3)
        yield MaskedSelect(), draw.complex(3), draw.mask(2, 1)
        yield MaskedSelect(), draw.real(2, 3), draw.mask(3)
        yield MaskedSelect(), draw.real(), draw.mask()


@function(out=True, settles=True)
def masked_select(input: Any, mask: Any) -> Any:
    """The values of `input` where the boolean `mask` is true, as a vector.

    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])
    """
    check_tensors("masked_select", input=input, mask=mask)
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast_shape(mask._array.shape, input._array.shape)
    return MaskedSelect(), (input, mask)


# --- take, put ------------------------------------------------------------------------------------
@op
class Take(Op):
    """The elements at flat positions."""

    name = "take"
    shown_edges = (0,)
    inputs, saves = ("self", "index"), ("index",)
    lies = "rows"

    def forward(self, x: Any, index: Any) -> Any:
        return v.pick(v.reshape(x, (-1,)), _FIRST, index)

    def vjp(self, node: Any, g: Any, index: Any) -> Any:
        size = math.prod(node._input_shapes[0])
        return v.reshape(v.unpick(g, (size,), _FIRST, index), node._input_shapes[0]), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Take(), draw.real(2, 3), draw.ints(-6, 6, 4)
        yield Take(), draw.complex(3), draw.ints(0, 3, 2, 2)
        yield Take(), draw.real(), draw.ints(0, 1)


def _check_flat(name: str, x: Any, index: Any) -> None:
    if index._array.dtype != dtypes.int64.numpy:
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {scalar_type_of(index)}"
        )
    if not x._array.size and index._array.size:
        verb = "take from" if name == "take" else "put elements into"
        raise IndexError(f"{name}(): tried to {verb} an empty tensor")
    text = "out of range: tried to access index {i} on a tensor of {n} elements."
    check_bounds(index._array, x._array.size, text, IndexError, negative=True)


@function(out=True)
def take(input: Any, index: Any) -> Any:
    """The elements of `input`, seen as a vector, at `index`.

    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3, -1]))
    tensor([1, 4, 4])
    """
    check_tensors("take", input=input, index=index)
    _check_flat("take", input, index)
    return Take(), (input, index)


@op
class Put(Op):
    """`self` with `source` written (or added) at flat positions."""

    name, params = "put", ("accumulate",)
    shown_edges = (0, 2)
    accumulate: bool
    inputs, saves = ("self", "index", "source"), ("index",)
    overlap: ClassVar[bool] = True
    lies = "input"

    def forward(self, x: Any, index: Any, source: Any) -> Any:
        fn = v.place_add if self.accumulate else v.place
        flat = v.reshape(x, (-1,))
        source = v.reshape(source, index.shape)
        return v.reshape(fn(flat, source, _FIRST, index), x.shape)

    def store(self, x: Any, index: Any, source: Any) -> None:
        v.overwrite(x, self.forward(x, index, source))

    def vjp(self, node: Any, g: Any, index: Any) -> Any:
        hole: Any = None
        flat = v.reshape(g, (-1,))
        if node._needs_grad(0):
            hole = g if self.accumulate else v.reshape(v.place(flat, 0, _FIRST, index), g.shape)
        part = (
            v.reshape(v.pick(flat, _FIRST, index), node._input_shapes[2])
            if node._needs_grad(2)
            else None
        )
        return hole, None, part

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = or_zeros(ts[0], y)
        return self.forward(t, xs[1], or_zeros(ts[2], xs[2]))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Put(False), draw.real(2, 3), draw.permutation(6)[:2], draw.real(2)
        yield Put(True), draw.real(2, 3), draw.ints(-6, 6, 2, 2), draw.real(4)
        yield Put(True), draw.complex(3), draw.ints(0, 3, 2), draw.complex(2)


@scattering(out=False)
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """`input`, seen as a vector, with `source` written (or added) at `index`.

    >>> torch.put(torch.zeros(2, 2), torch.tensor([0, 3]), torch.tensor([5., 6.]))
    tensor([[5., 0.],
            [0., 6.]])
    """
    check_tensors("put", input=input, index=index, source=source)
    if index._array.dtype == dtypes.int64.numpy:
        if source._array.dtype != input._array.dtype:
            raise RuntimeError(
                "put_(): self and source expected to have the same dtype, but got self.dtype = "
                f"{scalar_type_of(input)} and source.dtype = {scalar_type_of(source)}"
            )
        if source._array.size != index._array.size:
            raise IndexError(
                "put_(): Expected source and index to have the same number of elements, but got "
                f"source.numel() = {source._array.size}, index.numel() = {index._array.size}"
            )
    _check_flat("put_", input, index)
    return Put(accumulate), (input, index, source)


@function()
def take_along_dim(input: Any, indices: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """`gather` with broadcasting: what `argsort` and `argmax` return picks the values they stand
    for.

    >>> x = torch.tensor([[3, 1, 2]])
    >>> torch.take_along_dim(x, torch.tensor([[1, 2, 0]]), dim=1)
    tensor([[1, 2, 3]])
    """
    check_tensors("take_along_dim", input=input, indices=indices)
    if dim is None:
        if indices._array.dtype not in (dtypes.int64.numpy, dtypes.int32.numpy):
            raise RuntimeError("gather(): Expected dtype int32/int64 for index")
        flat = methods["reshape"]
        return gather(flat(input, -1), 0, flat(indices, -1), out=out)  # type: ignore[call-arg]  # it has `out`
    if indices._array.dtype != dtypes.int64.numpy:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{scalar_type_of(indices)}"
        )
    mine, theirs = input._array.shape, indices._array.shape
    if len(mine) != len(theirs):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {len(mine)} dimensions for input, and {len(theirs)} dimensions for indices"
        )
    axis = one_dim(dim, len(mine)) % max(len(mine), 1)
    places = indices._array
    known = bottom(places)
    if has_values(known) and known.size and int(known.min()) < 0:
        n = mine[axis] if mine else 1
        indices = wrap(v.where(places < 0, places + n, places))
    if mine:
        wide = list(mine)
        wide[axis] = 1
        shape = broadcast_shape(tuple(wide), (*theirs[:axis], 1, *theirs[axis + 1 :]))
        input = apply_view(Expand((*shape[:axis], mine[axis], *shape[axis + 1 :])), input)
        indices = apply_view(Expand((*shape[:axis], theirs[axis], *shape[axis + 1 :])), indices)
    return gather(input, dim, indices, out=out)  # type: ignore[call-arg]  # it has `out`


# --- nonzero --------------------------------------------------------------------------------------
@op
class Nonzero(Op):
    """Where the elements are not zero, one row an element."""

    name, differentiable, dynamic = "nonzero", False, True

    def forward(self, x: Any) -> Any:
        if not x.ndim:
            found = v.nonzero(v.reshape(x, (1,)))[0]
            return v.empty(x, (found.shape[0], 0), dtypes.int64.numpy)
        # a row an element, but column by column in memory, as in PyTorch
        return v.swap(v.concat([v.window(found, (None,)) for found in v.nonzero(x)], 0), 0, 1)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Nonzero(), draw.ints(0, 2, 3, 2)


@op
class NonzeroParts(Op):
    """Where the elements are not zero, one vector a dimension."""

    name, differentiable, dynamic = "nonzero_numpy", False, True
    word = "nonzero"

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        raise RuntimeError(
            "Batching rule not implemented for aten::nonzero_numpy. We could not generate a "
            "fallback.\nvmap: We do not support batching operators that can output dynamic shape."
        )

    def forward(self, x: Any) -> Any:
        return v.nonzero(x if x.ndim else v.reshape(x, (1,)))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield NonzeroParts(), draw.ints(0, 2, 3, 2)


@function()
def argwhere(input: Any, *, out: Any = None) -> Any:
    """Where `input` is not zero, a row of indices an element.

    >>> torch.argwhere(torch.tensor([0, 1, 1]))
    tensor([[1],
            [2]])
    """
    check_tensor(input, "argwhere")
    if out is not None:
        return run_out("argwhere", Nonzero(), (input,), out)
    if is_batched(input):
        return one_by_one("argwhere", lambda x: apply(Nonzero(), x), input)
    return apply(Nonzero(), input)


@function(returns="Tensor | tuple[Tensor, ...]")
def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Where `input` is not zero: a row of indices an element, or, as a tuple, a vector a dimension.

    >>> torch.nonzero(torch.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    check_tensor(input, "nonzero")
    if as_tuple:
        return apply(NonzeroParts(), input)
    if out is not None:
        return run_out("nonzero", Nonzero(), (input,), out)
    return apply(Nonzero(), input)


# --- a region written to a copy -------------------------------------------------------------------
class Region(Op):
    """`self` with the region that a view op shows replaced by `src`."""

    inputs = ("self", "src")
    params: ClassVar[tuple[str, ...]] = ("view",)
    complex_too = True
    lies = "twin"

    def __init__(self, view: Any) -> None:
        super().__init__()
        self.view = view
        self.order: Any = None  # of the axes of the copy, where the view goes by its memory

    def forward(self, x: Any, src: Any) -> Any:
        return put_region(x, (self.view,), self.order, src)

    def vjp(self, node: Node, g: Any) -> Any:
        part = replay_views(g, (self.view,))
        hole = put_region(g, (self.view,), self.order, zeros(part)) if node._needs_grad(0) else None
        return hole, (part if node._needs_grad(1) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = or_zeros(ts[0], y)
        return self.forward(t, or_zeros(ts[1], xs[1]))


@op
class SelectScatter(Region):
    """`Select`, written."""

    name = "select_scatter"

    samples = drawn(real=[(Select(-2, 1), (2, 3), (3,))], complex=[(Select(-1, 0), (2,), ())])


@op
class SliceScatter(Region):
    """`Slice`, written."""

    name = "slice_scatter"

    samples = drawn(real=[(Slice(-1, 1, 4, 2), (2, 5), (2, 2))])


@op
class DiagonalScatter(Region):
    """`Diagonal`, written."""

    name = "diagonal_scatter"

    samples = drawn(real=[(Diagonal(1, -2, -1), (3, 3), (2,))])


@op
class AsStridedScatter(Region):
    """`AsStrided`, written. Where places overlap the last writer stays, and each of them gets the
    gradient of the place, as in PyTorch; `self` gets that of what it kept."""

    name = "as_strided_scatter"
    params = ("view", "order")

    def __init__(self, view: Any, order: tuple[int, ...] | None = None) -> None:
        super().__init__(view)
        self.order = order

    samples = drawn(
        real=[
            (AsStrided((2, 2), (2, 1), 1, 1, (3, 1)), (2, 3), (2, 2)),
            (AsStrided((2,), (3,), 0, 0, (1, 2)), (1, 0), (2, 3), (2,)),
        ]
    )


def _into_region(name: str, cls: Any, view: Any, x: Any, src: Any, *more: Any) -> Any:
    check_tensors(name, input=x, src=src)
    want = view.forward(x._array).shape
    if src._array.shape != want:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src._array.shape)}, slice size = {list(want)}"
        )
    return apply(cls(view, *more), x, src)


@function()
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """A copy of `input` with `src` at one index of `dim`.

    Args:
        index: the index along `dim`.

    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    dim = one_dim(dim, input._array.ndim)
    shape = input._array.shape
    n = shape[dim]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at dimension "
            f"{dim % len(shape)}"
        )
    view = Select(dim, index + n if index < 0 else index)
    return _into_region("select_scatter", SelectScatter, view, input, src)


@function()
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Any:  # fmt: skip
    """A copy of `input` with `src` in a slice of `dim`.

    >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    dim = one_dim(dim, input._array.ndim)
    if step < 1:
        raise RuntimeError("slice step must be positive")
    first, last, step = slice(start, end, step).indices(input._array.shape[dim])
    view = Slice(dim, first, max(first, last), step)
    return _into_region("slice_scatter", SliceScatter, view, input, src)


@function()
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy of `input` with `src` in a diagonal.

    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    rank = input._array.ndim
    first, second = one_dim(dim1, rank), one_dim(dim2, rank)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    view = Diagonal(offset, first, second)
    return _into_region("diagonal_scatter", DiagonalScatter, view, input, src)


@function()
def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    """A copy of `input` with `src` at the places that `as_strided` shows.

    >>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    # the copy has a memory of its own, in the order of the input's, so places count from its start
    raw = input._array
    order = order_of(raw) if not varies(raw) and is_dense(raw) else None
    inside = [1] * raw.ndim
    width = 1
    for d in reversed(range(raw.ndim) if order is None else order):
        inside[d] = width
        width *= max(raw.shape[d], 1)
    offset = storage_offset or 0
    last = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and last > input._array.size:
        width = input._array.dtype.itemsize
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
            f"itemsize {width} requiring a storage size of {last * width} are out of bounds for "
            f"storage of size {input._array.size * width}"
        )
    if 0 not in size and any(s == 0 and n > 1 for n, s in zip(size, stride, strict=True)):
        raise RuntimeError(OVERLAPS)
    view = AsStrided(tuple(size), tuple(stride), offset, offset, tuple(inside))
    return _into_region("as_strided_scatter", AsStridedScatter, view, input, src, order)
