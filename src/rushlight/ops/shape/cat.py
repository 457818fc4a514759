"""Joining tensors: `cat`, `stack` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.elementwise import result_dtype
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import apply
from rushlight.errors import dim_out_of_range, sentence
from rushlight.ops.checks import from_end, one_dim, one_int
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import describe, function, functions, implements, op, variant
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.view.reshape import reshape
from rushlight.ops.view.squeeze import atleast_1d, atleast_2d, atleast_3d


def zeros_as(like: Any, x: Any) -> Any:
    """Zeros in the shape of `x` and the dtype of `like`."""
    raw = like._array if isinstance(like, TensorBase) else like
    return v.full(like, x.shape, 0, raw.dtype)


class Join(Op):
    """Linear in each of any number of tensors; computed in `dtype` (None: they have one)."""

    inputs, variadic = ("tensors",), True
    params: ClassVar[tuple[str, ...]] = ("dim", "dtype")
    dim: int
    dtype: Any = None

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
    saved_names = "dim"
    lies = "channels"

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        legacy = any(x.ndim == 2 and x.shape[1] == 0 for x in xs)  # an empty vector is left out
        return None if legacy else batch_leading(self, xs, flags, size)

    def mover(self, rule: str) -> Any:
        plain = rule == "forward" and self.dtype is None
        return kernels.bound(kernels.joined, self.dim) if plain else None

    def forward(self, *xs: Any) -> Any:
        parts = [x for x in self.same(xs) if x.shape != (0,)]
        return v.concat(parts or self.same(xs), self.dim)

    def vjp(self, node: Any, g: Any) -> Any:
        tail = (v.ALL,) * (-self.dim - 1)
        start = 0
        outs: list[Any] = []
        for i, shape in enumerate(node._input_shapes):
            if shape == (0,):
                empty = v.window(g, (..., slice(0, 0), *tail))
                outs.append(v.reshape(empty, (0,)) if node._needs_grad(i) else None)
                continue
            stop = start + shape[self.dim]
            outs.append(
                v.window(g, (..., slice(start, stop), *tail)) if node._needs_grad(i) else None
            )
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
    saved_names = "dim=dim+"
    vmap_rule = batch_leading
    lies = "stacked"

    def mover(self, rule: str) -> Any:
        plain = rule == "forward" and self.dtype is None
        return kernels.bound(kernels.stacked, self.dim) if plain else None

    def forward(self, *xs: Any) -> Any:
        parts = self.same(xs)
        shape = parts[0].shape
        if shape and -self.dim == len(shape) + 1:
            # one behind the other: the same memory, without a view of each
            return v.reshape(v.concat(parts, -len(shape)), (len(parts), *shape))
        key = (..., None) + (v.ALL,) * (-self.dim - 1)
        return v.concat([v.window(x, key) for x in parts], self.dim)

    def vjp(self, node: Node, g: Any) -> Any:
        tail = (v.ALL,) * (-self.dim - 1)
        return [
            v.window(g, (..., i, *tail)) if node._needs_grad(i) else None
            for i in range(len(node._next_edges))
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
    first = xs[0]._array.dtype
    if all(x._array.dtype == first for x in xs):
        return None
    return result_dtype(xs).numpy


@function(out=True, aliases=("concat", "concatenate"), method=False, settles=True)
def cat(tensors: Any, dim: int = 0, *, axis: Any = None) -> Any:
    """The tensors one after another along a dimension.

    >>> torch.cat([torch.zeros(2), torch.ones(1)])
    tensor([0., 0., 1.])
    """
    text = "torch.cat(): expected a non-empty list of Tensors"
    xs = list_of_tensors("cat", tensors, text, ValueError)
    for position, x in enumerate(xs):
        if x._array.ndim == 0:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be concatenated"
            )
    if axis is not None:
        dim = axis
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"cat(): argument 'dim' must be int, not {type(dim).__name__}")
    first = next((x._array.shape for x in xs if x._array.shape != (0,)), (0,))
    d = one_dim(dim, len(first))
    for position, x in enumerate(xs):
        shape = x._array.shape
        if shape == (0,):
            continue
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}\n"
                f"  the first has the shape {list(first)}, number {position} has {list(shape)}"
            )
        for k in range(-len(first), 0):
            if k != d and shape[k] != first[k]:
                raise RuntimeError(
                    sentence(
                        f"Sizes of tensors must match except in dimension {d + len(first)}. "
                        f"Expected size {first[k]} but got size {shape[k]} for tensor number "
                        f"{position} in the list.",
                        f"the first has the shape {list(first)}, number {position} has "
                        f"{list(shape)}",
                    )
                )
    return Cat(d, _common(xs)), xs


@function(out=True, method=False, settles=True)
def stack(tensors: Any, dim: int = 0) -> Any:
    """Tensors of one shape side by side along a new dimension.

    >>> torch.stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    xs = list_of_tensors("stack", tensors)
    first = xs[0]._array.shape
    rank = len(first) + 1
    if type(dim) is not int:
        dim = one_int("stack", "dim", dim, 2)
    if not -rank <= dim < rank:
        raise IndexError(dim_out_of_range(dim, rank))
    for position, x in enumerate(xs):
        if x._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(x._array.shape)} at entry {position}"
            )
    return Stack(from_end(dim, rank), _common(xs)), xs


def _export_stack(
    name: str, raise_to: Callable[[Any], Any], dim: int, text: str, example: str, shown: str,
    aliases: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """Make a function that raises tensors to a rank, and joins them along `dim` (0 for vectors)."""

    def joined(tensors: Any, *, out: Any = None) -> Any:
        xs = [raise_to(x) for x in list_of_tensors(name, tensors)]
        return functions["cat"](xs, 0 if xs[0]._array.ndim == 1 else dim, out=out)

    doc = describe(text, f"torch.{name}([{example}])", shown)
    function(method=False, aliases=aliases, settles=True)(variant(joined, name, doc))


def _as_column(x: Any) -> Any:
    return reshape(x, (x._array.size, 1)) if x._array.ndim <= 1 else x


_TWO: Final = "torch.tensor([1, 2]), torch.tensor([3, 4])"
_export_stack(
    "hstack", atleast_1d, 1,
    "The tensors beside each other: along the second dimension, or the first of vectors.",
    "torch.tensor([1, 2]), torch.tensor([3])", "tensor([1, 2, 3])",
)  # fmt: skip
_export_stack(
    "vstack", atleast_2d, 0, "The tensors below each other: vectors become rows.", _TWO,
    "tensor([[1, 2],\n        [3, 4]])", ("row_stack",),
)  # fmt: skip
_export_stack(
    "dstack", atleast_3d, 2, "The tensors behind each other, along the third dimension.", _TWO,
    "tensor([[[1, 3],\n         [2, 4]]])",
)  # fmt: skip
_export_stack(
    "column_stack", _as_column, 1, "The tensors beside each other: vectors become columns.", _TWO,
    "tensor([[1, 3],\n        [2, 4]])",
)  # fmt: skip


@implements("concat")
def _concat_word(xs: Any, axis: int) -> Any:
    rank = next(x.ndim for x in xs)
    tensors = [x for x in xs if isinstance(x, TensorBase)]
    return apply(Cat(from_end(axis, rank), _common(tuple(tensors))), *xs)
