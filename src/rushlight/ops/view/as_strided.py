"""Views by other strides: diagonals, sliding windows, and memory by explicit strides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import ByteBounds
from rushlight.core.families import Linear, ViewOp
from rushlight.core.record import apply
from rushlight.core.views.views import apply_view
from rushlight.ops.checks import one_dim, tuple_of_ints, varies
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import Draw, drawn
from rushlight.ops.shape.contiguous import strides_of
from rushlight.ops.view.family import Embed, embed, view_in_place
from rushlight.ops.view.reshape import ViewShape
from rushlight.ops.view.select import EmbedSlice, Slice


# --- diagonals ------------------------------------------------------------------------------------
@op
class EmbedDiagonal(Embed):
    """The adjoint of `Diagonal`."""

    name = "diagonal_backward"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield EmbedDiagonal(Diagonal(1, -2, -1), (3, 3)), draw.real(2)


@op
class Diagonal(ViewOp):
    """A diagonal of two axes, as the last axis."""

    name, params = "diagonal", ("offset", "dim1", "dim2")
    word = "diagonal"
    saved_names = "offset dim1 dim2 self_sym_sizes=self.sizes"
    offset: int
    dim1: int
    dim2: int

    def forward(self, x: Any) -> Any:
        return v.diagonal(x, self.offset, self.dim1, self.dim2)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return embed(EmbedDiagonal, self, g, shape)

    samples = drawn(
        real=[(0, -2, -1, (3, 3)), (1, -3, -1, (2, 3, 4)), (5, -2, -1, (2, 2))],
        complex=[(-1, -1, -2, (3, 2))],
    )


@function(settles=True)
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A view of a diagonal of two dimensions, as the last dimension.

    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    rank = input._array.ndim
    a, b = one_dim(dim1, rank), one_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return apply_view(Diagonal(offset, a, b), input)


# --- windows --------------------------------------------------------------------------------------
@op
class Unfold(ViewOp):
    """Windows of `size` along an axis, every `step`; the window is a new last axis."""

    name, params = "unfold", ("dim", "size", "step")
    word = "windows"
    saved_names = "dimension=dim size step self_sym_sizes=self.sizes"
    dim: int
    size: int
    step: int

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
                part = v.window(g, (..., k) + (v.ALL,) * -self.dim)
                back = [*range(-len(shape), self.dim), -1, *range(self.dim, -1)]
                part = v.permute(part, tuple(back))
                term = embed(EmbedSlice, Slice(self.dim, k * step, k * step + size), part, shape)
                total = term if total is None else total + term
        if total is None:
            return embed(EmbedSlice, Slice(self.dim, 0, 0), _hollow(g, self.dim, shape), shape)
        return total

    samples = drawn(
        real=[(-1, 2, 1, (2, 5)), (-2, 3, 2, (4, 2)), (-1, 0, 1, (3,))], complex=[(-1, 2, 3, (6,))]
    )


def _hollow(g: Any, dim: int, shape: tuple[int, ...]) -> Any:
    """An empty array that is `shape` but for its axis `dim`, of size 0; made from the empty `g`."""
    sizes = list(shape)
    sizes[dim] = 0
    return v.reshape(g, tuple(sizes))


@function(free=False)
def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """A view of windows of `size` along a dimension, every `step`; the window comes last.

    Args:
        size: the size of each slice.
        step: the distance between slices.

    >>> torch.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    shape = input._array.shape
    d = one_dim(dimension, len(shape))
    n = shape[d] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(
            f"maximum size for tensor at dimension {d + max(len(shape), 1)} is {n} but size is "
            f"{size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return apply_view(Slice(-1, 0, size), apply_view(ViewShape((1,)), input))
    return apply_view(Unfold(d, size, step), input)


# --- explicit strides -----------------------------------------------------------------------------
@op
class AsStrided(ViewOp):
    """The memory behind the input by explicit strides, in elements.

    `start` is where the result begins, counted from the input's first element, and `inside` the
    input's own strides: what memory holds the input must be known to find the same places in a
    gradient, whose memory looks different.
    """

    name, params = "as_strided", ("size", "stride", "storage_offset", "start", "inside")
    saved_names = "size stride storage_offset"
    size: tuple[int, ...]
    stride: tuple[int, ...]
    storage_offset: int
    start: int
    inside: tuple[int, ...]

    def forward(self, x: Any) -> Any:
        return v.restrided(x, self.size, self.stride, self.start, self.inside)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.unstrided(g, shape, self.stride, self.start, self.inside)

    samples = drawn(
        real=[((2, 2), (1, 2), 1, 1, (1,), (6,)), ((3, 2), (1, 1), 0, 0, (3, 1), (2, 3))],
        complex=[((), (), 1, 1, (1,), (3,))],
    )


class AsStridedInplace(AsStrided):
    node = "AsStridedBackward1"


@op
class AsStridedBackward(Linear):
    """The adjoint of `AsStrided`."""

    name, params = "as_strided_backward", ("shape", "stride", "start", "inside", "size")
    aten = None
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    start: int
    inside: tuple[int, ...]
    size: tuple[int, ...]

    def forward(self, g: Any) -> Any:
        return v.unstrided(g, self.shape, self.stride, self.start, self.inside)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.restrided(g, self.size, self.stride, self.start, self.inside)

    samples = drawn(real=[((6,), (1, 2), 1, (1,), (2, 2), (2, 2))])


def as_strided_op(cls: Any, input: Any, size: Any, stride: Any, storage_offset: Any) -> Any:
    array = input._array
    shape = tuple_of_ints("as_strided", "size", size, 2)
    steps = tuple_of_ints("as_strided", "stride", stride, 3)
    batched = varies(array)
    bounds = ByteBounds(bottom(array) if batched else array)
    width = array.dtype.itemsize
    here = bounds.offset // width
    offset = here if storage_offset is None else storage_offset
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in steps):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(steps)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    last = offset + 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    if batched:
        _check_member(array, shape, steps, offset, last, here)
    elif 0 not in shape and last * width > bounds.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and "
            f"itemsize {width} requiring a storage size of {last * width} are out of bounds for "
            f"storage of size {bounds.nbytes}"
        )
    return cls(shape, steps, offset, offset - here, strides_of(array))


def _check_member(
    array: Any, shape: tuple[int, ...], steps: tuple[int, ...], offset: int, last: int, here: int
) -> None:
    """Refuse to look beyond the memory of a member of a batch."""
    mine = strides_of(array)
    end = here + 1 + sum((n - 1) * s for n, s in zip(array.shape, mine, strict=True))
    if 0 not in shape and (offset < here or last > end):
        raise RuntimeError(
            f"result = tensor.as_strided({list(shape)}, {list(steps)}, {offset}) can access memory "
            f"outside of `tensor`. `result` can access some memory in range [{offset}, {last}], "
            f"but `tensor` can only access some memory in range [{here}, {end}]. This is not "
            "supported inside of vmap, please try to rewrite the `as_strided` call as a sequence "
            "of PyTorch view operations"
        )


@function()
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """A view of the memory behind `input` by explicit sizes, strides and offset, in elements.

    >>> torch.as_strided(torch.arange(6), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    return apply_view(as_strided_op(AsStrided, input, size, stride, storage_offset), input)


@function()
def as_strided_(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """In-place version of `as_strided`."""
    return view_in_place(
        as_strided_op(AsStridedInplace, input, size, stride, storage_offset), input
    )


@implements("restrided")
def _restrided(x: Any, shape: Any, strides: Any, start: int, inside: Any) -> Any:
    return apply_view(AsStrided(shape, strides, start, start, inside), x)


@implements("unstrided")
def _unstrided(g: Any, shape: Any, strides: Any, start: int, inside: Any) -> Any:
    return apply(AsStridedBackward(shape, strides, start, inside, tuple(g._array.shape)), g)


@implements("strided")
def _strided(x: Any, shape: Any, strides: Any, offset: int) -> Any:
    return as_strided(x, shape, strides, offset)
