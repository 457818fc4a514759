"""Views of a region of an axis: one index, a slice, the whole; and basic indexing, made of them.

Indexing composes `Select`, `Slice`, `Unsqueeze` and `Alias`, as PyTorch does, one node each: see
`basic_index`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched
from rushlight.arrays.vocabulary import ALL
from rushlight.core.families import ViewOp
from rushlight.core.graph import TensorBase, wrap_alias
from rushlight.core.views import plain_views
from rushlight.core.views.views import apply_view
from rushlight.ops.checks import is_batched, one_dim, one_int
from rushlight.ops.registry import function, implements, op, refuse_input
from rushlight.ops.sample_inputs import Draw, drawn
from rushlight.ops.view.family import Embed, embed
from rushlight.ops.view.squeeze import Unsqueeze

_END: Final = sys.maxsize


# --- one index ------------------------------------------------------------------------------------
@op
class EmbedSelect(Embed):
    """The adjoint of `Select`."""

    name = "select_backward"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield EmbedSelect(Select(-2, 1), (2, 3)), draw.real(3)


@op
class Select(ViewOp):
    """One index of an axis, which disappears."""

    name, params = "select", ("dim", "index")
    aten = "select.int"
    saved_names = "dim index self_sym_sizes=self.sizes"

    def __init__(self, dim: int, index: int) -> None:
        super().__init__()
        self.dim = dim
        self.index = index
        self.key = (..., index) + (ALL,) * (-dim - 1)

    def forward(self, x: Any) -> Any:
        return v.window(x, self.key)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return embed(EmbedSelect, self, g, shape)

    def vjp_kernel_for(self, shape: tuple[int, ...]) -> Any:
        at = self.index % shape[self.dim] if shape[self.dim] else 0
        return kernels.bound(kernels.embedded, shape, self.dim, at, 1, False)

    samples = drawn(
        real=[(-2, 1, (2, 3)), (-1, -1, (3,)), (-1, 0, (0, 2))], complex=[(-3, 0, (2, 1, 2))]
    )


plain_views.view_ops.select = Select


@function(settles=True, quick=plain_views.select)
def select(input: Any, dim: int, index: int) -> Any:
    """A view of one index of a dimension, which disappears.

    Args:
        index: the index along `dim`.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = one_dim(dim, len(shape))
    i = one_int("select", "index", index, 3)
    if not -shape[d] <= i < shape[d]:
        raise IndexError(
            f"select(): index {i} out of range for tensor of size {list(shape)} at dimension "
            f"{d + len(shape)}"
        )
    return apply_view(Select(d, i), input)


# --- a range --------------------------------------------------------------------------------------
@op
class EmbedSlice(Embed):
    """The adjoint of `Slice`."""

    name = "slice_backward"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield EmbedSlice(Slice(-1, 1, 4, 2), (2, 5)), draw.real(2, 2)


@op
class Slice(ViewOp):
    """Every `step`-th index of an axis from `start` up to `stop`, by Python's rules."""

    name, params = "slice", ("dim", "start", "stop", "step")
    aten = "slice.Tensor"
    saved_names = "dim start end=stop step self_sym_sizes=self.sizes"

    def __init__(self, dim: int, start: int = 0, stop: int = _END, step: int = 1) -> None:
        super().__init__()
        self.dim = dim
        self.start = start
        self.stop = stop
        self.step = step
        self.key = (..., slice(start, stop, step)) + (ALL,) * (-dim - 1)

    def forward(self, x: Any) -> Any:
        return v.window(x, self.key)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return embed(EmbedSlice, self, g, shape)

    def vjp_kernel_for(self, shape: tuple[int, ...]) -> Any:
        start = slice(self.start, self.stop, self.step).indices(shape[self.dim])[0]
        return kernels.bound(kernels.embedded, shape, self.dim, start, self.step, True)

    samples = drawn(
        real=[(-1, 1, 3, (2, 4)), (-2, 0, _END, 2, (5, 2)), (-1, 2, 1, (3,))],
        complex=[(-1, -2, (3,))],
    )


plain_views.view_ops.slice = Slice


@function(settles=True, quick=plain_views.narrow)
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """A view of `length` indices of a dimension, from `start`.

    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return apply_view(narrow_op(input, dim, start, length), input)


def narrow_op(input: Any, dim: Any, start: Any, length: Any) -> Slice:
    """The slice that `narrow` means, checked."""
    shape = input._array.shape
    rank = len(shape)
    if rank == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, TensorBase):
        if is_batched(start):
            raise RuntimeError(
                "Batching rule not implemented for aten::narrow.Tensor; the fallback path doesn't "
                "work on out= or view ops."
            )
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start._array.item())
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    d = one_dim(dim, rank)
    n = shape[d]
    if not -n <= start <= n:
        raise IndexError(
            f"start out of range (expected to be in range of [{-n}, {n}], but got {start})"
        )
    if start < 0:
        start += n
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return Slice(d, int(start), int(start) + int(length))


# --- the whole ------------------------------------------------------------------------------------
@op
class Alias(ViewOp):
    """The whole of the input."""

    name = "alias"

    def forward(self, x: Any) -> Any:
        return v.window(x, (...,))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return g

    samples = drawn(real=[(2, 3), ()])


ALIAS: Final = Alias()
plain_views.view_ops.alias = Alias


@function(bare=True, quick=plain_views.detach)
def detach(input: Any) -> Any:
    """The same memory, without history: no gradient flows through it.

    >>> torch.ones(2, requires_grad=True).detach()
    tensor([1., 1.])
    """
    if not isinstance(input, TensorBase):
        return refuse_input("detach", detach, input)
    array = input._array
    return wrap_alias(detached_array(array) if type(array) is Batched else array, input)


def detached_array(array: Any) -> Any:
    """A view of the whole array. What is inside a batch is detached too, at every level."""
    if type(array) is not Batched:
        return v.window(array, (...,))
    inside = array.value
    below = detach(inside) if isinstance(inside, TensorBase) else detached_array(inside)
    return Batched(below, array.level, array.has_batch_dim)


# --- basic indexing -------------------------------------------------------------------------------
def basic_index(x: Any, index: Any) -> Any:
    """`x[index]` for a tuple of ints, slices (step > 0), None and ellipsis: a chain of views, one
    node an item, as PyTorch does it. Full slices leave no node."""
    real = sum(item is not None and item is not ... for item in index)
    dim = 0
    start = x
    for item in index:
        rank = x._array.ndim
        if item is ...:
            dim = rank - real
        elif item is None:
            x = apply_view(Unsqueeze(dim - rank - 1), x)
            dim += 1
        elif isinstance(item, slice):
            if item != ALL:
                stop = _END if item.stop is None else item.stop
                x = apply_view(Slice(dim - rank, item.start or 0, stop, item.step or 1), x)
            dim += 1
            real -= 1
        else:
            x = apply_view(Select(dim - rank, item), x)
            real -= 1
    return apply_view(ALIAS, x) if x is start else x


@implements("window")
def _window(x: Any, index: Any) -> Any:
    return basic_index(x, index)
