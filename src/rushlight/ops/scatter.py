"""Gathering and scattering along one dimension: `gather`, `scatter*`, `index_*`.

Op files may import this. `gather` and `scatter` have an index of the tensor's rank, which names
places along one dimension; `index_select`, `index_add` and the like have a vector of places.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import has_values
from rushlight.arrays.vocabulary import SLOT
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import apply
from rushlight.core.views import look_at
from rushlight.ops.arguments import expect_tensor, one_dim
from rushlight.ops.index import IndexPut, checked_index, checked_values, index_put_into, run_indexed
from rushlight.ops.run import run_inplace
from rushlight.ops.samples import Draw
from rushlight.ops.table import function, op, public, word_for
from rushlight.ops.view import Slice
from rushlight.ops.write import edges, number_for, raw_dtype, same_device, write_directly

__all__ = [
    "Gather", "IndexAdd", "IndexCopy", "IndexFill", "IndexFillWith", "IndexReduce", "IndexSelect",
    "Scatter", "ScatterAdd", "ScatterReduce", "ScatterValue", "Ungather", "check_bounds",
    "scattering",
]  # fmt: skip

_ALL: Final = slice(None)


# --- what the functions share ---------------------------------------------------------------------
def scattering(
    *, out: bool = True
) -> Callable[[Callable[..., tuple[Any, tuple[Any, ...]]]], Callable[..., Any]]:
    """Export a function that says which op to apply: as itself, and as the method `name_`, which
    writes with the op's `store`."""

    def register_it(fn: Callable[..., tuple[Any, tuple[Any, ...]]]) -> Callable[..., Any]:
        title = fn.__name__

        @functools.wraps(fn)
        def write(*args: Any, **kwargs: Any) -> Any:
            what, xs = fn(*args, **kwargs)
            if "self" in what.saves:  # its rule reads the old value: a copy of it is kept
                return run_inplace(what, xs)
            return write_directly(what, xs[0], xs[1:], what.store, what.overlap)

        write.__name__ = write.__qualname__ = title + "_"
        write.__doc__ = f"{title}_(...) -> Tensor\n\nIn-place version of `{title}`."
        write.__annotations__ = {**fn.__annotations__, "return": "Tensor"}
        function(name=title + "_", free=False)(write)
        return public(out=out)(fn)

    return register_it


def along(dim: int) -> tuple[Any, ...]:
    """The pattern of an index array at a (negative) dimension; see Note [Slots] in `index`."""
    return (..., SLOT, *[_ALL] * (-dim - 1))


def check_bounds(
    index: Any, size: int, text: str, error: type[Exception], negative: bool = False
) -> None:
    """Raise `error(text)` for the first index that is not in range. `text` has fields {i}, {n}.

    What is merely the record of an array is not looked at.
    """
    if not has_values(index) or index.size == 0:
        return
    low, high = int(index.min()), int(index.max())
    least = -size if negative else 0
    if low < least or high >= size:
        wrong = v.logical_or(index < least, index >= size).reshape(-1)
        first = int(index.reshape(-1)[int(v.argmax(wrong, 0, False))])
        raise error(text.format(i=first, n=size))


def _zeros(x: Any) -> Any:
    return v.full(x, x.shape, 0, raw_dtype(x))


def _scalar_type(x: TensorBase) -> str:
    return dtypes.of(x.array.dtype).scalar_type


# --- gather ---------------------------------------------------------------------------------------
def _gather(x: Any, dim: int, index: Any) -> Any:
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


class Along(Op):
    """An op with an index along `dim`."""

    params: ClassVar[tuple[str, ...]] = ("dim",)
    overlap: ClassVar[bool] = True  # whether in-place forms refuse a target that overlaps itself

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


@edges(0)
@op
class Gather(Along):
    """out[i][j] = self[index[i][j]][j], for `dim` = 0 of two."""

    name = "gather"
    inputs, saves = ("self", "index"), ("index",)

    def forward(self, x: Any, index: Any) -> Any:
        return _gather(x, self.dim, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        assert node.shapes is not None
        return _ungather(g, node.shapes[0], self.dim, index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return _gather(ts[0], self.dim, xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Gather(-2), draw.real(3, 2), draw.ints(0, 3, 4, 2)
        yield Gather(-1), draw.real(3, 4), draw.ints(0, 4, 2, 5)
        yield Gather(-1), draw.complex(3), draw.ints(0, 3, 2)
        yield Gather(-1), draw.real(), draw.ints(0, 1)
        yield Gather(-1), draw.real(3), draw.ints(0, 3, 0)


@edges(0)
@op
class Ungather(Along):
    """The adjoint of `Gather`: zeros of `shape`, with the input added where it came from."""

    name, params = "gather_backward", ("shape", "dim")
    inputs, saves = ("self", "index"), ("index",)

    def __init__(self, shape: tuple[int, ...], dim: int) -> None:
        super().__init__(dim)
        self.shape = shape

    def forward(self, g: Any, index: Any) -> Any:
        return v.ungather(g, self.shape, self.dim, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return v.gather(g, self.dim, index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.ungather(ts[0], self.shape, self.dim, xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Ungather((3, 2), -2), draw.real(4, 2), draw.ints(0, 3, 4, 2)


def _check_along(name: str, x: Any, dim: int, index: Any, src: Any, what: str) -> None:
    """The checks of `gather` and `scatter*` (`what` is PyTorch's name for the tensor)."""
    expect_tensor(index, name, "index", 3)
    ix = index.array
    if not ix.size:
        return
    if ix.dtype != dtypes.int64.numpy and ix.dtype != dtypes.int32.numpy:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if src is not None and src.array.dtype != x.array.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    shape, sizes = x.array.shape, ix.shape
    if max(len(shape), 1) != max(len(sizes), 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {what} tensor")
    if src is not None and max(src.array.ndim, 1) != max(len(sizes), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    axis = dim % max(len(shape), 1)
    pairs = list(zip(sizes, shape, strict=False))
    for d, (a, b) in enumerate(pairs):
        if d != axis and a > b:
            if name == "gather":
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(sizes)} to be no "
                    f"larger than self {list(shape)} apart from dimension {axis}"
                )
            break
    else:
        if src is None or all(a <= b for a, b in zip(sizes, src.array.shape, strict=False)):
            size = shape[axis] if shape else 1
            text = f"index {{i}} is out of bounds for dimension {axis} with size {{n}}"
            check_bounds(ix, size, text, RuntimeError)
            return
    text = f"Expected index {list(sizes)} to be no larger than self {list(shape)} apart from "
    text += f"dimension {axis}"
    if src is not None:
        text += f" and to be no larger size than src {list(src.array.shape)}"
    raise RuntimeError(text)


@public()
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """gather(input, dim, index, *, sparse_grad=False, out=None) -> Tensor

    Pick values along `dim`: for dim=0 of two, out[i][j] = input[index[i][j]][j].

    >>> import rushlight as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    expect_tensor(input, "gather")
    dim = one_dim(dim, input.array.ndim)
    _check_along("gather", input, dim, index, None, "input")
    return Gather(dim), (input, index)


@word_for("gather")
def _gather_word(x: Any, axis: int, index: Any) -> Any:
    return apply(Gather(axis - x.ndim if axis >= 0 else axis), x, index)


@word_for("ungather")
def _ungather_word(g: Any, shape: tuple[int, ...], axis: int, index: Any) -> Any:
    return apply(Ungather(shape, axis - len(shape) if axis >= 0 else axis), g, index)


# --- scatter --------------------------------------------------------------------------------------
def _flat_or_not(fn: Any, x: Any, dim: int, index: Any, *source: Any) -> Any:
    """`fn(x, dim, index, *source)` where ranks may differ: a 0-d tensor, 0-d or empty index."""
    if x.ndim == index.ndim and x.ndim:
        return fn(x, dim, index, *source)
    flat = [v.reshape(s, (-1,)) if hasattr(s, "shape") else s for s in source]
    if 0 in index.shape:
        flat = [v.window(s, slice(0, 0)) if hasattr(s, "shape") else s for s in flat]
    y = fn(v.reshape(x, (-1,)), -1, v.reshape(index, (-1,)), *flat)
    return v.reshape(y, x.shape)


def _same_rank(x: Any, index: Any, *source: Any) -> tuple[Any, ...]:
    """`x`, index and source for writing in place, 0-d as 1-d views."""
    if index.size == 0:
        flat = v.reshape(index, (0,))
        return (v.window(v.reshape(x, (-1,)), slice(0, 0)) if x.ndim == 0 else x, flat, *source)
    if x.ndim == index.ndim and x.ndim:
        return (x, index, *source)
    rest = [v.reshape(s, (-1,)) if hasattr(s, "shape") else s for s in source]
    return (v.window(x, None) if not x.ndim else x, v.reshape(index, (-1,)), *rest)


class Scattering(Along):
    """Self with something written at an index along `dim`: `source` at the places of `index`."""

    inputs, saves = ("self", "index", "src"), ("index",)


@edges(0, 2)
@op
class Scatter(Scattering):
    """self[index[i][j]][j] = src[i][j], for `dim` = 0 of two."""

    name = "scatter"

    def forward(self, x: Any, index: Any, src: Any) -> Any:
        return _flat_or_not(v.scatter, x, self.dim, index, src)

    def store(self, x: Any, index: Any, src: Any) -> None:
        if index.size:
            x, index, src = _same_rank(x, index, src)
            v.store_along(x, self.dim, index, src)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        hole = _flat_or_not(v.scatter, g, self.dim, index, 0) if node.needs(0) else None
        return hole, None, (_gather(g, self.dim, index) if node.needs(2) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = _zeros(y) if ts[0] is None else ts[0]
        return self.forward(t, xs[1], 0 if ts[2] is None else ts[2])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Scatter(-1), draw.real(2, 4), draw.permutation(4)[None, :3], draw.real(1, 3)
        yield Scatter(-1), draw.complex(3), draw.permutation(3)[:2], draw.complex(2)


@edges(0)
@op
class ScatterValue(Along):
    """`Scatter` of one number."""

    name, node, params = "scatter_value", "ScatterBackward1", ("dim", "value")
    inputs, saves = ("self", "index"), ("index",)

    def __init__(self, dim: int, value: Any) -> None:
        super().__init__(dim)
        self.value = value

    def forward(self, x: Any, index: Any) -> Any:
        return _flat_or_not(v.scatter, x, self.dim, index, self.value)

    def store(self, x: Any, index: Any) -> None:
        if index.size:
            x, index = _same_rank(x, index)
            v.store_along(x, self.dim, index, self.value)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return _flat_or_not(v.scatter, g, self.dim, index, 0), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return _flat_or_not(v.scatter, ts[0], self.dim, xs[1], 0)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ScatterValue(-2, 2.0), draw.real(3, 2), draw.ints(0, 3, 2, 2)
        yield ScatterValue(-1, 2.0), draw.real(), draw.ints(0, 1)


@edges(0, 2)
@op
class ScatterAdd(Scattering):
    """self[index[i][j]][j] += src[i][j], for `dim` = 0 of two."""

    name = "scatter_add"

    def forward(self, x: Any, index: Any, src: Any) -> Any:
        return _flat_or_not(v.scatter_add, x, self.dim, index, src)

    def store(self, x: Any, index: Any, src: Any) -> None:
        v.overwrite(x, self.forward(x, index, src))

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return g, None, (_gather(g, self.dim, index) if node.needs(2) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = _zeros(y) if ts[0] is None else ts[0]
        return t if ts[2] is None else self.forward(t, xs[1], ts[2])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ScatterAdd(-2), draw.real(3, 2), draw.ints(0, 3, 4, 2), draw.real(4, 2)
        yield ScatterAdd(-1), draw.real(3, 2), draw.ints(0, 2, 2, 3), draw.real(2, 3)
        yield ScatterAdd(-1), draw.complex(3), draw.ints(0, 3, 2), draw.complex(2)
        yield ScatterAdd(-1), draw.real(), draw.ints(0, 1), draw.real()


def _cut(src: Any, index: Any) -> Any:
    """The part of `src` that an index of smaller shape reads, as a view."""
    sizes = index.array.shape
    for d, n in enumerate(sizes):
        if d < src.array.ndim and src.array.shape[d] != n:
            src = look_at(Slice(d - src.array.ndim, 0, n), src)
    return src


_REDUCE_NAMES: Final = {"add": "sum", "multiply": "prod"}


@scattering()
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, reduce: str | None = None,
    value: Any = None,
) -> Any:  # fmt: skip
    """scatter(input, dim, index, src, *, reduce=None, out=None) -> Tensor

    Write `src`, a tensor or a number, at `index` along `dim`: the reverse of `gather`.

    >>> import rushlight as torch
    >>> torch.zeros(2, 3).scatter(1, torch.tensor([[0], [2]]), 1.)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    expect_tensor(input, "scatter")
    dim = one_dim(dim, input.array.ndim)
    if src is None:
        src = value
    tensor = isinstance(src, TensorBase)
    if not tensor and not isinstance(src, (bool, int, float, complex)):
        raise TypeError(
            "scatter(): argument 'src' (position 3) must be Tensor or Number, not "
            f"{dtypes.type_name(src)}"
        )
    _check_along("scatter", input, dim, index, src if tensor else None, "self")
    if reduce is not None:
        if reduce not in _REDUCE_NAMES:
            raise RuntimeError("reduce argument must be either add or multiply.")
        if not tensor:
            number = number_for(src, input.array.dtype)
            sizes = index.array.shape
            src = apply(ScatterFull(sizes, number), input)
        what = ScatterReduce(dim, _REDUCE_NAMES[reduce], True)
        return what, (input, index, _cut(src, index))
    if tensor:
        return Scatter(dim), (input, index, _cut(src, index))
    return ScatterValue(dim, number_for(src, input.array.dtype)), (input, index)


class ScatterFull(Op):
    """One number in a shape and the dtype of the input, for `scatter(…, number, reduce=…)`."""

    name, params, differentiable = "scatter_full", ("shape", "value"), False

    def __init__(self, shape: tuple[int, ...], value: Any) -> None:
        super().__init__()
        self.shape = shape
        self.value = value

    def forward(self, x: Any) -> Any:
        return v.full(x, self.shape, self.value, raw_dtype(x))


@scattering()
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """scatter_add(input, dim, index, src, *, out=None) -> Tensor

    Add `src` at `index` along `dim`; places named several times receive every addend.

    >>> import rushlight as torch
    >>> torch.zeros(3).scatter_add(0, torch.tensor([0, 0, 2]), torch.tensor([1., 2., 3.]))
    tensor([3., 0., 3.])
    """
    expect_tensor(input, "scatter_add")
    expect_tensor(src, "scatter_add", "src", 3)
    dim = one_dim(dim, input.array.ndim)
    _check_along("scatter", input, dim, index, src, "self")
    return ScatterAdd(dim), (input, index, _cut(src, index))


@word_for("scatter")
def _scatter_word(x: Any, axis: int, index: Any, source: Any) -> Any:
    dim = axis - x.ndim if axis >= 0 else axis
    if hasattr(source, "shape"):
        return apply(Scatter(dim), x, index, source)
    return apply(ScatterValue(dim, source), x, index)


@word_for("scatter_add")
def _scatter_add_word(x: Any, axis: int, index: Any, source: Any) -> Any:
    return apply(ScatterAdd(axis - x.ndim if axis >= 0 else axis), x, index, source)


# --- scatter_reduce -------------------------------------------------------------------------------
@edges(0, 2)
@op
class ScatterReduce(Op):
    """Each place of `self` joined with the values of `src` that `index` sends there.

    Both derivatives are weights: dy = own · dself + Σ theirs · dsrc; `weights` finds them.
    """

    name, params = "scatter_reduce", ("dim", "reduce", "include_self")
    inputs, saves = ("self", "index", "src"), ("self", "index", "src", "result")
    overlap: ClassVar[bool] = True

    def __init__(self, dim: int, reduce: str, include_self: bool) -> None:
        super().__init__()
        self.dim = dim
        self.reduce = reduce
        self.include_self = include_self

    def spread(self, index: Any, src: Any) -> Any:
        """The index in the shape of `src`."""
        return index

    def forward(self, x: Any, index: Any, src: Any) -> Any:
        index = self.spread(index, src)
        how = "sum" if self.reduce == "mean" else self.reduce
        y = _flat_or_not(_joined(how, self.include_self), x, self.dim, index, src)
        if self.reduce == "mean":
            count = self.counts(x, index)
            if raw_dtype(x).kind in "iub":
                return v.cast(v.floor_divide(y, count), raw_dtype(x))
            return y / count
        return y

    def store(self, x: Any, index: Any, src: Any) -> None:
        v.overwrite(x, self.forward(x, index, src))

    def counts(self, x: Any, index: Any) -> Any:
        """How many values each place joins, at least 1."""
        dtype = raw_dtype(x)
        start = v.full(x, x.shape, 1 if self.include_self else 0, dtype)
        ones = v.full(x, index.shape, 1, dtype)
        count = _flat_or_not(v.scatter_add, start, self.dim, index, ones)
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
            theirs = _gather(own, dim, index)
        elif self.reduce == "prod":
            own, theirs = self.other_factors(x, index, src, y)
        else:
            is_own = v.cast(v.equal(x, y), raw_dtype(x))
            is_theirs = v.cast(v.equal(src, _gather(y, dim, index)), raw_dtype(x))
            ties = _flat_or_not(v.scatter_add, is_own, dim, index, is_theirs)
            ties = v.where(v.equal(ties, 0), 1, ties)
            own = is_own / ties
            theirs = is_theirs / _gather(ties, dim, index)
        if not self.include_self:
            own = _flat_or_not(v.scatter, own, dim, index, 0)
        return own, theirs

    def other_factors(self, x: Any, index: Any, src: Any, y: Any) -> tuple[Any, Any]:
        """The product without one factor, for each factor, zeros among them."""
        dim = self.dim
        product = _joined("prod", self.include_self)
        sure = v.where(v.equal(x, 0), 1, x)
        own = _flat_or_not(product, sure, dim, index, src) / sure
        zero = v.equal(src, 0)
        count = _flat_or_not(v.scatter_add, _zeros(x), dim, index, v.cast(zero, raw_dtype(x)))
        single = v.logical_and(zero, v.equal(_gather(count, dim, index), 1))
        without = _flat_or_not(product, x, dim, index, v.where(single, 1, src))
        theirs = v.where(
            single,
            _gather(without, dim, index),
            _gather(y, dim, index) / v.where(zero, 1, src),
        )
        return own, theirs

    def vjp(self, node: Node, g: Any, x: Any, index: Any, src: Any, y: Any) -> Any:
        index = self.spread(index, src)
        own, theirs = self.weights(x, index, src, y)
        part = _gather(g, self.dim, index)
        return g * own, None, (part if theirs is None else part * theirs)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, index, src = xs
        index = self.spread(index, src)
        own, theirs = self.weights(x, index, src, y)
        t = _zeros(y) if ts[0] is None else ts[0] * own
        if ts[2] is None:
            return t
        part = ts[2] if theirs is None else ts[2] * theirs
        return _flat_or_not(v.scatter_add, t, self.dim, index, part)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            for include in (True, False):
                what = ScatterReduce(-2, reduce, include)
                yield what, draw.real(3, 2), draw.ints(0, 3, 4, 2), draw.real(4, 2)


def _joined(how: str, include: bool) -> Callable[..., Any]:
    def join(x: Any, dim: int, index: Any, src: Any) -> Any:
        return v.reduce_along(x, dim, index, src, how, include)

    return join


@word_for("reduce_along")
def _reduce_along(x: Any, axis: int, index: Any, source: Any, how: str, include: bool) -> Any:
    dim = axis - x.ndim if axis >= 0 else axis
    return apply(ScatterReduce(dim, how, include), x, index, source)


@scattering()
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None) -> Tensor

    Join the values of `src` sent to each place: reduce is "sum", "prod", "mean", "amax" or "amin".

    >>> import rushlight as torch
    >>> index = torch.tensor([0, 0, 1])
    >>> torch.ones(2).scatter_reduce(0, index, torch.tensor([5., 7., 3.]), "amax")
    tensor([7., 3.])
    """
    expect_tensor(input, "scatter_reduce")
    expect_tensor(src, "scatter_reduce", "src", 3)
    dim = one_dim(dim, input.array.ndim)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    _check_along("scatter", input, dim, index, src, "self")
    return ScatterReduce(dim, reduce, include_self), (input, index, _cut(src, index))


@edges(0, 2)
@op
class IndexReduce(ScatterReduce):
    """`ScatterReduce` with a vector of places along `dim`."""

    name = "index_reduce"
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
    """index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None) -> Tensor

    Join the slices of `source` with those of `input` that `index` names: reduce is "prod", "mean",
    "amax" or "amin".

    >>> import rushlight as torch
    >>> torch.ones(2).index_reduce(0, torch.tensor([0, 0]), torch.tensor([2., 5.]), "prod")
    tensor([10.,  1.])
    """
    expect_tensor(input, "index_reduce")
    dim = one_dim(dim, input.array.ndim)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    _check_source("index_reduce", input, dim, index, source)
    return IndexReduce(dim, reduce, include_self), (input, index, source)


# --- index_select, index_add, index_copy, index_fill ----------------------------------------------
def _check_vector(x: Any, dim: int, index: Any, error: type[Exception], text: str) -> None:
    """The places of an index vector are in range: no negative ones."""
    size = x.array.shape[dim] if x.array.ndim else 1
    axis = dim % max(x.array.ndim, 1)
    check_bounds(index.array, size, text.replace("{axis}", str(axis)), error)


class Vector(Along):
    """An op with a vector of places along `dim`; a 0-d tensor counts as one place."""

    def pick(self, x: Any, index: Any) -> Any:
        """The slices of `x` at the places."""
        index = v.reshape(index, (-1,))
        if not x.ndim:
            return v.reshape(v.pick(v.reshape(x, (1,)), (SLOT,), index), ())
        return v.pick(x, along(self.dim), index)

    def put(self, x: Any, value: Any, index: Any, add: bool = False) -> Any:
        """`x` with `value` at the places."""
        fn = v.place_add if add else v.place
        index = v.reshape(index, (-1,))
        if not x.ndim:
            return v.reshape(fn(v.reshape(x, (1,)), self.slices(value, x), (SLOT,), index), ())
        return fn(x, self.slices(value, x), along(self.dim), index)

    def write(self, x: Any, value: Any, index: Any, add: bool = False) -> None:
        """`put` in place."""
        fn = v.store_add if add else v.store
        index = v.reshape(index, (-1,))
        x = x if x.ndim else v.reshape(x, (1,))
        fn(x, self.slices(value, x), along(self.dim), index)

    def slices(self, value: Any, x: Any) -> Any:
        """`value` with its dimension of places, which 0-d sources lack."""
        if hasattr(value, "shape") and not value.ndim:
            return v.reshape(value, (1,))
        return value


@edges(0)
@op
class IndexSelect(Vector):
    """The slices of `self` at the places of `index`."""

    name = "index_select"
    inputs, saves = ("self", "index"), ("index",)

    def forward(self, x: Any, index: Any) -> Any:
        return self.pick(x, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        assert node.shapes is not None
        shape = node.shapes[0]
        index = v.reshape(index, (-1,))
        if not shape:
            return v.reshape(v.unpick(v.reshape(g, (1,)), (1,), (SLOT,), index), ()), None
        return v.unpick(g, shape, along(self.dim), index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.pick(ts[0], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexSelect(-1), draw.real(2, 3), draw.ints(0, 3, 4)
        yield IndexSelect(-2), draw.complex(3, 2), draw.ints(0, 3, 2)
        yield IndexSelect(-1), draw.real(), draw.ints(0, 1, 1)
        yield IndexSelect(-1), draw.real(3), draw.ints(0, 3, 0)


@public()
def index_select(input: Any, dim: int, index: Any) -> Any:
    """index_select(input, dim, index, *, out=None) -> Tensor

    The slices of `input` along `dim` at the places of the vector `index`.

    >>> import rushlight as torch
    >>> torch.index_select(torch.tensor([[1, 2, 3], [4, 5, 6]]), 1, torch.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    expect_tensor(input, "index_select")
    expect_tensor(index, "index_select", "index", 3)
    dim = one_dim(dim, input.array.ndim)
    array = index.array
    if array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if array.dtype != dtypes.int64.numpy and array.dtype != dtypes.int32.numpy:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.array.ndim and array.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {array.size} value(s)"
        )
    _check_vector(input, dim, index, IndexError, "index out of range in self")
    return IndexSelect(dim), (input, index)


@edges(0, 2)
@op
class IndexAdd(Vector):
    """`self` with alpha · `source` added to its slices at the places of `index`."""

    name, params = "index_add", ("dim", "alpha")
    inputs, saves = ("self", "index", "source"), ("index",)

    def __init__(self, dim: int, alpha: Any = 1) -> None:
        super().__init__(dim)
        self.alpha = alpha

    def scaled(self, source: Any) -> Any:
        if self.alpha == 1:
            return source
        return source * number_for(self.alpha, raw_dtype(source))  # -1 in uint8 is 255

    def forward(self, x: Any, index: Any, source: Any) -> Any:
        return self.put(x, self.scaled(source), index, add=True)

    def store(self, x: Any, index: Any, source: Any) -> None:
        self.write(x, self.scaled(source), index, add=True)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        if not node.needs(2):
            return g, None, None
        alpha = self.alpha.conjugate() if isinstance(self.alpha, complex) else self.alpha
        part = self.pick(g, index)
        return g, None, (part if alpha == 1 else part * alpha)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = _zeros(y) if ts[0] is None else ts[0]
        return t if ts[2] is None else self.forward(t, xs[1], ts[2])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexAdd(-2), draw.real(3, 2), draw.ints(0, 3, 4), draw.real(4, 2)
        yield IndexAdd(-1, 2.0), draw.real(2, 3), draw.ints(0, 3, 2), draw.real(2, 2)
        yield IndexAdd(-1, 1j), draw.complex(3), draw.ints(0, 3, 2), draw.complex(2)
        yield IndexAdd(-1), draw.real(), draw.ints(0, 1, 1), draw.real()


def _check_source(name: str, x: Any, dim: int, index: Any, source: Any) -> None:
    expect_tensor(index, name, "index", 3)
    expect_tensor(source, name, "source", 4)
    places, from_, to = index.array, source.array, x.array
    if places.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {places.ndim} with type: "
            f"{_scalar_type(index)} and size: {list(places.shape)}"
        )
    if places.dtype != dtypes.int64.numpy and places.dtype != dtypes.int32.numpy:
        raise RuntimeError(
            f"{name}_(): Expected dtype int32/int64 for index but got: {_scalar_type(index)}"
        )
    if from_.dtype != to.dtype:
        raise RuntimeError(
            f"{name}_(): self ({_scalar_type(x)}) and source ({_scalar_type(source)}) must have "
            "the same scalar type"
        )
    axis = dim % max(to.ndim, 1)
    mine, theirs = list(to.shape), list(from_.shape)
    if from_.ndim and axis < len(theirs) and theirs[axis] != places.size:
        raise RuntimeError(
            f"{name}_(): Number of indices ({places.size}) should be equal to source.size(dim): "
            f"({theirs[axis]}), for dim: {axis}"
        )
    if mine[:axis] + mine[axis + 1 :] != theirs[:axis] + theirs[axis + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {mine} source.shape = {theirs}"
        )
    text = "index {i} is out of bounds for dimension {axis} with size {n}"
    _check_vector(x, dim, index, RuntimeError, text)


@scattering()
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """index_add(input, dim, index, source, *, alpha=1, out=None) -> Tensor

    Add the slices of `source`, scaled by `alpha`, to those of `input` that `index` names.

    >>> import rushlight as torch
    >>> torch.zeros(3).index_add(0, torch.tensor([0, 2, 0]), torch.tensor([1., 2., 3.]))
    tensor([4., 0., 2.])
    """
    expect_tensor(input, "index_add")
    dim = one_dim(dim, input.array.ndim)
    _check_source("index_add", input, dim, index, source)
    return IndexAdd(dim, alpha), (input, index, source)


@edges(0, 2)
@op
class IndexCopy(Vector):
    """`self` with its slices at the places of `index` replaced by those of `source`."""

    name = "index_copy"
    inputs, saves = ("self", "index", "source"), ("index",)

    def forward(self, x: Any, index: Any, source: Any) -> Any:
        return self.put(x, source, index)

    def store(self, x: Any, index: Any, source: Any) -> None:
        self.write(x, source, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        hole = self.put(g, 0, index) if node.needs(0) else None
        return hole, None, (self.pick(g, index) if node.needs(2) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = _zeros(y) if ts[0] is None else ts[0]
        return self.put(t, 0 if ts[2] is None else ts[2], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexCopy(-2), draw.real(3, 2), draw.permutation(3)[:2], draw.real(2, 2)
        yield IndexCopy(-1), draw.complex(3), draw.permutation(3)[:2], draw.complex(2)
        yield IndexCopy(-1), draw.real(), draw.ints(0, 1, 1), draw.real()


@scattering()
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """index_copy(input, dim, index, source, *, out=None) -> Tensor

    Replace the slices of `input` that `index` names by those of `source`.

    >>> import rushlight as torch
    >>> torch.zeros(3).index_copy(0, torch.tensor([2, 0]), torch.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    expect_tensor(input, "index_copy")
    expect_tensor(index, "index_copy", "index", 3)
    expect_tensor(source, "index_copy", "source", 4)
    dim = one_dim(dim, input.array.ndim)
    places, from_, to = index.array, source.array, input.array
    axis = dim % max(to.ndim, 1)
    if places.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {places.ndim})")
    if from_.ndim == 0 and places.size != 1:
        raise IndexError(
            "index_copy_(): When source is scalar, index should have one element (got "
            f"{places.size})"
        )
    if from_.ndim != to.ndim and from_.ndim and to.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({from_.ndim}), destination dimensionality ({to.ndim})"
        )
    if places.dtype != dtypes.int64.numpy:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {_scalar_type(index)}"
        )
    if from_.dtype != to.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{_scalar_type(input)} and (source) {_scalar_type(source)}"
        )
    mine = to.shape[:axis] + to.shape[axis + 1 :]
    theirs = from_.shape[:axis] + from_.shape[axis + 1 :]
    if mine != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {' '.join(map(str, mine))} at dimension {axis} and source slice shape: "
            f"{' '.join(map(str, theirs))} at dimension 0."
        )
    if from_.ndim and from_.shape[axis] != places.size:
        raise IndexError(
            f"index_copy_(): Number of indices ({places.size}) should be equal to source.size(dim) "
            f"({from_.shape[axis]})"
        )
    text = "index_copy_(): index {i} is out of bounds for dimension {axis} with size {n}"
    _check_vector(input, dim, index, IndexError, text)
    return IndexCopy(dim), (input, index, source)


@edges(0)
@op
class IndexFill(Vector):
    """`self` with one number in its slices at the places of `index`."""

    name, params = "index_fill", ("dim", "value")
    inputs, saves = ("self", "index"), ("index",)
    overlap = False

    def __init__(self, dim: int, value: Any) -> None:
        super().__init__(dim)
        self.value = value

    def forward(self, x: Any, index: Any) -> Any:
        return self.put(x, self.value, index)

    def store(self, x: Any, index: Any) -> None:
        self.write(x, self.value, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return self.put(g, 0, index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.put(ts[0], 0, xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexFill(-2, 2.0), draw.real(3, 2), draw.ints(-3, 3, 2)
        yield IndexFill(-1, 2.0), draw.real(), draw.ints(0, 1, 1)


@edges(0, 2)
@op
class IndexFillWith(Vector):
    """`IndexFill` with the value of a 0-d tensor."""

    name, node = "index_fill_tensor", "IndexFillBackward1"
    inputs, saves = ("self", "index", "value"), ("index",)
    overlap = False

    def forward(self, x: Any, index: Any, value: Any) -> Any:
        return self.put(x, v.cast(value, raw_dtype(x)), index)

    def store(self, x: Any, index: Any, value: Any) -> None:
        self.write(x, v.cast(value, x.dtype), index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        hole = self.put(g, 0, index) if node.needs(0) else None
        if not node.needs(2):
            return hole, None, None
        filled = v.equal(self.put(_zeros(g), 1, index), 1)  # a place named twice counts once
        return hole, None, v.total(v.where(filled, g, 0), None, False)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = _zeros(y) if ts[0] is None else ts[0]
        return self.put(t, 0 if ts[2] is None else ts[2], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexFillWith(-2), draw.real(3, 2), draw.permutation(3)[:2], draw.real()


@scattering(out=False)
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """index_fill(input, dim, index, value) -> Tensor

    Fill the slices of `input` that `index` names with `value`, a number or a 0-d tensor.

    >>> import rushlight as torch
    >>> torch.zeros(2, 3).index_fill(1, torch.tensor([0, 2]), -1)
    tensor([[-1.,  0., -1.],
            [-1.,  0., -1.]])
    """
    expect_tensor(input, "index_fill")
    expect_tensor(index, "index_fill", "index", 3)
    dim = one_dim(dim, input.array.ndim)
    places = index.array
    if places.dtype != dtypes.int64.numpy:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if places.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    size = input.array.shape[dim] if input.array.ndim else 1
    axis = dim % max(input.array.ndim, 1)
    text = f"index {{i}} is out of bounds for dimension {axis} with size {{n}}"
    check_bounds(places, size, text, IndexError, negative=True)
    if isinstance(value, TensorBase):
        if value.array.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.array.ndim} dimension(s)."
            )
        return IndexFillWith(dim), (input, index, same_device(value, input))
    if isinstance(value, complex) and input.array.dtype.kind != "c":
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    return IndexFill(dim, number_for(value, input.array.dtype)), (input, index)


# --- index_put ------------------------------------------------------------------------------------
def _pattern_of(name: str, x: Any, indices: Any, values: Any) -> tuple[tuple[Any, ...], list[Any]]:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not "
            f"{dtypes.type_name(indices)}"
        )
    expect_tensor(values, name, "values", 2)
    pattern: list[Any] = []
    tensors: list[Any] = []
    d = 0
    for position, item in enumerate(indices):
        if not isinstance(item, TensorBase):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got "
                f"{dtypes.type_name(item)}"
            )
        wide = item.array.ndim if item.array.dtype.kind == "b" else 1
        d += wide
        if d > x.array.ndim:
            total = sum(i.array.ndim if i.array.dtype.kind == "b" else 1 for i in indices)
            raise IndexError(
                f"too many indices for tensor of dimension {x.array.ndim} (got {total})"
            )
        tensors.append(checked_index(item, x, d - wide))
        pattern.append(SLOT)
    return tuple(pattern), tensors


@function()
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """index_put(input, indices, values, accumulate=False) -> Tensor

    A copy of `input` with `values` written, or added, at a tuple of index tensors.

    >>> import rushlight as torch
    >>> at = (torch.tensor([0, 0]), torch.tensor([1, 1]))
    >>> torch.zeros(2, 2).index_put(at, torch.tensor(1.), accumulate=True)
    tensor([[0., 2.],
            [0., 0.]])
    """
    expect_tensor(input, "index_put")
    pattern, tensors = _pattern_of("index_put", input, indices, values)
    values = checked_values(input, pattern, tensors, values, accumulate)
    return run_indexed(IndexPut(pattern, accumulate), (input, values, *tensors))


@function()
def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """index_put_(indices, values, accumulate=False) -> Tensor

    In-place version of `index_put`.

    >>> import rushlight as torch
    >>> torch.zeros(3).index_put_((torch.tensor([1]),), torch.tensor(5.))
    tensor([0., 5., 0.])
    """
    expect_tensor(input, "index_put_")
    pattern, tensors = _pattern_of("index_put_", input, indices, values)
    return index_put_into(input, pattern, tensors, values, accumulate)
