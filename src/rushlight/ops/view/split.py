"""Views of the consecutive pieces of an axis; and a tensor as a sequence of such."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.graph import TensorBase
from rushlight.core.plain_calls import length
from rushlight.core.views.plain_views import row_of
from rushlight.core.views.views import apply_view, look_at_many
from rushlight.ops.checks import check_tensor, ints, invalid, is_batched, one_dim, one_int
from rushlight.ops.registry import describe, function, methods, op, variant
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.view.select import Select, Slice


class Parts(Linear):
    """A view op with several outputs. `pieces(shape)` are the single views that lead to each."""

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        raise NotImplementedError

    def forward(self, x: Any) -> Any:
        return tuple([piece.forward(x) for piece in self.pieces(x.shape)])

    def vjp(self, node: Any, g: Any) -> Any:
        rule: Any = self
        return (rule.adjoint(g if isinstance(g, list) else [g], node._input_shapes[0]),)


def _apart(op_: Any, input: Any) -> tuple[Any, ...]:
    return look_at_many(op_, input, op_.pieces(input._array.shape))


def _refuse(function: str, left: dict[str, Any]) -> None:
    for name in left:
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


# --- pieces of one size, or of given sizes --------------------------------------------------------
@op
class Split(Parts):
    """Pieces of `split_size` along an axis; the last may be shorter."""

    name, params = "split", ("split_size", "dim")
    aten = "split.Tensor"
    saved_names = "split_size dim self_sym_sizes=self.sizes"
    split_size: int
    dim: int

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        step = self.split_size
        starts = range(0, shape[self.dim], step) if shape[self.dim] else (0,)
        return [Slice(self.dim, k, min(k + step, shape[self.dim])) for k in starts]

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.concat(g, self.dim)

    samples = drawn(real=[(2, -1, (2, 5)), (1, -1, (2, 0))], complex=[(1, -2, (2, 3))])


@function(returns="tuple[Tensor, ...]", settles=True)
def split(tensor: Any, split_size_or_sections: Any = None, dim: int = 0, **more: Any) -> Any:
    """Views of consecutive pieces of a dimension: of one size, or of the sizes given.

    Args:
        tensor: the tensor to cut.

    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    check_tensor(tensor, "split", "tensor")
    size = more.pop("split_size", split_size_or_sections)
    _refuse("split", more)
    if isinstance(size, (tuple, list)):
        return split_with_sizes(tensor, size, dim)
    return _apart(split_op(Split, tensor, one_int("split", "split_size", size, 1), dim), tensor)


def split_op(cls: Any, x: Any, size: int, dim: Any) -> Any:
    shape = x._array.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    d = one_dim(dim, len(shape))
    if size == 0 and shape[d]:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {shape[d]}"
        )
    return cls(max(size, 1), d)


@op
class SplitWithSizes(Parts):
    """Pieces of the given sizes along an axis."""

    name, params = "split_with_sizes", ("split_sizes", "dim")
    saved_names = "split_sizes dim self_sym_sizes=self.sizes"
    split_sizes: tuple[int, ...]
    dim: int

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        found = []
        start = 0
        for size in self.split_sizes:
            found.append(Slice(self.dim, start, start + size))
            start += size
        return found

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.concat(g, self.dim)

    samples = drawn(real=[((1, 0, 3), -1, (2, 4))], complex=[((2, 1), -2, (3, 2))])


@function(free=True, returns="tuple[Tensor, ...]")
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Views of consecutive pieces of a dimension, of the sizes given.

    >>> torch.split_with_sizes(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return _apart(sizes_op(SplitWithSizes, input, split_sizes, dim), input)


def sizes_op(cls: Any, x: Any, sizes: Any, dim: Any) -> Any:
    shape = x._array.shape
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    if not hasattr(sizes, "__iter__"):
        raise TypeError(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
            f"{dtypes.type_name(sizes)}"
        )
    given = ints("split_with_sizes", "split_sizes", (tuple(sizes),))
    d = one_dim(dim, len(shape))
    if any(n < 0 for n in given):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(given)}"
        )
    if sum(given) != shape[d]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[d]} (input tensor's "
            f"size at dimension {d + len(shape)}), but got split_sizes={list(given)}"
        )
    return cls(given, d)


def chunk_op(x: Any, chunks: int, dim: Any, even: Any, uneven: Any) -> Any:
    shape = x._array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = one_dim(dim, len(shape))
    size = -(-shape[d] // chunks)
    return uneven((0,) * chunks, d) if size == 0 else even(size, d)


@function(returns="tuple[Tensor, ...]", settles=True)
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """Views of at most `chunks` consecutive pieces of a dimension.

    >>> torch.chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return _apart(chunk_op(input, chunks, dim, Split, SplitWithSizes), input)


# --- pieces cut at indices ------------------------------------------------------------------------
@function(returns="tuple[Tensor, ...]")
def tensor_split(input: Any, indices_or_sections: Any = None, dim: int = 0, **more: Any) -> Any:
    """Views of consecutive pieces: that many, as even as can be, or cut at the indices given.

    >>> torch.tensor_split(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    where = more.pop("indices", more.pop("sections", indices_or_sections))
    _refuse("tensor_split", more)
    shape = input._array.shape
    if not shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    d = one_dim(dim, len(shape))
    n = shape[d]
    if isinstance(where, TensorBase):
        if is_batched(where):
            raise RuntimeError(
                "Batching rule not implemented for aten::tensor_split.tensor_indices_or_sections. "
                "We could not generate a fallback."
            )
        if where._array.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {where._array.ndim} dims"
            )
        if where._array.dtype != dtypes.int64.numpy:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{dtypes.of(where._array.dtype).scalar_type}"
            )
        where = where._array.tolist()
    if isinstance(where, (tuple, list)):
        cuts = [0, *ints("tensor_split", "indices", (where,)), n]
        if not where:
            cuts = [0, n]
    else:
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        if where >= 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        small, longer = divmod(n, where)
        cuts = [0]
        for k in range(where):
            cuts.append(cuts[-1] + small + (k < longer))
    return tuple([apply_view(Slice(d, a, b), input) for a, b in pairwise(cuts)])


def _export_split(name: str, dim: int, least: int, text: str, example: str, shown: str) -> None:
    """Make `tensor_split` along `dim` (0 for vectors) of tensors of `least` dimensions or more."""

    def split(input: Any, indices_or_sections: Any) -> Any:
        rank, where = input._array.ndim, indices_or_sections
        if rank < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                f"with {rank} dimensions!"
            )
        if isinstance(where, (str, float)):
            raise invalid(
                name, (input, where), "(Tensor input, int sections)",
                "(Tensor input, tuple of ints indices)",
            )  # fmt: skip
        at = min(dim, rank - 1)
        if not isinstance(where, (tuple, list)):
            n = input._array.shape[at]
            if where <= 0 or n % where:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {at}, but the size of the "
                    f"dimension {n} is not divisible by the split_size {where}!"
                )
        return tensor_split(input, where, at)

    function(returns="tuple[Tensor, ...]")(
        variant(split, name, describe(f"`tensor_split` along {text}.", example, shown))
    )


_export_split(
    "hsplit", 1, 1, "the columns", "torch.hsplit(torch.arange(4), 2)",
    "(tensor([0, 1]), tensor([2, 3]))",
)  # fmt: skip
_export_split(
    "vsplit", 0, 2, "the rows", "torch.vsplit(torch.eye(2), 2)",
    "(tensor([[1., 0.]]), tensor([[0., 1.]]))",
)  # fmt: skip
_export_split(
    "dsplit", 2, 3, "the third dimension",
    "[p.shape for p in torch.dsplit(torch.zeros(1, 1, 4), 2)]",
    "[torch.Size([1, 1, 2]), torch.Size([1, 1, 2])]",
)  # fmt: skip


# --- every index ----------------------------------------------------------------------------------
@op
class Unbind(Parts):
    """All the indices of an axis, each as a view."""

    name, params = "unbind", ("dim",)
    aten = "unbind.int"
    saved_names = "dim"
    dim: int

    def pieces(self, shape: tuple[int, ...]) -> list[Any]:
        return [Select(self.dim, k) for k in range(shape[self.dim])]

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        key = (..., None) + (v.ALL,) * (-self.dim - 1)
        return v.concat([v.window(part, key) for part in g], self.dim)

    samples = drawn(real=[(-2, (2, 3)), (-1, (3,))])


@function(returns="tuple[Tensor, ...]", settles=True)
def unbind(input: Any, dim: int = 0) -> Any:
    """Views of every index of a dimension.

    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if input._array.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return _apart(Unbind(one_dim(dim, input._array.ndim)), input)


@function(name="__len__", free=False, quick=length)
def _len(input: Any) -> int:
    """The size of the first dimension."""
    shape = input._array.shape
    if not shape:
        raise TypeError("len() of a 0-d tensor")
    return int(shape[0])


@function(name="__iter__", free=False)
def _iter(input: Any) -> Any:
    """The indices of the first dimension, one after another, as views."""
    if input._array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    rows = []
    for k in range(input._array.shape[0]):
        row = row_of(input, k, "multi-output")
        if row is None:
            return iter(unbind(input, 0))
        rows.append(row)
    return iter(rows)


@function(name="__reversed__", free=False)
def _reversed(input: Any) -> Any:
    """The first dimension in reverse order."""
    return input if input._array.ndim == 0 else methods["flip"](input, 0)
