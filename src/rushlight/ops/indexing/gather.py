"""`gather`: values picked along one dimension, by an index of the tensor's rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, TensorBase, wrap
from rushlight.core.record import apply
from rushlight.core.transforms.stack import stack
from rushlight.ops.checks import from_end, one_dim
from rushlight.ops.each_member import batch_leading
from rushlight.ops.indexing.family import Along, check_along, check_places
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import Draw


def gather_any_rank(x: Any, dim: int, index: Any) -> Any:
    """`gather` where ranks may differ: a 0-d tensor, a 0-d or an empty index."""
    if x.ndim == index.ndim and x.ndim:
        return v.gather(x, dim, index)
    flat = v.gather(v.reshape(x, (-1,)), -1, v.reshape(index, (-1,)))
    return v.reshape(flat, index.shape)


def _ungather(g: Any, shape: tuple[int, ...], dim: int, index: Any) -> Any:
    if len(shape) == index.ndim and shape:
        return v.ungather(g, shape, dim, index)
    flat = v.ungather(v.reshape(g, (-1,)), (math.prod(shape),), -1, v.reshape(index, (-1,)))
    return v.reshape(flat, shape)


def _sparse_ungather(g: Any, shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """`_ungather` as a sparse array: an element for each that was picked."""
    from rushlight.arrays.sparse_rules import sparse_of  # late: few programs use it

    tensors = isinstance(index, TensorBase)
    i = index._array if tensors else index
    rows = []
    for d in range(i.ndim):
        along = v.iota(i, i.shape[d], i.dtype)
        where = v.reshape(along, (-1, *(1,) * (i.ndim - 1 - d)))
        rows.append(v.reshape(i if d == dim % i.ndim else v.broadcast(where, i.shape), (1, -1)))
    places = v.concat(rows, 0)
    return sparse_of(wrap(places) if tensors else places, v.reshape(g, (-1,)), tuple(shape), False)


@op
class Gather(Along):
    """out[i][j] = self[index[i][j]][j], for `dim` = 0 of two."""

    name = "gather"
    saved_names = "dim sparse_grad"
    shown_edges = (0,)
    inputs, saves = ("self", "index"), ("index",)
    vmap_rule = batch_leading
    params = ("dim", "sparse_grad")
    sparse_grad: bool = False

    def mover(self, rule: str) -> Any:
        return kernels.bound(kernels.gathered, self.dim) if rule == "forward" else None

    def forward(self, x: Any, index: Any) -> Any:
        check_places(index, x.shape, self.dim)
        return gather_any_rank(x, self.dim, index)

    def vjp(self, node: Any, g: Any, index: Any) -> Any:
        shape = node._input_shapes[0]
        if self.sparse_grad and shape:
            return _sparse_ungather(g, shape, self.dim, index), None
        return _ungather(g, shape, self.dim, index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return gather_any_rank(ts[0], self.dim, xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Gather(-2), draw.real(3, 2), draw.ints(0, 3, 4, 2)
        yield Gather(-1), draw.real(3, 4), draw.ints(0, 4, 2, 5)
        yield Gather(-1), draw.complex(3), draw.ints(0, 3, 2)
        yield Gather(-1), draw.real(), draw.ints(0, 1)
        yield Gather(-1), draw.real(3), draw.ints(0, 3, 0)


@op
class Ungather(Along):
    """The adjoint of `Gather`: zeros of `shape`, with the input added where it came from."""

    name, params = "gather_backward", ("shape", "dim")
    shown_edges = (0,)
    inputs, saves = ("self", "index"), ("index",)
    shape: tuple[int, ...]
    complex_too = True

    def forward(self, g: Any, index: Any) -> Any:
        return v.ungather(g, self.shape, self.dim, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return v.gather(g, self.dim, index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.ungather(ts[0], self.shape, self.dim, xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Ungather((3, 2), -2), draw.real(4, 2), draw.ints(0, 3, 4, 2)


@function(out=True, settles=True)
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Pick values along `dim`: for dim=0 of two, out[i][j] = input[index[i][j]][j].

    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    dim = one_dim(dim, input._array.ndim)
    # the op looks at the places, but inside `vmap` it does not know which dimension users see
    check_along("gather", input, dim, index, None, "input", stack.batches != 0)
    return Gather(dim, bool(sparse_grad)), (input, index)


@implements("gather")
def _gather_word(x: Any, axis: int, index: Any) -> Any:
    return apply(Gather(from_end(axis, x.ndim)), x, index)


@implements("ungather")
def _ungather_word(g: Any, shape: tuple[int, ...], axis: int, index: Any) -> Any:
    return apply(Ungather(shape, from_end(axis, len(shape))), g, index)
