"""`scatter` and `scatter_add`: the reverse of `gather`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, from_end, one_dim, raw_dtype
from rushlight.ops.creation.fill import number_for
from rushlight.ops.each_member import batch_leading
from rushlight.ops.indexing import family
from rushlight.ops.indexing.family import Along, Scattering, flat_or_not, narrow_to_index, or_zeros
from rushlight.ops.indexing.gather import gather_any_rank
from rushlight.ops.indexing.scatter_reduce import ScatterReduce
from rushlight.ops.numbers import Number, Operand
from rushlight.ops.registry import implements, op
from rushlight.ops.sample_inputs import Draw


def _same_rank(x: Any, index: Any, *source: Any) -> tuple[Any, ...]:
    """`x`, index and source for writing in place, 0-d as 1-d views."""
    if index.size == 0:
        flat = v.reshape(index, (0,))
        return (v.window(v.reshape(x, (-1,)), slice(0, 0)) if x.ndim == 0 else x, flat, *source)
    if x.ndim == index.ndim and x.ndim:
        return (x, index, *source)
    rest = [v.reshape(s, (-1,)) if hasattr(s, "shape") else s for s in source]
    return (v.window(x, None) if not x.ndim else x, v.reshape(index, (-1,)), *rest)


@op
class Scatter(Scattering):
    """self[index[i][j]][j] = src[i][j], for `dim` = 0 of two."""

    name = "scatter"
    aten = "scatter.src"
    saved_names = "dim"
    shown_edges = (0, 2)
    vmap_rule = batch_leading

    def forward(self, x: Any, index: Any, src: Any) -> Any:
        return flat_or_not(v.scatter, x, self.dim, index, src)

    def store(self, x: Any, index: Any, src: Any) -> None:
        if index.size:
            x, index, src = _same_rank(x, index, src)
            v.store_along(x, self.dim, index, src)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        hole = flat_or_not(v.scatter, g, self.dim, index, 0) if node._needs_grad(0) else None
        return hole, None, (gather_any_rank(g, self.dim, index) if node._needs_grad(2) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = or_zeros(ts[0], y)
        return self.forward(t, xs[1], 0 if ts[2] is None else ts[2])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Scatter(-1), draw.real(2, 4), draw.permutation(4)[None, :3], draw.real(1, 3)
        yield Scatter(-1), draw.complex(3), draw.permutation(3)[:2], draw.complex(2)


@op
class ScatterValue(Along):
    """`Scatter` of one number."""

    name, node, params = "scatter_value", "ScatterBackward1", ("dim", "value")
    aten = "scatter.value"
    saved_names = "dim"
    shown_edges = (0,)
    value: Any
    inputs, saves = ("self", "index"), ("index",)
    vmap_rule = batch_leading
    complex_too = True

    def forward(self, x: Any, index: Any) -> Any:
        return flat_or_not(v.scatter, x, self.dim, index, self.value)

    def store(self, x: Any, index: Any) -> None:
        if index.size:
            x, index = _same_rank(x, index)
            v.store_along(x, self.dim, index, self.value)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return flat_or_not(v.scatter, g, self.dim, index, 0), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return flat_or_not(v.scatter, ts[0], self.dim, xs[1], 0)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ScatterValue(-2, 2.0), draw.real(3, 2), draw.ints(0, 3, 2, 2)
        yield ScatterValue(-1, 2.0), draw.real(), draw.ints(0, 1)


@op
class ScatterAdd(Scattering):
    """self[index[i][j]][j] += src[i][j], for `dim` = 0 of two."""

    name = "scatter_add"
    saved_names = "dim"
    shown_edges = (0, 2)
    vmap_rule = batch_leading

    def forward(self, x: Any, index: Any, src: Any) -> Any:
        return flat_or_not(v.scatter_add, x, self.dim, index, src)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return g, None, (gather_any_rank(g, self.dim, index) if node._needs_grad(2) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = or_zeros(ts[0], y)
        return t if ts[2] is None else self.forward(t, xs[1], ts[2])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ScatterAdd(-2), draw.real(3, 2), draw.ints(0, 3, 4, 2), draw.real(4, 2)
        yield ScatterAdd(-1), draw.real(3, 2), draw.ints(0, 2, 2, 3), draw.real(2, 3)
        yield ScatterAdd(-1), draw.complex(3), draw.ints(0, 3, 2), draw.complex(2)
        yield ScatterAdd(-1), draw.real(), draw.ints(0, 1), draw.real()


_REDUCE_NAMES: Final = {"add": "sum", "multiply": "prod"}


@family.scattering()
def scatter(
    input: Any, dim: int, index: Any, src: Operand | None = None, *, reduce: str | None = None,
    value: Number | None = None,
) -> Any:  # fmt: skip
    """Write `src`, a tensor or a number, at `index` along `dim`: the reverse of `gather`.

    Args:
        reduce: 'add' or 'multiply' to what is there, instead of writing over it.

    >>> torch.zeros(2, 3).scatter(1, torch.tensor([[0], [2]]), 1.)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    dim = one_dim(dim, input._array.ndim)
    if src is None:
        src = value
    tensor = isinstance(src, TensorBase)
    if not tensor and not isinstance(src, (bool, int, float, complex)):
        raise TypeError(
            "scatter(): argument 'src' (position 3) must be Tensor or Number, not "
            f"{dtypes.type_name(src)}"
        )
    family.check_along("scatter", input, dim, index, src if tensor else None, "self")
    if reduce is not None:
        if reduce not in _REDUCE_NAMES:
            raise RuntimeError("reduce argument must be either add or multiply.")
        if not tensor:
            number = number_for(src, input._array.dtype)
            sizes = index._array.shape
            src = apply(ScatterFull(sizes, number), input)
        what = ScatterReduce(dim, _REDUCE_NAMES[reduce], True)
        return what, (input, index, narrow_to_index(src, index))
    if tensor:
        return Scatter(dim), (input, index, narrow_to_index(src, index))
    return ScatterValue(dim, number_for(src, input._array.dtype)), (input, index)


class ScatterFull(Op):
    """One number in a shape and the dtype of the input, for `scatter(…, number, reduce=…)`."""

    name, params, differentiable = "scatter_full", ("shape", "value"), False
    aten = None
    shape: tuple[int, ...]
    value: Any

    def forward(self, x: Any) -> Any:
        return v.full(x, self.shape, self.value, raw_dtype(x))


@family.scattering()
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Add `src` at `index` along `dim`; places named several times receive every addend.

    >>> torch.zeros(3).scatter_add(0, torch.tensor([0, 0, 2]), torch.tensor([1., 2., 3.]))
    tensor([3., 0., 3.])
    """
    check_tensor(input, "scatter_add")
    check_tensor(src, "scatter_add", "src", 3)
    dim = one_dim(dim, input._array.ndim)
    family.check_along("scatter", input, dim, index, src, "self")
    return ScatterAdd(dim), (input, index, narrow_to_index(src, index))


@implements("scatter")
def _scatter_word(x: Any, axis: int, index: Any, source: Any) -> Any:
    dim = from_end(axis, x.ndim)
    if hasattr(source, "shape"):
        return apply(Scatter(dim), x, index, source)
    return apply(ScatterValue(dim, source), x, index)


@implements("scatter_add")
def _scatter_add_word(x: Any, axis: int, index: Any, source: Any) -> Any:
    return apply(ScatterAdd(from_end(axis, x.ndim)), x, index, source)
