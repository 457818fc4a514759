"""Copies: `clone`, in the order of memory that is asked for; and copies of what views show."""

from __future__ import annotations

from typing import Any, Final

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.record import apply
from rushlight.ops.apply import run
from rushlight.ops.registry import function, implements, methods, op
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.view.select import Slice, narrow_op
from rushlight.ops.view.split import Parts, Split, SplitWithSizes, chunk_op, sizes_op, split_op

_ORDERS: Final = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


@op
class Clone(Linear):
    """A copy: in the same order of strides ("preserve"), in row order, or channels last."""

    name, params = "clone", ("format",)
    word = "copy"
    saved_names = ""
    format: str = "preserve"

    def mover(self, rule: str) -> Any:
        if rule == "vjp":
            return kernels.same
        formats = {"preserve": kernels.copied, "contiguous": kernels.in_new_rows}
        return formats.get(self.format)

    def forward(self, x: Any) -> Any:
        if self.format == "preserve":
            return v.copy(x)
        return v.laid_out(x, _ORDERS.get(self.format))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return g

    samples = drawn(real=[(2, 3), ("channels_last", (1, 2, 3, 2))], complex=[("contiguous", (2,))])


@function(settles=True)
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy, through which gradients flow.

    >>> torch.clone(torch.tensor([1, 2]))
    tensor([1, 2])
    """
    name = "preserve_format" if memory_format is None else memory_format.name
    rank = input._array.ndim
    wanted = {"channels_last": 4, "channels_last_3d": 5}.get(name, rank)
    if rank != wanted:
        raise RuntimeError(f"required rank {wanted} tensor to use {name} format")
    return run(Clone(name.removesuffix("_format")), (input,))


@op
class LaidOut(Linear):
    """A copy whose axes lie in memory in a given order, widest stride first (None: rows)."""

    name, node, params = "laid_out", "CloneBackward0", ("order",)
    word = "laid_out"
    aten = "clone.default"
    saved_names = ""
    order: tuple[int, ...] | None

    def forward(self, x: Any) -> Any:
        return v.laid_out(x, self.order)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return g

    samples = drawn(real=[((1, 0), (2, 3)), (None, ())])


@implements("contiguous")
def _contiguous_word(x: Any) -> Any:
    return methods["contiguous"](x)


# --- copies of views ------------------------------------------------------------------------------
class RegionCopy(Linear):
    """A copy of what the view op `region` shows."""

    region: Any

    def forward(self, x: Any) -> Any:
        return v.laid_out(self.region.forward(x), None)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.region.adjoint(g, shape)


@op
class NarrowCopy(RegionCopy):
    """A copy of a slice."""

    name, params = "narrow_copy", ("dim", "start", "length")

    def __init__(self, dim: int, start: int, length: int) -> None:
        super().__init__()
        self.dim = dim
        self.start = start
        self.length = length
        self.region = Slice(dim, start, start + length)

    samples = drawn(real=[(-1, 1, 2, (2, 4))])


@function(out=True)
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """`narrow`, as a copy.

    >>> torch.narrow_copy(torch.arange(5), 0, 1, 2)
    tensor([1, 2])
    """
    region = narrow_op(input, dim, start, length)
    return NarrowCopy(region.dim, region.start, region.stop - region.start), (input,)


class UnsafePieces(Parts):
    """Pieces that count as tensors of their own, though they share the memory."""

    def forward(self, x: Any) -> Any:
        return tuple([piece.forward(x) for piece in self.pieces(x.shape)])


@op
class UnsafeSplit(UnsafePieces, Split):
    """`split` into tensors that are no views."""

    name = "unsafe_split"
    aten = "unsafe_split.Tensor"

    samples = drawn(real=[(2, -1, (2, 5))])


@op
class UnsafeSplitWithSizes(UnsafePieces, SplitWithSizes):
    """`split_with_sizes` into tensors that are no views."""

    name = "unsafe_split_with_sizes"

    samples = drawn(real=[((1, 2), -1, (2, 3))])


@function(returns="tuple[Tensor, ...]")
def unsafe_split(input: Any, split_size: int, dim: int = 0) -> Any:
    """`split` whose pieces may be written in place.

    >>> torch.unsafe_split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return apply(split_op(UnsafeSplit, input, split_size, dim), input)


@function(returns="tuple[Tensor, ...]")
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """`split_with_sizes` whose pieces may be written in place.

    >>> torch.unsafe_split_with_sizes(torch.arange(3), (1, 2))
    (tensor([0]), tensor([1, 2]))
    """
    return apply(sizes_op(UnsafeSplitWithSizes, input, split_sizes, dim), input)


@function(returns="tuple[Tensor, ...]")
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """`chunk` whose pieces may be written in place.

    >>> torch.unsafe_chunk(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return apply(chunk_op(input, chunks, dim, UnsafeSplit, UnsafeSplitWithSizes), input)
