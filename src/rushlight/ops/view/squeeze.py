"""Views with axes of size 1 put in or dropped."""

from __future__ import annotations

from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.core.families import ViewOp
from rushlight.core.views import plain_views
from rushlight.core.views.views import apply_view
from rushlight.errors import dim_out_of_range
from rushlight.ops.checks import one_dim, one_int
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.view.family import view_in_place
from rushlight.ops.view.reshape import reshape


# --- put in ---------------------------------------------------------------------------------------
@op
class Unsqueeze(ViewOp):
    """A new axis of size 1, at `dim` of the result."""

    name, params = "unsqueeze", ("dim",)
    word = "unsqueezed"
    saved_names = "dim=dim+"
    dim: int

    def forward(self, x: Any) -> Any:
        return v.unsqueezed(x, self.dim)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.reshape(g, shape)

    samples = drawn(real=[(-2, (2, 3)), (-1, ()), (-3, (0, 2))])


class UnsqueezeInplace(Unsqueeze):
    node = "UnsqueezeBackward1"


def unsqueeze_op(cls: Any, input: Any, dim: Any) -> Any:
    rank = input._array.ndim + 1
    d = one_int("unsqueeze", "dim", dim, 1)
    if not -rank <= d < rank:
        raise IndexError(dim_out_of_range(d, rank))
    return cls(d - rank if d >= 0 else d)


plain_views.view_ops.unsqueeze = Unsqueeze


@function(settles=True, quick=plain_views.unsqueeze)
def unsqueeze(input: Any, dim: int | None = None, *, axis: int | None = None) -> Any:
    """A view with a new dimension of size 1 at `dim`.

    >>> torch.unsqueeze(torch.zeros(3), -1).shape
    torch.Size([3, 1])
    """
    if dim is None:  # `axis` is NumPy's name for it
        if axis is None:
            raise TypeError('unsqueeze() missing 1 required positional arguments: "dim"')
        dim = axis
    return apply_view(unsqueeze_op(Unsqueeze, input, dim), input)


@function(free=False)
def unsqueeze_(input: Any, dim: int) -> Any:
    """In-place version of `unsqueeze`."""
    return view_in_place(unsqueeze_op(UnsqueezeInplace, input, dim), input)


def _at_least(tensors: tuple[Any, ...], each: Any) -> Any:
    if len(tensors) == 1:
        if isinstance(tensors[0], (tuple, list)):
            return tuple([each(x) for x in tensors[0]])
        return each(tensors[0])
    return tuple([each(x) for x in tensors])


@function(method=False, returns="Tensor | tuple[Tensor, ...]")
def atleast_1d(*tensors: Any) -> Any:
    """0-d tensors as 1-d ones; others as they are.

    >>> torch.atleast_1d(torch.tensor(2))
    tensor([2])
    """
    return _at_least(tensors, lambda x: x if x._array.ndim else reshape(x, (1,)))


@function(method=False, returns="Tensor | tuple[Tensor, ...]")
def atleast_2d(*tensors: Any) -> Any:
    """At least two dimensions, new ones in front.

    >>> torch.atleast_2d(torch.tensor([1, 2]))
    tensor([[1, 2]])
    """

    def each(x: Any) -> Any:
        rank = x._array.ndim
        return reshape(x, (1, 1)) if rank == 0 else unsqueeze(x, 0) if rank == 1 else x

    return _at_least(tensors, each)


@function(method=False, returns="Tensor | tuple[Tensor, ...]")
def atleast_3d(*tensors: Any) -> Any:
    """At least three dimensions: vectors become 1×n×1, matrices n×m×1.

    >>> torch.atleast_3d(torch.tensor([1, 2])).shape
    torch.Size([1, 2, 1])
    """

    def each(x: Any) -> Any:
        rank = x._array.ndim
        if rank == 0:
            return reshape(x, (1, 1, 1))
        if rank == 1:
            return unsqueeze(unsqueeze(x, 0), -1)
        return unsqueeze(x, -1) if rank == 2 else x

    return _at_least(tensors, each)


# --- dropped --------------------------------------------------------------------------------------
class SqueezeDims(ViewOp):
    """Drop the axes `dim`, which all have size 1. See the subclasses: PyTorch has three nodes."""

    params = ("dim",)

    def __init__(self, dim: tuple[int, ...]) -> None:
        super().__init__()
        self.dim = dim
        deepest = -min(dim, default=0)
        self.key = (..., *(0 if -d in dim else v.ALL for d in range(deepest, 0, -1)))

    def forward(self, x: Any) -> Any:
        return v.window(x, self.key)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.reshape(g, shape)


@op
class SqueezeAll(SqueezeDims):
    """`squeeze()`: every axis of size 1."""

    name, node = "squeeze", "SqueezeBackward0"
    saved_names = "self_sym_sizes=self.sizes"

    samples = drawn(real=[((-3, -1), (1, 3, 1)), ((), ())])


@op
class SqueezeOne(SqueezeDims):
    """`squeeze(dim)`: one axis, if it has size 1."""

    name, node = "squeeze_dim", "SqueezeBackward1"
    aten = "squeeze.dim"
    saved_names = "dim self_sym_sizes=self.sizes"

    samples = drawn(real=[((-2,), (2, 1, 3)), ((), (2,))])


@op
class SqueezeMany(SqueezeDims):
    """`squeeze((d, e))`: those of the axes that have size 1."""

    name, node = "squeeze_dims", "SqueezeBackward2"
    aten = "squeeze.dims"
    saved_names = "dim=dim* self_sym_sizes=self.sizes"

    samples = drawn(real=[((-2, -1), (2, 1, 1))])


class SqueezeAllInplace(SqueezeAll):
    node = "SqueezeBackward3"


class SqueezeOneInplace(SqueezeOne):
    node = "SqueezeBackward4"


class SqueezeManyInplace(SqueezeMany):
    node = "SqueezeBackward5"


def squeeze_op(input: Any, dim: Any, every: Any, one: Any, many: Any) -> Any:
    shape = input._array.shape
    rank = len(shape)
    if dim is None:
        return every(tuple([d for d in range(-rank, 0) if shape[d] == 1]))
    if isinstance(dim, (tuple, list)):
        found = [one_dim(d, rank) for d in dim]
        for d in found:
            if found.count(d) > 1:
                top = max(rank, 1)
                raise RuntimeError(f"dim {d + top} appears multiple times in the list of dims")
        return many(tuple([d for d in found if rank and shape[d] == 1]))
    d = one_dim(dim, rank)
    return one((d,) if rank and shape[d] == 1 else ())


plain_views.view_ops.squeeze_all = SqueezeAll
plain_views.view_ops.squeeze_one = SqueezeOne


@function(settles=True, quick=plain_views.squeeze)
def squeeze(input: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """A view without dimensions of size 1: all of them, or those named.

    >>> torch.squeeze(torch.zeros(1, 3, 1)).shape
    torch.Size([3])
    """
    if axis is not None and dim is None:  # NumPy's name for it
        dim = axis
    return apply_view(squeeze_op(input, dim, SqueezeAll, SqueezeOne, SqueezeMany), input)


@function(free=False)
def squeeze_(input: Any, dim: Any = None) -> Any:
    """In-place version of `squeeze`."""
    how = (SqueezeAllInplace, SqueezeOneInplace, SqueezeManyInplace)
    return view_in_place(squeeze_op(input, dim, *how), input)
