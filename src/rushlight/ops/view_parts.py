"""Public functions of view ops: regions and pieces of a tensor, and its memory by explicit strides.

Op files and `tensor` may import this.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import ByteBounds
from rushlight.core.graph import TensorBase, wrap_as
from rushlight.core.record import finish
from rushlight.core.views import look_at, look_at_many
from rushlight.ops.arguments import expect_tensor, one_dim
from rushlight.ops.memory import strides_of
from rushlight.ops.table import function, word_for
from rushlight.ops.view import (
    AsStrided,
    Diagonal,
    Select,
    Slice,
    Split,
    SplitWithSizes,
    Unbind,
    Unfold,
    ViewShape,
)
from rushlight.ops.view_api import ints, one_int, tuple_of_ints

__all__ = ["as_strided_op", "chunk_op", "narrow_op", "sizes_op", "split_op", "unbind"]


# --- regions --------------------------------------------------------------------------------------
@function()
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """narrow(input, dim, start, length) -> Tensor

    A view of `length` indices of a dimension, from `start`.

    >>> import rushlight as torch
    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    expect_tensor(input, "narrow")
    return look_at(narrow_op(input, dim, start, length), input)


def narrow_op(input: Any, dim: Any, start: Any, length: Any) -> Slice:
    """The slice that `narrow` means, checked."""
    shape = input.array.shape
    rank = len(shape)
    if rank == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, TensorBase):
        if start.array.ndim or start.array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start.array.item())
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


@function()
def select(input: Any, dim: int, index: int) -> Any:
    """select(input, dim, index) -> Tensor

    A view of one index of a dimension, which disappears.

    >>> import rushlight as torch
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    expect_tensor(input, "select")
    shape = input.array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = one_dim(dim, len(shape))
    i = one_int("select", "index", index, 3)
    if not -shape[d] <= i < shape[d]:
        raise IndexError(
            f"select(): index {i} out of range for tensor of size {list(shape)} at dimension "
            f"{d + len(shape)}"
        )
    return look_at(Select(d, i), input)


def _apart(op_: Any, input: Any) -> tuple[Any, ...]:
    return look_at_many(op_, input, op_.pieces(input.array.shape))


@function()
def split(tensor: Any, split_size_or_sections: Any = None, dim: int = 0, **more: Any) -> Any:
    """split(tensor, split_size_or_sections, dim=0) -> tuple of Tensors

    Views of consecutive pieces of a dimension: of one size, or of the sizes given.

    >>> import rushlight as torch
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    expect_tensor(tensor, "split", "tensor")
    size = more.pop("split_size", split_size_or_sections)
    if isinstance(size, (tuple, list)):
        return split_with_sizes(tensor, size, dim)
    return _apart(split_op(Split, tensor, one_int("split", "split_size", size, 1), dim), tensor)


def split_op(cls: Any, x: Any, size: int, dim: Any) -> Any:
    shape = x.array.shape
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


@function(free=True)
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """split_with_sizes(input, split_sizes, dim=0) -> tuple of Tensors

    Views of consecutive pieces of a dimension, of the sizes given.

    >>> import rushlight as torch
    >>> torch.split_with_sizes(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    expect_tensor(input, "split_with_sizes")
    return _apart(sizes_op(SplitWithSizes, input, split_sizes, dim), input)


def sizes_op(cls: Any, x: Any, sizes: Any, dim: Any) -> Any:
    shape = x.array.shape
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
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
    shape = x.array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = one_dim(dim, len(shape))
    size = -(-shape[d] // chunks)
    return uneven((0,) * chunks, d) if size == 0 else even(size, d)


@function()
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """chunk(input, chunks, dim=0) -> tuple of Tensors

    Views of at most `chunks` consecutive pieces of a dimension.

    >>> import rushlight as torch
    >>> torch.chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    expect_tensor(input, "chunk")
    return _apart(chunk_op(input, chunks, dim, Split, SplitWithSizes), input)


@function()
def tensor_split(input: Any, indices_or_sections: Any = None, dim: int = 0, **more: Any) -> Any:
    """tensor_split(input, indices_or_sections, dim=0) -> tuple of Tensors

    Views of consecutive pieces: that many, as even as can be, or cut at the indices given.

    >>> import rushlight as torch
    >>> torch.tensor_split(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    expect_tensor(input, "tensor_split")
    where = more.pop("indices", more.pop("sections", indices_or_sections))
    shape = input.array.shape
    if not shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    d = one_dim(dim, len(shape))
    n = shape[d]
    if isinstance(where, TensorBase):
        if where.array.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {where.array.ndim} dims"
            )
        where = where.array.tolist()
    if isinstance(where, (tuple, list)):
        cuts = [0, *ints("tensor_split", "indices", (where,)), n]
        if not where:
            cuts = [0, n]
    else:
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        small, longer = divmod(n, where)
        cuts = [0]
        for k in range(where):
            cuts.append(cuts[-1] + small + (k < longer))
    return tuple([look_at(Slice(d, a, b), input) for a, b in pairwise(cuts)])


def _split_along(name: str, input: Any, where: Any, dim: int, least: int) -> Any:
    rank = input.array.ndim
    if rank < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
            f"with {rank} dimensions!"
        )
    if isinstance(where, (str, float)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, "
            f"{type(where).__name__}), but expected one of:\n * (Tensor input, int sections)\n"
            " * (Tensor input, tuple of ints indices)\n"
        )
    if not isinstance(where, (tuple, list)):
        n = input.array.shape[dim]
        if where <= 0 or n % where:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                f"dimension {n} is not divisible by the split_size {where}!"
            )
    return tensor_split(input, where, dim)


@function()
def hsplit(input: Any, indices_or_sections: Any) -> Any:
    """hsplit(input, indices_or_sections) -> tuple of Tensors

    `tensor_split` along the columns.

    >>> import rushlight as torch
    >>> torch.hsplit(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    expect_tensor(input, "hsplit")
    return _split_along("hsplit", input, indices_or_sections, int(input.array.ndim > 1), 1)


@function()
def vsplit(input: Any, indices_or_sections: Any) -> Any:
    """vsplit(input, indices_or_sections) -> tuple of Tensors

    `tensor_split` along the rows.

    >>> import rushlight as torch
    >>> torch.vsplit(torch.eye(2), 2)
    (tensor([[1., 0.]]), tensor([[0., 1.]]))
    """
    expect_tensor(input, "vsplit")
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


@function()
def dsplit(input: Any, indices_or_sections: Any) -> Any:
    """dsplit(input, indices_or_sections) -> tuple of Tensors

    `tensor_split` along the third dimension.

    >>> import rushlight as torch
    >>> [p.shape for p in torch.dsplit(torch.zeros(1, 1, 4), 2)]
    [torch.Size([1, 1, 2]), torch.Size([1, 1, 2])]
    """
    expect_tensor(input, "dsplit")
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


@function()
def unbind(input: Any, dim: int = 0) -> Any:
    """unbind(input, dim=0) -> tuple of Tensors

    Views of every index of a dimension.

    >>> import rushlight as torch
    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    expect_tensor(input, "unbind")
    if input.array.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return _apart(Unbind(one_dim(dim, input.array.ndim)), input)


@function(free=False)
def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """unfold(dimension, size, step) -> Tensor

    A view of windows of `size` along a dimension, every `step`; the window comes last.

    >>> import rushlight as torch
    >>> torch.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    shape = input.array.shape
    d = one_dim(dimension, len(shape))
    n = shape[d] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(
            f"maximum size for tensor at dimension {d + max(len(shape), 1)} is {n} but size is "
            f"{size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return look_at(Slice(-1, 0, size), look_at(ViewShape((1,)), input))
    return look_at(Unfold(d, size, step), input)


@function()
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """diagonal(input, offset=0, dim1=0, dim2=1) -> Tensor

    A view of a diagonal of two dimensions, as the last dimension.

    >>> import rushlight as torch
    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    expect_tensor(input, "diagonal")
    rank = input.array.ndim
    a, b = one_dim(dim1, rank), one_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return look_at(Diagonal(offset, a, b), input)


def as_strided_op(cls: Any, input: Any, size: Any, stride: Any, storage_offset: Any) -> Any:
    array = input.array
    shape = tuple_of_ints("as_strided", "size", size, 2)
    steps = tuple_of_ints("as_strided", "stride", stride, 3)
    bounds = ByteBounds(array)
    width = array.dtype.itemsize
    here = bounds.offset // width
    offset = here if storage_offset is None else storage_offset
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in steps):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(steps)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    last = offset + 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    if 0 not in shape and last * width > bounds.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and "
            f"itemsize {width} requiring a storage size of {last * width} are out of bounds for "
            f"storage of size {bounds.nbytes}"
        )
    return cls(shape, steps, offset, offset - here, strides_of(array))


@function()
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """as_strided(input, size, stride, storage_offset=None) -> Tensor

    A view of the memory behind `input` by explicit sizes, strides and offset, in elements.

    >>> import rushlight as torch
    >>> torch.as_strided(torch.arange(6), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    expect_tensor(input, "as_strided")
    return look_at(as_strided_op(AsStrided, input, size, stride, storage_offset), input)


@function()
def detach(input: Any) -> Any:
    """detach(input) -> Tensor

    The same memory, without history: no gradient flows through it.

    >>> import rushlight as torch
    >>> torch.ones(2, requires_grad=True).detach()
    tensor([1., 1.])
    """
    expect_tensor(input, "detach")
    return finish(wrap_as(v.window(input.array, (...,)), input.memory))


@word_for("strided")
def _strided(x: Any, shape: Any, strides: Any, offset: int) -> Any:
    return as_strided(x, shape, strides, offset)
