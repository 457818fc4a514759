"""`scatter_reduce` and `index_reduce`: values sent to the same place are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, from_end, not_implemented, one_dim, raw_dtype
from rushlight.ops.indexing.family import (
    Scattering,
    check_along,
    flat_or_not,
    narrow_to_index,
    scattering,
)
from rushlight.ops.indexing.gather import gather_any_rank
from rushlight.ops.indexing.index_select import check_source
from rushlight.ops.operands import zeros
from rushlight.ops.registry import implements, op
from rushlight.ops.sample_inputs import Draw


@op
class ScatterReduce(Scattering):
    """Each place of `self` joined with the values of `src` that `index` sends there.

    Both derivatives are weights: dy = own · dself + Σ theirs · dsrc; `weights` finds them.
    """

    name, params = "scatter_reduce", ("dim", "reduce", "include_self")
    aten = "scatter_reduce.two"
    shown_edges = (0, 2)
    reduce: str
    include_self: bool
    saves = ("self", "index", "src", "result")

    def spread(self, index: Any, src: Any) -> Any:
        """The index in the shape of `src`."""
        return index

    def forward(self, x: Any, index: Any, src: Any) -> Any:
        index = self.spread(index, src)
        how = "sum" if self.reduce == "mean" else self.reduce
        y = flat_or_not(_join(how, self.include_self), x, self.dim, index, src)
        if self.reduce == "mean":
            count = self.counts(x, index)
            if raw_dtype(x).kind in "iub":
                return v.cast(v.floor_divide(y, count), raw_dtype(x))
            return y / count
        return y

    def counts(self, x: Any, index: Any) -> Any:
        """How many values each place joins, at least 1."""
        dtype = raw_dtype(x)
        start = v.full(x, x.shape, 1 if self.include_self else 0, dtype)
        ones = v.full(x, index.shape, 1, dtype)
        count = flat_or_not(v.scatter_add, start, self.dim, index, ones)
        return v.where(v.equal(count, 0), 1, count)

    def weights(self, x: Any, index: Any, src: Any, y: Any) -> tuple[Any, Any]:
        """The derivative of each result by its own old value, and by each source."""
        dim = self.dim
        own: Any
        theirs: Any
        if self.reduce == "sum":
            own, theirs = v.full(x, x.shape, 1, raw_dtype(x)), None
        elif self.reduce == "mean":
            own = 1 / self.counts(x, index)
            theirs = gather_any_rank(own, dim, index)
        elif self.reduce == "prod":
            own, theirs = self.other_factors(x, index, src, y)
        else:
            is_own = v.cast(v.equal(x, y), raw_dtype(x))
            is_theirs = v.cast(v.equal(src, gather_any_rank(y, dim, index)), raw_dtype(x))
            ties = flat_or_not(v.scatter_add, is_own, dim, index, is_theirs)
            ties = v.where(v.equal(ties, 0), 1, ties)
            own = is_own / ties
            theirs = is_theirs / gather_any_rank(ties, dim, index)
        if not self.include_self:
            own = flat_or_not(v.scatter, own, dim, index, 0)
        return own, theirs

    def other_factors(self, x: Any, index: Any, src: Any, y: Any) -> tuple[Any, Any]:
        """The product without one factor, for each factor, zeros among them."""
        dim = self.dim
        product = _join("prod", self.include_self)
        sure = v.where(v.equal(x, 0), 1, x)
        own = flat_or_not(product, sure, dim, index, src) / sure
        zero = v.equal(src, 0)
        count = flat_or_not(v.scatter_add, zeros(x), dim, index, v.cast(zero, raw_dtype(x)))
        single = v.logical_and(zero, v.equal(gather_any_rank(count, dim, index), 1))
        without = flat_or_not(product, x, dim, index, v.where(single, 1, src))
        theirs = v.where(
            single,
            gather_any_rank(without, dim, index),
            gather_any_rank(y, dim, index) / v.where(zero, 1, src),
        )
        return own, theirs

    def vjp(self, node: Node, g: Any, x: Any, index: Any, src: Any, y: Any) -> Any:
        index = self.spread(index, src)
        own, theirs = self.weights(x, index, src, y)
        part = gather_any_rank(g, self.dim, index)
        return g * conj(own), None, (part if theirs is None else part * conj(theirs))

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, index, src = xs
        index = self.spread(index, src)
        own, theirs = self.weights(x, index, src, y)
        t = zeros(y) if ts[0] is None else ts[0] * own
        if ts[2] is None:
            return t
        part = ts[2] if theirs is None else ts[2] * theirs
        return flat_or_not(v.scatter_add, t, self.dim, index, part)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            for include in (True, False):
                what = ScatterReduce(-2, reduce, include)
                yield what, draw.real(3, 2), draw.ints(0, 3, 4, 2), draw.real(4, 2)
        for reduce in ("sum", "prod", "mean"):
            what = ScatterReduce(-2, reduce, True)
            yield what, draw.complex(3, 2), draw.ints(0, 3, 4, 2), draw.complex(4, 2)


def _join(how: str, include: bool) -> Callable[..., Any]:
    def join(x: Any, dim: int, index: Any, src: Any) -> Any:
        return v.reduce_along(x, dim, index, src, how, include)

    return join


@implements("reduce_along")
def _reduce_along(x: Any, axis: int, index: Any, source: Any, how: str, include: bool) -> Any:
    dim = from_end(axis, x.ndim)
    return apply(ScatterReduce(dim, how, include), x, index, source)


@scattering()
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Join the values of `src` sent to each place: reduce is "sum", "prod", "mean", "amax" or
    "amin".

    Args:
        reduce: how what meets is joined: 'sum', 'prod', 'mean', 'amax' or 'amin'.

    >>> index = torch.tensor([0, 0, 1])
    >>> torch.ones(2).scatter_reduce(0, index, torch.tensor([5., 7., 3.]), "amax")
    tensor([7., 3.])
    """
    check_tensor(input, "scatter_reduce")
    check_tensor(src, "scatter_reduce", "src", 3)
    dim = one_dim(dim, input._array.ndim)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if is_complex(input) and reduce in ("amax", "amin"):
        kind = dtypes.of(input._array.dtype)
        raise not_implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", kind)
    check_along("scatter", input, dim, index, src, "self")
    return ScatterReduce(dim, reduce, include_self), (input, index, narrow_to_index(src, index))


@op
class IndexReduce(ScatterReduce):
    """`ScatterReduce` with a vector of places along `dim`."""

    name = "index_reduce"
    aten = "index_reduce.default"
    inputs, saves = ("self", "index", "source"), ("self", "index", "source", "result")

    def spread(self, index: Any, src: Any) -> Any:
        if not src.ndim:
            return v.reshape(index, ())
        return v.broadcast(v.reshape(index, (-1, *[1] * (-self.dim - 1))), src.shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduce in ("prod", "mean", "amax", "amin"):
            yield (
                IndexReduce(-2, reduce, True),
                draw.real(3, 2),
                draw.ints(0, 3, 4),
                draw.real(4, 2),
            )
        yield IndexReduce(-1, "amax", False), draw.real(3), draw.ints(0, 3, 2), draw.real(2)


@scattering()
def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Join the slices of `source` with those of `input` that `index` names: reduce is "prod",
    "mean", "amax" or "amin".

    Args:
        reduce: how what meets is joined: 'prod', 'mean', 'amax' or 'amin'.

    >>> torch.ones(2).index_reduce(0, torch.tensor([0, 0]), torch.tensor([2., 5.]), "prod")
    tensor([10.,  1.])
    """
    dim = one_dim(dim, input._array.ndim)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    if is_complex(input):
        kind = dtypes.of(input._array.dtype)
        name = "index_func_" if include_self else "index_reduce_func_exclude_input_init"
        raise not_implemented(name, kind)
    check_source("index_reduce", input, dim, index, source)
    return IndexReduce(dim, reduce, include_self), (input, index, source)
