"""View ops: results that share their input's memory. Their public functions stand in `view_api`
(shapes, order, repetition) and `view_parts` (regions and pieces).

Op files may import this. Indexing composes `Select`, `Slice`, `Unsqueeze` and `Alias`, as PyTorch
does, one node each: see `basic_index`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear, ViewOp
from rushlight.core.graph import Node, TensorBase
from rushlight.core.record import apply
from rushlight.core.views import look_at
from rushlight.ops.samples import Draw
from rushlight.ops.table import op, word_for

__all__ = [
    "Alias", "AsStrided", "Diagonal", "Expand", "Permute", "ReshapeAlias", "Select", "Slice",
    "Split", "SplitWithSizes", "SqueezeAll", "SqueezeMany", "SqueezeOne", "T", "Transpose",
    "Unbind", "Unfold", "UnsafeView", "Unsqueeze", "ViewShape", "Written", "basic_index", "embed",
    "sum_to",
]  # fmt: skip

_ALL: Final = slice(None)
_END: Final = sys.maxsize


# --- what adjoints are made of --------------------------------------------------------------------
class Written(Linear):
    """A linear op whose forward writes into a new array: on tensors it must be applied."""

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        return apply(self, t) if isinstance(t, TensorBase) else self.forward(t)


class Embed(Written):
    """Zeros of `shape` with the region that the view op `view` shows replaced by the input."""

    params = ("view", "shape")

    def __init__(self, view: Any, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.view = view
        self.shape = shape

    def forward(self, g: Any) -> Any:
        out = v.full(g, self.shape, 0, g.dtype)
        v.overwrite(self.view.forward(out), g)
        return out

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.view.forward(g)


@op
class EmbedSelect(Embed):
    """The adjoint of `Select`."""

    name = "select_backward"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield EmbedSelect(Select(-2, 1), (2, 3)), draw.real(3)


@op
class EmbedSlice(Embed):
    """The adjoint of `Slice`."""

    name = "slice_backward"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield EmbedSlice(Slice(-1, 1, 4, 2), (2, 5)), draw.real(2, 2)


@op
class EmbedDiagonal(Embed):
    """The adjoint of `Diagonal`."""

    name = "diagonal_backward"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield EmbedDiagonal(Diagonal(1, -2, -1), (3, 3)), draw.real(2)


def embed(cls: Any, view: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """`g` in the region that `view` shows of an array of `shape`, zeros elsewhere."""
    put = cls(view, shape)
    return apply(put, g) if isinstance(g, TensorBase) else put.forward(g)


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum what broadcasting from `shape` repeated."""
    have = g.shape
    if have == shape:
        return g
    lead = len(have) - len(shape)
    axes = [*range(lead)]
    axes += [lead + d for d, n in enumerate(shape) if n == 1 and have[lead + d] != 1]
    if axes:
        g = v.total(g, tuple(axes), True)
    return v.reshape(g, shape) if lead else g


# --- the ops --------------------------------------------------------------------------------------
@op
class Select(ViewOp):
    """One index of an axis, which disappears."""

    name, params = "select", ("dim", "index")

    def __init__(self, dim: int, index: int) -> None:
        super().__init__()
        self.dim = dim
        self.index = index
        self.key = (..., index) + (_ALL,) * (-dim - 1)

    def forward(self, x: Any) -> Any:
        return v.window(x, self.key)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return embed(EmbedSelect, self, g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Select(-2, 1), draw.real(2, 3)
        yield Select(-1, -1), draw.real(3)
        yield Select(-1, 0), draw.real(0, 2)
        yield Select(-3, 0), draw.complex(2, 1, 2)


@op
class Slice(ViewOp):
    """Every `step`-th index of an axis from `start` up to `stop`, by Python's rules."""

    name, params = "slice", ("dim", "start", "stop", "step")

    def __init__(self, dim: int, start: int = 0, stop: int = _END, step: int = 1) -> None:
        super().__init__()
        self.dim = dim
        self.start = start
        self.stop = stop
        self.step = step
        self.key = (..., slice(start, stop, step)) + (_ALL,) * (-dim - 1)

    def forward(self, x: Any) -> Any:
        return v.window(x, self.key)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return embed(EmbedSlice, self, g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Slice(-1, 1, 3), draw.real(2, 4)
        yield Slice(-2, 0, _END, 2), draw.real(5, 2)
        yield Slice(-1, -2), draw.complex(3)
        yield Slice(-1, 2, 1), draw.real(3)


@op
class Unsqueeze(ViewOp):
    """A new axis of size 1, at `dim` of the result."""

    name, params = "unsqueeze", ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Any) -> Any:
        return v.unsqueezed(x, self.dim)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.reshape(g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Unsqueeze(-2), draw.real(2, 3)
        yield Unsqueeze(-1), draw.real()
        yield Unsqueeze(-3), draw.real(0, 2)


@op
class Alias(ViewOp):
    """The whole of the input."""

    name = "alias"

    def forward(self, x: Any) -> Any:
        return v.window(x, (...,))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return g

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Alias(), draw.real(2, 3)
        yield Alias(), draw.real()


class SqueezeDims(ViewOp):
    """Drop the axes `dim`, which all have size 1. See the subclasses: PyTorch has three nodes."""

    params = ("dim",)

    def __init__(self, dim: tuple[int, ...]) -> None:
        super().__init__()
        self.dim = dim
        deepest = -min(dim, default=0)
        self.key = (..., *(0 if -d in dim else _ALL for d in range(deepest, 0, -1)))

    def forward(self, x: Any) -> Any:
        return v.window(x, self.key)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.reshape(g, shape)


@op
class SqueezeAll(SqueezeDims):
    """`squeeze()`: every axis of size 1."""

    name, node = "squeeze", "SqueezeBackward0"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield SqueezeAll((-3, -1)), draw.real(1, 3, 1)
        yield SqueezeAll(()), draw.real()


@op
class SqueezeOne(SqueezeDims):
    """`squeeze(dim)`: one axis, if it has size 1."""

    name, node = "squeeze_dim", "SqueezeBackward1"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield SqueezeOne((-2,)), draw.real(2, 1, 3)
        yield SqueezeOne(()), draw.real(2)


@op
class SqueezeMany(SqueezeDims):
    """`squeeze((d, e))`: those of the axes that have size 1."""

    name, node = "squeeze_dims", "SqueezeBackward2"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield SqueezeMany((-2, -1)), draw.real(2, 1, 1)


class ShapeOp(ViewOp):
    """The same elements in the same order, in another shape."""

    params = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Any) -> Any:
        return v.reshape(x, self.shape)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.reshape(g, shape)


@op
class ViewShape(ShapeOp):
    """`view`: only where the strides allow it, which the public functions check."""

    name = "view"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ViewShape((3, 2)), draw.real(2, 3)
        yield ViewShape((1, 1)), draw.real()
        yield ViewShape((2, 0)), draw.real(0, 3)


@op
class ReshapeAlias(ShapeOp):
    """What `reshape` records where a view is possible though the input is not contiguous."""

    name = "reshape_alias"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ReshapeAlias((2, 3, 1)), draw.real(2, 3)


@op
class UnsafeView(Linear):
    """`view` of a copy that nothing else refers to: the result counts as a tensor of its own."""

    name, params = "unsafe_view", ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Any) -> Any:
        return v.reshape(x, self.shape)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.reshape(g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield UnsafeView((3, 2)), draw.real(2, 3)


@op
class Permute(ViewOp):
    """The axes in another order (negative ints; further axes in front stay)."""

    name, params = "permute", ("dims",)

    def __init__(self, dims: tuple[int, ...]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Any) -> Any:
        return v.permute(x, (*range(x.ndim - len(self.dims)), *self.dims))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        rank = len(self.dims)
        back = [0] * rank
        for position, d in enumerate(self.dims):
            back[d] = position - rank
        return v.permute(g, (*range(g.ndim - rank), *back))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Permute((-1, -3, -2)), draw.real(2, 3, 4)
        yield Permute(()), draw.real()
        yield Permute((-1, -2)), draw.complex(2, 3)


@op
class Transpose(ViewOp):
    """Two axes exchanged."""

    name, params = "transpose", ("dim0", "dim1")

    def __init__(self, dim0: int, dim1: int) -> None:
        super().__init__()
        self.dim0 = dim0
        self.dim1 = dim1

    def forward(self, x: Any) -> Any:
        return v.swap(x, self.dim0, self.dim1) if self.dim0 != self.dim1 else v.window(x, (...,))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.swap(g, self.dim0, self.dim1) if self.dim0 != self.dim1 else g

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Transpose(-3, -1), draw.real(2, 3, 4)
        yield Transpose(-1, -1), draw.real()
        yield Transpose(-2, -1), draw.complex(2, 0)


@op
class T(ViewOp):
    """`t()`: a matrix transposed; vectors and numbers stay."""

    name, params = "t", ("rank",)

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: Any) -> Any:
        return v.swap(x, -2, -1) if self.rank == 2 else v.window(x, (...,))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.swap(g, -2, -1) if self.rank == 2 else g

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield T(2), draw.real(2, 3)
        yield T(1), draw.real(3)
        yield T(0), draw.real()


@op
class Expand(ViewOp):
    """Axes of size 1 repeated without copying, and new axes in front."""

    name, params = "expand", ("size",)

    def __init__(self, size: tuple[int, ...]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Any) -> Any:
        return v.broadcast(x, self.size)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return sum_to(g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Expand((2, 2, 3)), draw.real(2, 1)
        yield Expand((2, 3)), draw.real()
        yield Expand((0, 3)), draw.real(1, 3)
        yield Expand((2, 3)), draw.complex(2, 3)


@op
class Diagonal(ViewOp):
    """A diagonal of two axes, as the last axis."""

    name, params = "diagonal", ("offset", "dim1", "dim2")

    def __init__(self, offset: int, dim1: int, dim2: int) -> None:
        super().__init__()
        self.offset = offset
        self.dim1 = dim1
        self.dim2 = dim2

    def forward(self, x: Any) -> Any:
        return v.diagonal(x, self.offset, self.dim1, self.dim2)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return embed(EmbedDiagonal, self, g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Diagonal(0, -2, -1), draw.real(3, 3)
        yield Diagonal(1, -3, -1), draw.real(2, 3, 4)
        yield Diagonal(-1, -1, -2), draw.complex(3, 2)
        yield Diagonal(5, -2, -1), draw.real(2, 2)


@op
class Unfold(ViewOp):
    """Windows of `size` along an axis, every `step`; the window is a new last axis."""

    name, params = "unfold", ("dim", "size", "step")

    def __init__(self, dim: int, size: int, step: int) -> None:
        super().__init__()
        self.dim = dim
        self.size = size
        self.step = step

    def forward(self, x: Any) -> Any:
        return v.windows(x, self.dim, self.size, self.step)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        size, step = self.size, self.step
        count = g.shape[self.dim - 1]
        total: Any = None
        if size <= count:  # one term an offset within the window, or one a window
            for k in range(size):
                part = v.window(g, (..., k))
                place = Slice(self.dim, k, k + (count - 1) * step + 1, step)
                term = embed(EmbedSlice, place, part, shape)
                total = term if total is None else total + term
        else:
            for k in range(count):
                part = v.window(g, (..., k) + (_ALL,) * -self.dim)
                back = [*range(-len(shape), self.dim), -1, *range(self.dim, -1)]
                part = v.permute(part, tuple(back))
                term = embed(EmbedSlice, Slice(self.dim, k * step, k * step + size), part, shape)
                total = term if total is None else total + term
        if total is None:
            return embed(EmbedSlice, Slice(self.dim, 0, 0), _hollow(g, self.dim, shape), shape)
        return total

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Unfold(-1, 2, 1), draw.real(2, 5)
        yield Unfold(-2, 3, 2), draw.real(4, 2)
        yield Unfold(-1, 0, 1), draw.real(3)
        yield Unfold(-1, 2, 3), draw.complex(6)


def _hollow(g: Any, dim: int, shape: tuple[int, ...]) -> Any:
    """An empty array that is `shape` but for its axis `dim`, of size 0; made from the empty `g`."""
    sizes = list(shape)
    sizes[dim] = 0
    return v.reshape(g, tuple(sizes))


class Parts(Linear):
    """A view op with several outputs. `pieces(shape)` are the single views that lead to each."""

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        raise NotImplementedError

    def forward(self, x: Any) -> Any:
        return tuple([piece.forward(x) for piece in self.pieces(x.shape)])

    def vjp(self, node: Node, g: Any) -> Any:
        rule: Any = self
        assert node.shapes is not None
        return (rule.adjoint(g if isinstance(g, list) else [g], node.shapes[0]),)


@op
class Split(Parts):
    """Pieces of `split_size` along an axis; the last may be shorter."""

    name, params = "split", ("split_size", "dim")

    def __init__(self, split_size: int, dim: int) -> None:
        super().__init__()
        self.split_size = split_size
        self.dim = dim

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        step = self.split_size
        starts = range(0, shape[self.dim], step) if shape[self.dim] else (0,)
        return [Slice(self.dim, k, min(k + step, shape[self.dim])) for k in starts]

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.concat(g, self.dim)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Split(2, -1), draw.real(2, 5)
        yield Split(1, -2), draw.complex(2, 3)
        yield Split(1, -1), draw.real(2, 0)


@op
class SplitWithSizes(Parts):
    """Pieces of the given sizes along an axis."""

    name, params = "split_with_sizes", ("split_sizes", "dim")

    def __init__(self, split_sizes: tuple[int, ...], dim: int) -> None:
        super().__init__()
        self.split_sizes = split_sizes
        self.dim = dim

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        found = []
        start = 0
        for size in self.split_sizes:
            found.append(Slice(self.dim, start, start + size))
            start += size
        return found

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.concat(g, self.dim)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield SplitWithSizes((1, 0, 3), -1), draw.real(2, 4)
        yield SplitWithSizes((2, 1), -2), draw.complex(3, 2)


@op
class Unbind(Parts):
    """All the indices of an axis, each as a view."""

    name, params = "unbind", ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        return [Select(self.dim, k) for k in range(shape[self.dim])]

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        key = (..., None) + (_ALL,) * (-self.dim - 1)
        return v.concat([v.window(part, key) for part in g], self.dim)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Unbind(-2), draw.real(2, 3)
        yield Unbind(-1), draw.real(3)


@op
class AsStrided(ViewOp):
    """The memory behind the input by explicit strides, in elements.

    `start` is where the result begins, counted from the input's first element, and `inside` the
    input's own strides: what memory holds the input must be known to find the same places in a
    gradient, whose memory looks different.
    """

    name, params = "as_strided", ("size", "stride", "storage_offset", "start", "inside")

    def __init__(
        self, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int, start: int,
        inside: tuple[int, ...],
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = size
        self.stride = stride
        self.storage_offset = storage_offset
        self.start = start
        self.inside = inside

    def forward(self, x: Any) -> Any:
        return v.restrided(x, self.size, self.stride, self.start, self.inside)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.unstrided(g, shape, self.stride, self.start, self.inside)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield AsStrided((2, 2), (1, 2), 1, 1, (1,)), draw.real(6)
        yield AsStrided((3, 2), (1, 1), 0, 0, (3, 1)), draw.real(2, 3)
        yield AsStrided((), (), 1, 1, (1,)), draw.complex(3)


@op
class AsStridedBackward(Linear):
    """The adjoint of `AsStrided`."""

    name, params = "as_strided_backward", ("shape", "stride", "start", "inside", "size")

    def __init__(
        self, shape: tuple[int, ...], stride: tuple[int, ...], start: int, inside: tuple[int, ...],
        size: tuple[int, ...],
    ) -> None:  # fmt: skip
        super().__init__()
        self.shape = shape
        self.stride = stride
        self.start = start
        self.inside = inside
        self.size = size

    def forward(self, g: Any) -> Any:
        return v.unstrided(g, self.shape, self.stride, self.start, self.inside)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.restrided(g, self.size, self.stride, self.start, self.inside)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield AsStridedBackward((6,), (1, 2), 1, (1,), (2, 2)), draw.real(2, 2)


# --- words on tensors -----------------------------------------------------------------------------
@word_for("permute")
def _permute(x: Any, axes: Any) -> Any:
    rank = x.array.ndim
    return look_at(Permute(tuple([a - rank if a >= 0 else a for a in axes])), x)


@word_for("swap")
def _swap(x: Any, a: int, b: int) -> Any:
    rank = x.array.ndim
    return look_at(Transpose(a - rank if a >= 0 else a, b - rank if b >= 0 else b), x)


@word_for("broadcast")
def _broadcast(x: Any, shape: Any) -> Any:
    return look_at(Expand(tuple(shape)), x)


@word_for("window")
def _window(x: Any, index: Any) -> Any:
    return basic_index(x, index)


@word_for("unsqueezed")
def _unsqueezed(x: Any, dim: int) -> Any:
    return look_at(Unsqueeze(dim), x)


@word_for("restrided")
def _restrided(x: Any, shape: Any, strides: Any, start: int, inside: Any) -> Any:
    return look_at(AsStrided(shape, strides, start, start, inside), x)


@word_for("unstrided")
def _unstrided(g: Any, shape: Any, strides: Any, start: int, inside: Any) -> Any:
    return apply(AsStridedBackward(shape, strides, start, inside, tuple(g.array.shape)), g)


@word_for("diagonal")
def _diagonal(x: Any, offset: int, a: int, b: int) -> Any:
    rank = x.array.ndim
    return look_at(Diagonal(offset, a - rank if a >= 0 else a, b - rank if b >= 0 else b), x)


@word_for("windows")
def _windows(x: Any, axis: int, size: int, step: int) -> Any:
    return look_at(Unfold(axis - x.array.ndim if axis >= 0 else axis, size, step), x)


def basic_index(x: Any, index: Any) -> Any:
    """`x[index]` for a tuple of ints, slices (step > 0), None and ellipsis: a chain of views, one
    node an item, as PyTorch does it. Full slices leave no node."""
    real = sum(item is not None and item is not ... for item in index)
    dim = 0
    start = x
    for item in index:
        rank = x.array.ndim
        if item is ...:
            dim += rank - real
        elif item is None:
            x = look_at(Unsqueeze(dim - rank - 1), x)
            dim += 1
        elif isinstance(item, slice):
            if item != _ALL:
                stop = _END if item.stop is None else item.stop
                x = look_at(Slice(dim - rank, item.start or 0, stop, item.step or 1), x)
            dim += 1
            real -= 1
        else:
            x = look_at(Select(dim - rank, item), x)
            real -= 1
    return look_at(Alias(), x) if x is start else x
