"""Copies in other shapes: joining, repeating, turning round, triangles and diagonals.

Op files and `tensor` may import this.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import apply
from rushlight.errors import dim_out_of_range
from rushlight.ops.arguments import expect_tensor, one_dim
from rushlight.ops.run import result_dtype
from rushlight.ops.samples import Draw
from rushlight.ops.table import function, functions, methods, op, public, word_for
from rushlight.ops.view import Diagonal, Parts, Slice, Split, SplitWithSizes, Written
from rushlight.ops.view_api import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    expand,
    flatten,
    ints,
    reshape,
    tuple_of_ints,
    unsqueeze,
    view,
)
from rushlight.ops.view_parts import chunk_op, narrow_op, sizes_op, split_op

__all__ = ["Cat", "Clone", "Flip", "Repeat", "Roll", "Stack", "cat", "list_of_tensors", "stack"]

_ALL: Final = slice(None)


def zeros_as(like: Any, x: Any) -> Any:
    """Zeros in the shape of `x` and the dtype of `like`."""
    raw = like.array if isinstance(like, TensorBase) else like
    return v.full(like, x.shape, 0, raw.dtype)


# --- joining --------------------------------------------------------------------------------------
class Join(Op):
    """Linear in each of any number of tensors; computed in `dtype` (None: they have one)."""

    inputs, variadic = ("tensors",), True
    params: ClassVar[tuple[str, ...]] = ("dim", "dtype")

    def __init__(self, dim: int, dtype: Any = None) -> None:
        super().__init__()
        self.dim = dim
        self.dtype = dtype

    def same(self, xs: Any) -> list[Any]:
        return list(xs) if self.dtype is None else [v.cast(x, self.dtype) for x in xs]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        some = next(t for t in ts if t is not None)
        rule: Any = self
        return rule.forward(
            *[zeros_as(some, x) if t is None else t for t, x in zip(ts, xs, strict=True)]
        )


@op
class Cat(Join):
    """Tensors one after another along a dimension. Empty vectors are left out, as in PyTorch."""

    name = "cat"

    def forward(self, *xs: Any) -> Any:
        parts = [x for x in self.same(xs) if x.shape != (0,)]
        return v.concat(parts or self.same(xs), self.dim)

    def vjp(self, node: Node, g: Any) -> Any:
        assert node.shapes is not None
        tail = (_ALL,) * (-self.dim - 1)
        start = 0
        outs: list[Any] = []
        for i, shape in enumerate(node.shapes):
            if shape == (0,):
                empty = v.window(g, (..., slice(0, 0), *tail))
                outs.append(v.reshape(empty, (0,)) if node.needs(i) else None)
                continue
            stop = start + shape[self.dim]
            outs.append(v.window(g, (..., slice(start, stop), *tail)) if node.needs(i) else None)
            start = stop
        return outs

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Cat(-1), draw.real(2, 3), draw.real(2, 1)
        yield Cat(-2), draw.real(2, 3), draw.real(0, 3), draw.real(1, 3)
        yield Cat(-2), draw.real(2, 3), draw.real(0)
        yield Cat(-1), draw.complex(2), draw.complex(3)
        yield Cat(-1), draw.real(3)


@op
class Stack(Join):
    """Tensors of one shape side by side along a new dimension (negative, of the result)."""

    name = "stack"

    def forward(self, *xs: Any) -> Any:
        key = (..., None) + (_ALL,) * (-self.dim - 1)
        return v.concat([v.window(x, key) for x in self.same(xs)], self.dim)

    def vjp(self, node: Node, g: Any) -> Any:
        tail = (_ALL,) * (-self.dim - 1)
        return [
            v.window(g, (..., i, *tail)) if node.needs(i) else None for i in range(len(node.nexts))
        ]

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Stack(-1), draw.real(2, 3), draw.real(2, 3)
        yield Stack(-3), draw.real(2, 3), draw.real(2, 3), draw.real(2, 3)
        yield Stack(-1), draw.real(), draw.real()
        yield Stack(-2), draw.complex(2), draw.complex(2)


def list_of_tensors(name: str, tensors: Any, empty: str = "", error: Any = RuntimeError) -> Any:
    """A user's sequence of tensors as a tuple, or PyTorch's errors."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, "
            f"not {type(tensors).__name__}"
        )
    for position, x in enumerate(tensors):
        if not isinstance(x, TensorBase):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(x).__name__}"
            )
    if not tensors:
        raise error(empty or f"{name} expects a non-empty TensorList")
    return tuple(tensors)


def _common(xs: tuple[Any, ...]) -> Any:
    """The raw dtype to compute in; None if all have it."""
    first = xs[0].array.dtype
    if all(x.array.dtype == first for x in xs):
        return None
    return result_dtype(xs).numpy


@public(aliases=("concat", "concatenate"), method=False)
def cat(tensors: Any, dim: int = 0, *, axis: Any = None) -> Any:
    """cat(tensors, dim=0, *, out=None) -> Tensor

    The tensors one after another along a dimension.

    >>> import rushlight as torch
    >>> torch.cat([torch.zeros(2), torch.ones(1)])
    tensor([0., 0., 1.])
    """
    text = "torch.cat(): expected a non-empty list of Tensors"
    xs = list_of_tensors("cat", tensors, text, ValueError)
    for position, x in enumerate(xs):
        if x.array.ndim == 0:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be concatenated"
            )
    if axis is not None:
        dim = axis
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"cat(): argument 'dim' must be int, not {type(dim).__name__}")
    first = next((x.array.shape for x in xs if x.array.shape != (0,)), (0,))
    d = one_dim(dim, len(first))
    for position, x in enumerate(xs):
        shape = x.array.shape
        if shape == (0,):
            continue
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
            )
        for k in range(-len(first), 0):
            if k != d and shape[k] != first[k]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d + len(first)}. Expected "
                    f"size {first[k]} but got size {shape[k]} for tensor number {position} in the "
                    "list."
                )
    return Cat(d, _common(xs)), xs


@public(method=False)
def stack(tensors: Any, dim: int = 0) -> Any:
    """stack(tensors, dim=0, *, out=None) -> Tensor

    Tensors of one shape side by side along a new dimension.

    >>> import rushlight as torch
    >>> torch.stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    xs = list_of_tensors("stack", tensors)
    first = xs[0].array.shape
    rank = len(first) + 1
    if not -rank <= dim < rank:
        raise IndexError(dim_out_of_range(dim, rank))
    for position, x in enumerate(xs):
        if x.array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(x.array.shape)} at entry {position}"
            )
    return Stack(dim - rank if dim >= 0 else dim, _common(xs)), xs


@function(method=False)
def hstack(tensors: Any, *, out: Any = None) -> Any:
    """hstack(tensors, *, out=None) -> Tensor

    The tensors beside each other: along the second dimension, or the first of vectors.

    >>> import rushlight as torch
    >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """
    xs = [atleast_1d(x) for x in list_of_tensors("hstack", tensors)]
    return cat(xs, 0 if xs[0].array.ndim == 1 else 1, out=out)


@function(method=False, aliases=("row_stack",))
def vstack(tensors: Any, *, out: Any = None) -> Any:
    """vstack(tensors, *, out=None) -> Tensor

    The tensors below each other: vectors become rows.

    >>> import rushlight as torch
    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([atleast_2d(x) for x in list_of_tensors("vstack", tensors)], 0, out=out)


@function(method=False)
def dstack(tensors: Any, *, out: Any = None) -> Any:
    """dstack(tensors, *, out=None) -> Tensor

    The tensors behind each other, along the third dimension.

    >>> import rushlight as torch
    >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat([atleast_3d(x) for x in list_of_tensors("dstack", tensors)], 2, out=out)


@function(method=False)
def column_stack(tensors: Any, *, out: Any = None) -> Any:
    """column_stack(tensors, *, out=None) -> Tensor

    The tensors beside each other: vectors become columns.

    >>> import rushlight as torch
    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = []
    for x in list_of_tensors("column_stack", tensors):
        columns.append(reshape(x, (x.array.size, 1)) if x.array.ndim <= 1 else x)
    return cat(columns, 1, out=out)


# --- repeating ------------------------------------------------------------------------------------
@op
class Repeat(Linear):
    """Copies of the whole along each dimension, and along new ones in front."""

    name, params = "repeat", ("repeats",)

    def __init__(self, repeats: tuple[int, ...]) -> None:
        super().__init__()
        self.repeats = repeats

    def forward(self, x: Any) -> Any:
        return v.contiguous(v.tile(x, self.repeats))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        lead = len(self.repeats) - len(shape)
        apart: list[int] = []
        for k, times in enumerate(self.repeats):
            apart += (times, shape[k - lead] if k >= lead else 1)
        g = v.total(v.reshape(g, tuple(apart)), tuple(range(0, len(apart), 2)), False)
        return v.reshape(g, shape) if lead else g

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Repeat((2, 3)), draw.real(2, 3)
        yield Repeat((2, 1, 2)), draw.real(2, 3)
        yield Repeat((3,)), draw.real()
        yield Repeat(()), draw.real()
        yield Repeat((0, 2)), draw.real(2, 2)
        yield Repeat((2, 2)), draw.complex(3)


@public(free=False, out=False)
def repeat(input: Any, *sizes: Any, repeats: Any = None) -> Any:
    """repeat(*repeats) -> Tensor

    Copies of the whole along each dimension.

    >>> import rushlight as torch
    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    return _repeat(input, ints("repeat", "repeats", sizes if repeats is None else (repeats,)))


def _repeat(input: Any, times: tuple[int, ...]) -> tuple[Any, tuple[Any, ...]]:
    shape = input.array.shape
    if len(times) < len(shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    lead = (1,) * (len(times) - len(shape))
    target = [n * k for n, k in zip((*lead, *shape), times, strict=True)]
    for k, n in zip(times, target, strict=True):
        if k < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {target}")
    return Repeat(times), (input,)


@public(method=False, out=False)
def tile(input: Any, dims: Any) -> Any:
    """tile(input, dims) -> Tensor

    Copies of the whole; dims that are not given count as 1.

    >>> import rushlight as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    expect_tensor(input, "tile")
    times = tuple_of_ints("tile", "dims", dims, 2)
    return _repeat(input, (1,) * (input.array.ndim - len(times)) + times)


@function(name="tile", free=False)
def _tile_method(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """tile(*dims) -> Tensor

    Copies of the whole; dims that are not given count as 1.

    >>> import rushlight as torch
    >>> torch.tensor([1, 2]).tile(2)
    tensor([1, 2, 1, 2])
    """
    return tile(input, ints("tile", "dims", sizes if dims is None else (dims,)))


@function()
def repeat_interleave(
    input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """repeat_interleave(input, repeats, dim=None, *, output_size=None) -> Tensor

    Each element repeated in its place; without `dim`, of the flattened tensor.

    >>> import rushlight as torch
    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    >>> torch.repeat_interleave(torch.tensor([5, 6]), torch.tensor([1, 2]))
    tensor([5, 6, 6])
    """
    expect_tensor(input, "repeat_interleave")
    if repeats is None:
        return _interleaved_index(input, output_size)
    if isinstance(repeats, (tuple, list)):
        repeats = functions["tensor"](repeats)
    if dim is None:
        input = flatten(input)
        dim = 0
    shape = input.array.shape
    d = one_dim(dim, len(shape)) + max(len(shape), 1)
    if isinstance(repeats, TensorBase):
        return _interleave_by(input, repeats, d, output_size)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    times = int(repeats)
    wide = expand(unsqueeze(input, d + 1), (*shape[: d + 1], times, *shape[d + 1 :]))
    wide = apply(Clone("contiguous"), wide)
    return view(wide, (*shape[:d], shape[d] * times, *shape[d + 1 :]))


def _interleave_by(input: Any, repeats: Any, d: int, output_size: Any) -> Any:
    counts = repeats.array
    n = input.array.shape[d]
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.ndim == 0 or counts.shape[0] == 1:
        repeats = expand(reshape(repeats, (1,)), (n,))
    elif counts.shape[0] != n:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.shape[0]} and input.size({d}) = {n}"
        )
    return functions["index_select"](input, d, _interleaved_index(repeats, output_size))


def _interleaved_index(repeats: Any, output_size: Any) -> Any:
    """Element i of `repeats` many times i."""
    counts = repeats.array
    if counts.dtype.kind not in "iu" or counts.dtype.itemsize < 4:
        name = dtypes.of(counts.dtype).scalar_type
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{name}'")
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    listed = counts.tolist()
    if any(k < 0 for k in listed):
        raise RuntimeError("repeats can not be negative")
    places = [i for i, k in enumerate(listed) for _ in range(k)]
    if output_size is not None and output_size != len(places):
        raise RuntimeError("allocated size does not match required size")
    return functions["tensor"](places, dtype=dtypes.of(counts.dtype), device=repeats.device)


# --- turning round --------------------------------------------------------------------------------
@op
class Flip(Linear):
    """The order along `dims` reversed."""

    name, params = "flip", ("dims",)

    def __init__(self, dims: tuple[int, ...]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Any) -> Any:
        return v.flip(x, self.dims) if self.dims else v.copy(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.flip(g, self.dims) if self.dims else g

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Flip((-1,)), draw.real(2, 3)
        yield Flip((-2, -1)), draw.complex(2, 3)
        yield Flip(()), draw.real()


def _flip(input: Any, dims: tuple[int, ...]) -> tuple[Any, tuple[Any, ...]]:
    rank = input.array.ndim
    found = tuple([one_dim(d, rank) for d in dims])
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d + max(rank, 1)} appears multiple times in the list of dims")
    return Flip(found if rank else ()), (input,)


@public(method=False, out=False)
def flip(input: Any, dims: Any) -> Any:
    """flip(input, dims) -> Tensor

    A copy with the order along `dims` reversed.

    >>> import rushlight as torch
    >>> torch.flip(torch.tensor([1, 2, 3]), (0,))
    tensor([3, 2, 1])
    """
    expect_tensor(input, "flip")
    return _flip(input, tuple_of_ints("flip", "dims", dims, 2))


@function(name="flip", free=False)
def _flip_method(input: Any, *order: Any, dims: Any = None) -> Any:
    """flip(*dims) -> Tensor

    A copy with the order along `dims` reversed.

    >>> import rushlight as torch
    >>> torch.tensor([1, 2, 3]).flip(0)
    tensor([3, 2, 1])
    """
    return flip(input, ints("flip", "dims", order if dims is None else (dims,)))


@public(out=False)
def fliplr(input: Any) -> Any:
    """fliplr(input) -> Tensor

    A copy with the columns in reverse order.

    >>> import rushlight as torch
    >>> torch.fliplr(torch.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    expect_tensor(input, "fliplr")
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _flip(input, (1,))


@public(out=False)
def flipud(input: Any) -> Any:
    """flipud(input) -> Tensor

    A copy with the rows in reverse order.

    >>> import rushlight as torch
    >>> torch.flipud(torch.tensor([1, 2]))
    tensor([2, 1])
    """
    expect_tensor(input, "flipud")
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return _flip(input, (0,))


@op
class Roll(Linear):
    """Elements moved along `dims`; what leaves at one end enters at the other. No dims: flat."""

    name, params = "roll", ("shifts", "dims")

    def __init__(self, shifts: tuple[int, ...], dims: tuple[int, ...]) -> None:
        super().__init__()
        self.shifts = shifts
        self.dims = dims

    def forward(self, x: Any) -> Any:
        if self.dims:
            return v.roll(v.contiguous(x), self.shifts, self.dims)
        flat = v.reshape(x, (prod(x.shape),))
        return v.reshape(v.roll(flat, self.shifts, (0,)), x.shape)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        back = tuple([-s for s in self.shifts])
        if self.dims:
            return v.roll(g, back, self.dims)
        return v.reshape(v.roll(v.reshape(g, (prod(shape),)), back, (0,)), shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Roll((1,), (-1,)), draw.real(2, 3)
        yield Roll((2, -1), (-2, -1)), draw.complex(3, 3)
        yield Roll((1,), ()), draw.real(2, 3)
        yield Roll((3,), ()), draw.real()


@public(out=False)
def roll(input: Any, shifts: Any, dims: Any = ()) -> Any:
    """roll(input, shifts, dims=()) -> Tensor

    Elements moved along `dims`, round the end; without dims, of the flattened tensor.

    >>> import rushlight as torch
    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    expect_tensor(input, "roll")
    by = ints("roll", "shifts", (shifts,))
    given = () if dims is None else ints("roll", "dims", (dims,))
    if not by:
        raise RuntimeError("`shifts` required")
    if len(by) != len(given) and not (len(by) == 1 and not given):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(given)}"
        )
    rank = input.array.ndim
    if given and not rank:
        raise IndexError(f"Dimension specified as {given[0]} but tensor has no dimensions")
    found = tuple([one_dim(d, rank) for d in given])
    return Roll(by, found if rank else ()), (input,)


@op
class Rot90(Linear):
    """A quarter turn, `k` times, from the first of `dims` towards the second."""

    name, params = "rot90", ("k", "dims")

    def __init__(self, k: int, dims: tuple[int, int]) -> None:
        super().__init__()
        self.k = k
        self.dims = dims

    def forward(self, x: Any) -> Any:
        return self.turned(x, self.k % 4)

    def turned(self, x: Any, k: int) -> Any:
        a, b = self.dims
        if k == 1:
            return v.swap(v.flip(x, (b,)), a, b)
        if k == 2:
            return v.flip(x, (a, b))
        if k == 3:
            return v.swap(v.flip(x, (a,)), a, b)
        return v.copy(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.turned(g, -self.k % 4)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Rot90(1, (-2, -1)), draw.real(2, 3)
        yield Rot90(2, (-3, -1)), draw.real(2, 3, 2)
        yield Rot90(-1, (-1, -2)), draw.complex(2, 3)
        yield Rot90(4, (-2, -1)), draw.real(2, 2)


@public(out=False)
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """rot90(input, k=1, dims=(0, 1)) -> Tensor

    A copy turned by `k` quarter turns in the plane of two dimensions.

    >>> import rushlight as torch
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    expect_tensor(input, "rot90")
    given = ints("rot90", "dims", (dims,))
    rank = input.array.ndim
    if len(given) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(given)}")
    if rank < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {rank}")
    a, b = one_dim(given[0], rank), one_dim(given[1], rank)
    if a == b:
        raise RuntimeError(
            "expected rotation dims to be different, but got dim0 = "
            f"{given[0]} and dim1 = {given[1]}"
        )
    return Rot90(k, (a, b)), (input,)


# --- copies ---------------------------------------------------------------------------------------
_ORDERS: Final = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


@op
class Clone(Linear):
    """A copy: in the same order of strides ("preserve"), in row order, or channels last."""

    name, params = "clone", ("format",)

    def __init__(self, format: str = "preserve") -> None:
        super().__init__()
        self.format = format

    def forward(self, x: Any) -> Any:
        if self.format == "preserve":
            return v.copy(x)
        return v.laid_out(x, _ORDERS.get(self.format))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return g

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Clone(), draw.real(2, 3)
        yield Clone("contiguous"), draw.complex(2)
        yield Clone("channels_last"), draw.real(1, 2, 3, 2)


@public(out=False)
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """clone(input, *, memory_format=torch.preserve_format) -> Tensor

    A copy, through which gradients flow.

    >>> import rushlight as torch
    >>> torch.clone(torch.tensor([1, 2]))
    tensor([1, 2])
    """
    expect_tensor(input, "clone")
    name = "preserve_format" if memory_format is None else memory_format.name
    rank = input.array.ndim
    wanted = {"channels_last": 4, "channels_last_3d": 5}.get(name, rank)
    if rank != wanted:
        raise RuntimeError(f"required rank {wanted} tensor to use {name} format")
    return Clone(name.removesuffix("_format")), (input,)


@op
class NarrowCopy(Linear):
    """A copy of a slice."""

    name, params = "narrow_copy", ("dim", "start", "length")

    def __init__(self, dim: int, start: int, length: int) -> None:
        super().__init__()
        self.dim = dim
        self.start = start
        self.length = length
        self.region = Slice(dim, start, start + length)

    def forward(self, x: Any) -> Any:
        return v.laid_out(self.region.forward(x), None)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.region.adjoint(g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield NarrowCopy(-1, 1, 2), draw.real(2, 4)


@public()
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """narrow_copy(input, dim, start, length, *, out=None) -> Tensor

    `narrow`, as a copy.

    >>> import rushlight as torch
    >>> torch.narrow_copy(torch.arange(5), 0, 1, 2)
    tensor([1, 2])
    """
    expect_tensor(input, "narrow_copy")
    region = narrow_op(input, dim, start, length)
    return NarrowCopy(region.dim, region.start, region.stop - region.start), (input,)


class UnsafePieces(Parts):
    """Pieces that count as tensors of their own."""

    def forward(self, x: Any) -> Any:
        return tuple([v.laid_out(piece.forward(x), None) for piece in self.pieces(x.shape)])


@op
class UnsafeSplit(UnsafePieces, Split):
    """`split` into copies."""

    name = "unsafe_split"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield UnsafeSplit(2, -1), draw.real(2, 5)


@op
class UnsafeSplitWithSizes(UnsafePieces, SplitWithSizes):
    """`split_with_sizes` into copies."""

    name = "unsafe_split_with_sizes"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield UnsafeSplitWithSizes((1, 2), -1), draw.real(2, 3)


@function()
def unsafe_split(input: Any, split_size: int, dim: int = 0) -> Any:
    """unsafe_split(input, split_size, dim=0) -> tuple of Tensors

    `split` whose pieces may be written in place.

    >>> import rushlight as torch
    >>> torch.unsafe_split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    expect_tensor(input, "unsafe_split")
    return apply(split_op(UnsafeSplit, input, split_size, dim), input)


@function()
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """unsafe_split_with_sizes(input, split_sizes, dim=0) -> tuple of Tensors

    `split_with_sizes` whose pieces may be written in place.

    >>> import rushlight as torch
    >>> torch.unsafe_split_with_sizes(torch.arange(3), (1, 2))
    (tensor([0]), tensor([1, 2]))
    """
    expect_tensor(input, "unsafe_split_with_sizes")
    return apply(sizes_op(UnsafeSplitWithSizes, input, split_sizes, dim), input)


@function()
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """unsafe_chunk(input, chunks, dim=0) -> tuple of Tensors

    `chunk` whose pieces may be written in place.

    >>> import rushlight as torch
    >>> torch.unsafe_chunk(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    expect_tensor(input, "unsafe_chunk")
    return apply(chunk_op(input, chunks, dim, UnsafeSplit, UnsafeSplitWithSizes), input)


# --- triangles and diagonals ----------------------------------------------------------------------
class Triangle(Linear):
    """Zero on one side of a diagonal of the last two dimensions."""

    params = ("diagonal",)
    lower = True

    def __init__(self, diagonal: int) -> None:
        super().__init__()
        self.diagonal = diagonal

    def forward(self, x: Any) -> Any:
        return v.triangle(x, self.diagonal, self.lower)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.triangle(g, self.diagonal, self.lower)


@op
class Tril(Triangle):
    """The lower triangle."""

    name = "tril"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Tril(0), draw.real(3, 3)
        yield Tril(-1), draw.complex(2, 3, 2)
        yield Tril(1), draw.real(0, 3)


@op
class Triu(Triangle):
    """The upper triangle."""

    name, lower = "triu", False

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Triu(0), draw.real(3, 3)
        yield Triu(1), draw.complex(2, 3, 2)


def _triangle(name: str, cls: Any, input: Any, diagonal: int) -> Any:
    expect_tensor(input, name)
    if input.array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return cls(diagonal), (input,)


@public(inplace=True)
def tril(input: Any, diagonal: int = 0) -> Any:
    """tril(input, diagonal=0, *, out=None) -> Tensor

    The lower triangle of the last two dimensions, zeros above `diagonal`.

    >>> import rushlight as torch
    >>> torch.tril(torch.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle("tril", Tril, input, diagonal)


@public(inplace=True)
def triu(input: Any, diagonal: int = 0) -> Any:
    """triu(input, diagonal=0, *, out=None) -> Tensor

    The upper triangle of the last two dimensions, zeros below `diagonal`.

    >>> import rushlight as torch
    >>> torch.triu(torch.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle("triu", Triu, input, diagonal)


@op
class DiagEmbed(Written):
    """The last axis as a diagonal of two new ones (negative, of the result)."""

    name, params = "diag_embed", ("offset", "dim1", "dim2")

    def __init__(self, offset: int, dim1: int, dim2: int) -> None:
        super().__init__()
        self.offset = offset
        self.dim1 = dim1
        self.dim2 = dim2

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

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield DiagEmbed(0, -2, -1), draw.real(2, 3)
        yield DiagEmbed(1, -3, -1), draw.complex(2, 2)
        yield DiagEmbed(-1, -1, -2), draw.real(3)


@public()
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """diag_embed(input, offset=0, dim1=-2, dim2=-1) -> Tensor

    The last dimension as a diagonal of two new dimensions.

    >>> import rushlight as torch
    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    expect_tensor(input, "diag_embed")
    rank = input.array.ndim + 1
    a, b = one_dim(dim1, rank), one_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return DiagEmbed(offset, a, b), (input,)


@op
class DiagonalCopy(Linear):
    """A copy of a diagonal."""

    name, node = "diagonal_copy", "DiagonalBackward0_copy"
    params = ("offset", "dim1", "dim2")

    def __init__(self, offset: int, dim1: int, dim2: int) -> None:
        super().__init__()
        self.offset = offset
        self.dim1 = dim1
        self.dim2 = dim2
        self.region = Diagonal(offset, dim1, dim2)

    def forward(self, x: Any) -> Any:
        return v.laid_out(self.region.forward(x), None)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.region.adjoint(g, shape)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield DiagonalCopy(0, -2, -1), draw.real(2, 3)
        yield DiagonalCopy(1, -2, -1), draw.complex(3, 3)


@public()
def diag(input: Any, diagonal: int = 0) -> Any:
    """diag(input, diagonal=0, *, out=None) -> Tensor

    A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector.

    >>> import rushlight as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    expect_tensor(input, "diag")
    rank = input.array.ndim
    if rank not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {rank}D")
    return (DiagEmbed if rank == 1 else DiagonalCopy)(diagonal, -2, -1), (input,)


@function()
def diagflat(input: Any, offset: int = 0) -> Any:
    """diagflat(input, offset=0) -> Tensor

    All elements as a diagonal.

    >>> import rushlight as torch
    >>> torch.diagflat(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    expect_tensor(input, "diagflat")
    return apply(DiagEmbed(offset, -2, -1), reshape(input, (input.array.size,)))


# --- words on tensors -----------------------------------------------------------------------------
@word_for("concat")
def _concat(xs: Any, axis: int) -> Any:
    rank = next(x.ndim for x in xs)
    tensors = [x for x in xs if isinstance(x, TensorBase)]
    return apply(Cat(axis - rank if axis >= 0 else axis, _common(tuple(tensors))), *xs)


@word_for("flip")
def _flip_word(x: Any, axes: Any) -> Any:
    rank = x.array.ndim
    return apply(Flip(tuple([a - rank if a >= 0 else a for a in axes])), x)


@word_for("roll")
def _roll_word(x: Any, shifts: Any, axes: Any) -> Any:
    rank = x.array.ndim
    return apply(Roll(tuple(shifts), tuple([a - rank if a >= 0 else a for a in axes])), x)


@word_for("tile")
def _tile_word(x: Any, repeats: Any) -> Any:
    times = tuple(repeats)
    return apply(Repeat((1,) * (x.array.ndim - len(times)) + times), x)


@word_for("triangle")
def _triangle_word(x: Any, k: int, lower: bool) -> Any:
    return apply((Tril if lower else Triu)(k), x)


@word_for("copy")
def _copy_word(x: Any) -> Any:
    return apply(Clone(), x)


@word_for("contiguous")
def _contiguous_word(x: Any) -> Any:
    return methods["contiguous"](x)


@op
class LaidOut(Linear):
    """A copy whose axes lie in memory in a given order, widest stride first (None: rows)."""

    name, node, params = "laid_out", "CloneBackward0", ("order",)

    def __init__(self, order: tuple[int, ...] | None) -> None:
        super().__init__()
        self.order = order

    def forward(self, x: Any) -> Any:
        return v.laid_out(x, self.order)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return g

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield LaidOut((1, 0)), draw.real(2, 3)
        yield LaidOut(None), draw.real()


@word_for("laid_out")
def _laid_out_word(x: Any, order: Any) -> Any:
    return apply(LaidOut(order), x)
