"""Triangles and diagonals of matrices, as copies: `tril`, `triu`, `diag_embed`, `diag`."""

from __future__ import annotations

from typing import Any

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.record import apply
from rushlight.ops.checks import one_dim
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import describe, function, implements, op, variant
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.shape.clone import RegionCopy
from rushlight.ops.view.as_strided import Diagonal
from rushlight.ops.view.family import Written
from rushlight.ops.view.reshape import reshape


# --- triangles ------------------------------------------------------------------------------------
class Triangle(Linear):
    """Zero on one side of a diagonal of the last two dimensions."""

    params = ("diagonal",)
    diagonal: int
    lower = True
    lies = "rows"

    def mover(self, rule: str) -> Any:
        return kernels.bound(kernels.triangle, self.diagonal, self.lower)

    def forward(self, x: Any) -> Any:
        return v.triangle(x, self.diagonal, self.lower)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.triangle(g, self.diagonal, self.lower)


@op
class Tril(Triangle):
    """The lower triangle."""

    name = "tril"
    vmap_rule = batch_leading

    samples = drawn(real=[(0, (3, 3)), (1, (0, 3))], complex=[(-1, (2, 3, 2))])


@op
class Triu(Triangle):
    """The upper triangle."""

    name, lower = "triu", False
    vmap_rule = batch_leading

    samples = drawn(real=[(0, (3, 3))], complex=[(1, (2, 3, 2))])


def _export_triangle(cls: Any, side: str, other: str, shown: str) -> None:
    name = cls.name

    def triangle(input: Any, diagonal: int = 0) -> Any:
        if input._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return cls(diagonal), (input,)

    text = f"The {side} triangle of the last two dimensions, zeros {other} `diagonal`."
    doc = describe(text, f"torch.{name}(torch.ones(2, 2))", shown)
    function(out=True, inplace=True, settles=True)(variant(triangle, name, doc))


_export_triangle(Tril, "lower", "above", "tensor([[1., 0.],\n        [1., 1.]])")
_export_triangle(Triu, "upper", "below", "tensor([[1., 1.],\n        [0., 1.]])")


@implements("triangle")
def _triangle_word(x: Any, k: int, lower: bool) -> Any:
    return apply((Tril if lower else Triu)(k), x)


# --- diagonals ------------------------------------------------------------------------------------
class OnDiagonal(Linear):
    """An op on the diagonal `offset` above the main one, of two axes."""

    params = ("offset", "dim1", "dim2")
    offset: int
    dim1: int
    dim2: int


@op
class DiagEmbed(OnDiagonal, Written):
    """The last axis as a diagonal of two new ones (negative, of the result)."""

    name = "diag_embed"
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        side = x.shape[-1] + abs(self.offset)
        rank = x.ndim + 1
        first, second = sorted((self.dim1 + rank, self.dim2 + rank))
        shape = list(x.shape[:-1])
        shape.insert(first, side)
        shape.insert(second, side)
        out = v.full(x, tuple(shape), 0, x.dtype)
        v.overwrite(v.diagonal(out, self.offset, self.dim1, self.dim2), x)
        return out

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.diagonal(g, self.offset, self.dim1, self.dim2)

    samples = drawn(real=[(0, -2, -1, (2, 3)), (-1, -1, -2, (3,))], complex=[(1, -3, -1, (2, 2))])


@function(out=True, settles=True)
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The last dimension as a diagonal of two new dimensions.

    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    rank = input._array.ndim + 1
    a, b = one_dim(dim1, rank), one_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return DiagEmbed(offset, a, b), (input,)


@op
class DiagonalCopy(OnDiagonal, RegionCopy):
    """A copy of a diagonal."""

    name, node = "diagonal_copy", "DiagonalBackward0_copy"

    def __init__(self, offset: int, dim1: int, dim2: int) -> None:
        super().__init__(offset, dim1, dim2)
        self.region = Diagonal(offset, dim1, dim2)

    samples = drawn(real=[(0, -2, -1, (2, 3))], complex=[(1, -2, -1, (3, 3))])


@function(out=True, settles=True)
def diag(input: Any, diagonal: int = 0) -> Any:
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector.

    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    rank = input._array.ndim
    if rank not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {rank}D")
    return (DiagEmbed if rank == 1 else DiagonalCopy)(diagonal, -2, -1), (input,)


@function()
def diagflat(input: Any, offset: int = 0) -> Any:
    """All elements as a diagonal.

    >>> torch.diagflat(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return apply(DiagEmbed(offset, -2, -1), reshape(input, (input._array.size,)))
