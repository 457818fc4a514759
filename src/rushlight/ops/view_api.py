"""Public functions of view ops: other shapes, other orders, repeated dimensions; and the word
answers that choose between a view and a copy.

Op files and `tensor` may import this.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import wrap_as
from rushlight.core.record import apply
from rushlight.core.views import look_at
from rushlight.errors import broadcast_mismatch, dim_out_of_range
from rushlight.ops.arguments import expect_tensor, one_dim
from rushlight.ops.memory import attribute, contiguous, strides_of
from rushlight.ops.table import function, methods, word_for
from rushlight.ops.view import (
    Alias,
    Expand,
    Permute,
    ReshapeAlias,
    SqueezeAll,
    SqueezeMany,
    SqueezeOne,
    T,
    Transpose,
    UnsafeView,
    Unsqueeze,
    ViewShape,
)

__all__ = [
    "broadcast_shape", "expand", "ints", "one_int", "permute", "reshape", "squeeze_op", "t_op",
    "transpose", "tuple_of_ints", "unsqueeze", "unsqueeze_op", "view",
]  # fmt: skip


# --- arguments ------------------------------------------------------------------------------------
def ints(function_name: str, name: str, given: Any) -> tuple[int, ...]:
    """What the user wrote as sizes or dims, `f(2, 3)` or `f((2, 3))`, as a tuple of ints."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    elif not given:
        raise TypeError(f'{function_name}() missing 1 required positional arguments: "{name}"')
    found = []
    for position, item in enumerate(given):
        if not hasattr(item, "__index__"):
            raise TypeError(
                f"{function_name}(): argument '{name}' failed to unpack the object at pos "
                f'{position + 1} with error "type must be tuple of ints,but got '
                f'{type(item).__name__}"'
            )
        found.append(int(item.__index__()))
    return tuple(found)


def tuple_of_ints(function_name: str, name: str, given: Any, position: int) -> tuple[int, ...]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{function_name}(): argument '{name}' (position {position}) must be tuple of ints, "
            f"not {type(given).__name__}"
        )
    return ints(function_name, name, (given,))


def one_int(function_name: str, name: str, given: Any, position: int) -> int:
    """An int argument, or PyTorch's TypeError."""
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise TypeError(
            f"{function_name}(): argument '{name}' (position {position}) must be int, "
            f"not {type(given).__name__}"
        )
    return int(given.__index__())


def _full_shape(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """A shape with its -1 worked out, checked against the number of elements."""
    unknown = -1
    known = 1
    for position, n in enumerate(shape):
        if n == -1:
            if unknown >= 0:
                raise RuntimeError("only one dimension can be inferred")
            unknown = position
        elif n < 0:
            raise RuntimeError(
                f"invalid shape dimension {n} at index {position} of shape {list(shape)}"
            )
        else:
            known *= n
    if unknown < 0:
        if known == size:
            return shape
    elif known and size % known == 0:
        return (*shape[:unknown], size // known, *shape[unknown + 1 :])
    elif known == 0 and size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")


def _can_view(array: Any, shape: tuple[int, ...]) -> bool:
    """Whether the elements, read in order, can be seen in another shape without a copy."""
    if array.flags.c_contiguous or array.size == 0 or shape == array.shape:
        return True
    sizes = [n for n in array.shape if n != 1]
    strides = [s for s, n in zip(array.strides, array.shape, strict=True) if n != 1]
    d = len(shape) - 1
    chunk = 1
    for k in range(len(sizes) - 1, -1, -1):
        chunk *= sizes[k]
        if k == 0 or strides[k - 1] != sizes[k] * strides[k]:  # a run of memory ends here
            seen = 1
            while d >= 0 and (seen < chunk or shape[d] == 1):
                seen *= shape[d]
                d -= 1
            if seen != chunk:
                return False
            chunk = 1
    return True


# --- shapes ---------------------------------------------------------------------------------------
@function(free=False)
def view(input: Any, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """view(*shape) -> Tensor, view(dtype) -> Tensor

    The same memory in another shape, or read as another dtype.

    >>> import rushlight as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        dtype = shape[0]
    if dtype is not None:
        return _view_dtype(input, dtype)
    if size is not None:
        shape = (size,)
    if not shape:
        raise TypeError(
            "view() received an invalid combination of arguments - got (), but expected one of:\n"
            " * (torch.dtype dtype)\n * (tuple of ints size)\n"
        )
    if not isinstance(shape[0], (tuple, list)) and not hasattr(shape[0], "__index__"):
        raise TypeError(
            "view() received an invalid combination of arguments - got "
            f"({', '.join(type(s).__name__ for s in shape)}), but expected one of:\n"
            " * (torch.dtype dtype)\n * (tuple of ints size)\n"
        )
    array = input.array
    sizes = _full_shape(ints("view", "size", shape), array.size)
    if not _can_view(array, sizes):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return look_at(ViewShape(sizes), input)


def _view_dtype(input: Any, dtype: dtypes.dtype) -> Any:
    """The same memory as another dtype: PyTorch makes it no part of the graph."""
    array = input.array
    have = dtypes.of(array.dtype)
    start = f"to view {have.scalar_type} as {dtype.scalar_type} (different element sizes)"
    if have.itemsize != dtype.itemsize:
        if array.ndim == 0:
            raise RuntimeError(f"self.dim() cannot be 0 {start}")
        strides = strides_of(array)
        if have.itemsize < dtype.itemsize:
            ratio = dtype.itemsize // have.itemsize
            if array.shape[-1] % ratio:
                raise RuntimeError(
                    f"self.size(-1) must be divisible by {ratio} {start}, but got {array.shape[-1]}"
                )
            for d, stride in enumerate(strides[:-1]):
                if stride % ratio:
                    raise RuntimeError(
                        f"self.stride({d}) must be divisible by {ratio} {start}, but got {stride}"
                    )
        if strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {start}, but got {strides[-1]}")
    return wrap_as(v.bits(array, dtype.numpy), input.memory)


@function(method=False)
def reshape(input: Any, shape: Any) -> Any:
    """reshape(input, shape) -> Tensor

    The same elements in another shape: a view where the strides allow, otherwise a copy.

    >>> import rushlight as torch
    >>> torch.reshape(torch.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    expect_tensor(input, "reshape")
    array = input.array
    if type(shape) is not tuple:
        shape = tuple_of_ints("reshape", "shape", shape, 2)
    sizes = _full_shape(ints("reshape", "shape", (shape,)), array.size)
    if array.flags.c_contiguous:
        return look_at(ViewShape(sizes), input)
    if _can_view(array, sizes):
        return look_at(ReshapeAlias(sizes), input)
    return apply(UnsafeView(sizes), _contiguous_clone(input))


@function(name="reshape", free=False)
def _reshape_method(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """reshape(*shape) -> Tensor

    The same elements in another shape: a view where the strides allow, otherwise a copy.

    >>> import rushlight as torch
    >>> torch.arange(4).reshape(2, -1)
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, ints("reshape", "shape", sizes if shape is None else (shape,)))


def _contiguous_clone(input: Any) -> Any:
    return methods["clone"](input, memory_format=dtypes.contiguous_format)


@function(free=False)
def view_as(input: Any, other: Any) -> Any:
    """view_as(other) -> Tensor

    A view in the shape of `other`.

    >>> import rushlight as torch
    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(input, tuple(other.array.shape))


@function(free=False)
def reshape_as(input: Any, other: Any) -> Any:
    """reshape_as(other) -> Tensor

    The same elements in the shape of `other`.

    >>> import rushlight as torch
    >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, tuple(other.array.shape))


@function()
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """flatten(input, start_dim=0, end_dim=-1) -> Tensor

    Dimensions `start_dim` to `end_dim` made into one.

    >>> import rushlight as torch
    >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    expect_tensor(input, "flatten")
    shape = input.array.shape
    rank = len(shape)
    first, last = one_dim(start_dim, rank), one_dim(end_dim, rank)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if rank == 0:
        return reshape(input, (1,))
    if first == last:
        return input
    first, last = first + rank, last + rank
    return reshape(input, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]))


@function()
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """unflatten(input, dim, sizes) -> Tensor

    One dimension made into several; one of the sizes may be -1.

    >>> import rushlight as torch
    >>> torch.unflatten(torch.zeros(3, 4), 1, (2, -1)).shape
    torch.Size([3, 2, 2])
    """
    expect_tensor(input, "unflatten")
    shape = input.array.shape
    d = one_dim(dim, len(shape)) + len(shape)
    given = tuple_of_ints("unflatten", "sizes", sizes, 3)
    if not given:
        raise RuntimeError("unflatten: sizes must be non-empty")
    n = shape[d]
    try:
        full = _full_shape(given, n)
    except RuntimeError as error:
        if "is invalid for" not in str(error):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(given)} don't multiply up to the size of dim "
            f"{d} ({n}) in the input tensor"
        ) from None
    return view(input, (*shape[:d], *full, *shape[d + 1 :]))


@function()
def ravel(input: Any) -> Any:
    """ravel(input) -> Tensor

    All elements as one contiguous dimension; a copy only if it must be.

    >>> import rushlight as torch
    >>> torch.ravel(torch.eye(2))
    tensor([1., 0., 0., 1.])
    """
    expect_tensor(input, "ravel")
    return view(contiguous(input), (-1,))


# --- order of dimensions --------------------------------------------------------------------------
@function(method=False)
def permute(input: Any, dims: Any) -> Any:
    """permute(input, dims) -> Tensor

    A view with the dimensions in the order `dims`.

    >>> import rushlight as torch
    >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    expect_tensor(input, "permute")
    order = tuple_of_ints("permute", "dims", dims, 2)
    rank = input.array.ndim
    if len(order) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal "
            f"to len(dims) = {len(order)}"
        )
    found = tuple([one_dim(d, rank) for d in order])
    if len(set(found)) != rank:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return look_at(Permute(found), input)


@function(name="permute", free=False)
def _permute_method(input: Any, *order: Any, dims: Any = None) -> Any:
    """permute(*dims) -> Tensor

    A view with the dimensions in the order `dims`.

    >>> import rushlight as torch
    >>> torch.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    return permute(input, ints("permute", "dims", order if dims is None else (dims,)))


@function()
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """transpose(input, dim0, dim1) -> Tensor

    A view with two dimensions exchanged.

    >>> import rushlight as torch
    >>> torch.transpose(torch.zeros(2, 3, 4), 0, 2).shape
    torch.Size([4, 3, 2])
    """
    expect_tensor(input, "transpose")
    rank = input.array.ndim
    return look_at(Transpose(one_dim(dim0, rank), one_dim(dim1, rank)), input)


@function(name="swapaxes")
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """swapaxes(input, axis0, axis1) -> Tensor

    Another name of `transpose`.

    >>> import rushlight as torch
    >>> torch.swapaxes(torch.zeros(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    return transpose(input, axis0, axis1)


@function()
def swapdims(input: Any, dim0: int, dim1: int) -> Any:
    """swapdims(input, dim0, dim1) -> Tensor

    Another name of `transpose`.

    >>> import rushlight as torch
    >>> torch.swapdims(torch.zeros(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    return transpose(input, dim0, dim1)


@function()
def t(input: Any) -> Any:
    """t(input) -> Tensor

    A matrix transposed, as a view.

    >>> import rushlight as torch
    >>> torch.t(torch.zeros(2, 3)).shape
    torch.Size([3, 2])
    """
    expect_tensor(input, "t")
    return look_at(t_op(T, input, "t"), input)


def t_op(cls: Any, input: Any, name: str) -> Any:
    """The op that `t` and `t_` mean."""
    rank = input.array.ndim
    if rank > 2:
        raise RuntimeError(f"{name}() expects a tensor with <= 2 dimensions, but self is {rank}D")
    return cls(rank)


def _turned(input: Any, name: str, most: int) -> Any:
    """The last two dimensions exchanged, for `mT`, `mH`, `H` and `adjoint`."""
    rank = input.array.ndim
    if rank == 0:
        warnings.warn(
            f"{name} is deprecated on 0-D tensors. Consider using x.conj() or x.",
            UserWarning,
            stacklevel=3,
        )
        return look_at(Permute(()), input)
    if rank == 1 or rank > most:
        what = "matrices (2-D tensors)" if most == 2 else "matrices or batches of matrices"
        more = " For batches of matrices, consider using tensor.mH" if rank > 2 else ""
        raise RuntimeError(f"{name} is only supported on {what}. Got {rank}-D tensor.{more}")
    return look_at(Transpose(-2, -1), input)


def _conjugated(x: Any) -> Any:
    return methods["conj"](x) if x.array.dtype.kind == "c" else x


@function()
def adjoint(input: Any) -> Any:
    """adjoint(input) -> Tensor

    The last two dimensions exchanged, and the elements conjugated.

    >>> import rushlight as torch
    >>> torch.adjoint(torch.tensor([[1., 2.]]))
    tensor([[1.],
            [2.]])
    """
    expect_tensor(input, "adjoint")
    return _conjugated(_turned(input, "tensor.adjoint()", 64))


def _T(input: Any) -> Any:
    """All dimensions in reverse order, as a view."""
    rank = input.array.ndim
    if rank not in (0, 2):
        if rank == 1:
            return look_at(Permute((-1,)), input)
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated and it will throw an error in a future release. Consider `x.mT` to "
            "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor.",
            UserWarning,
            stacklevel=2,
        )
    elif rank == 0:
        warnings.warn(
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
            UserWarning,
            stacklevel=2,
        )
    return look_at(Permute(tuple(range(-1, -rank - 1, -1))), input)


def _mT(input: Any) -> Any:
    """The last two dimensions exchanged, as a view."""
    return _turned(input, "tensor.mT", 64)


def _H(input: Any) -> Any:
    """A matrix transposed and conjugated."""
    return _conjugated(_turned(input, "tensor.H", 2))


def _mH(input: Any) -> Any:
    """The last two dimensions exchanged, and the elements conjugated."""
    return _conjugated(_turned(input, "tensor.mH", 64))


attribute("T", _T)
attribute("mT", _mT)
attribute("H", _H)
attribute("mH", _mH)


@function()
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """movedim(input, source, destination) -> Tensor

    Dimensions moved to other places; the rest keep their order.

    >>> import rushlight as torch
    >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    expect_tensor(input, "movedim")
    src = list(source) if isinstance(source, (tuple, list)) else [source]
    dst = list(destination) if isinstance(destination, (tuple, list)) else [destination]
    if len(src) != len(dst):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({src} dims) should contain the "
            f"same number of dims as destination ({dst} dims)"
        )
    rank = input.array.ndim
    a = [one_dim(d, rank) for d in src]
    b = [one_dim(d, rank) for d in dst]
    for found, title, given in ((a, "source", src), (b, "destination", dst)):
        if len(set(found)) != len(found):
            raise RuntimeError(f"movedim: repeated dim in `{title}` ({given})")
    if rank == 0:
        return look_at(Alias(), input)
    order: list[Any] = [None] * rank
    for s, d in zip(a, b, strict=True):
        order[d] = s
    rest = iter([d for d in range(-rank, 0) if d not in a])
    return look_at(Permute(tuple([next(rest) if d is None else d for d in order])), input)


@function()
def moveaxis(input: Any, source: Any, destination: Any) -> Any:
    """moveaxis(input, source, destination) -> Tensor

    Another name of `movedim`.

    >>> import rushlight as torch
    >>> torch.moveaxis(torch.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    return movedim(input, source, destination)


# --- dimensions of size 1, and repeated ones ------------------------------------------------------
def unsqueeze_op(cls: Any, input: Any, dim: Any) -> Any:
    rank = input.array.ndim + 1
    d = one_int("unsqueeze", "dim", dim, 1)
    if not -rank <= d < rank:
        raise IndexError(dim_out_of_range(d, rank))
    return cls(d - rank if d >= 0 else d)


@function()
def unsqueeze(input: Any, dim: int) -> Any:
    """unsqueeze(input, dim) -> Tensor

    A view with a new dimension of size 1 at `dim`.

    >>> import rushlight as torch
    >>> torch.unsqueeze(torch.zeros(3), -1).shape
    torch.Size([3, 1])
    """
    expect_tensor(input, "unsqueeze")
    return look_at(unsqueeze_op(Unsqueeze, input, dim), input)


def squeeze_op(input: Any, dim: Any, every: Any, one: Any, many: Any) -> Any:
    shape = input.array.shape
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


@function()
def squeeze(input: Any, dim: Any = None) -> Any:
    """squeeze(input, dim=None) -> Tensor

    A view without dimensions of size 1: all of them, or those named.

    >>> import rushlight as torch
    >>> torch.squeeze(torch.zeros(1, 3, 1)).shape
    torch.Size([3])
    """
    expect_tensor(input, "squeeze")
    return look_at(squeeze_op(input, dim, SqueezeAll, SqueezeOne, SqueezeMany), input)


@function(free=False)
def expand(input: Any, *sizes: Any, size: Any = None, implicit: bool = False) -> Any:
    """expand(*sizes) -> Tensor

    A view with dimensions of size 1 repeated; -1 keeps a size.

    >>> import rushlight as torch
    >>> torch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    given = ints("expand", "size", sizes if size is None else (size,))
    shape = input.array.shape
    lead = len(given) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({_type_name(input)}{{{list(shape)}}}, size={list(given)}): the number of "
            f"sizes provided ({len(given)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(shape)})"
        )
    full = list(given)
    for d, n in enumerate(given):
        have = shape[d - lead] if d >= lead else 1
        if n == -1:
            if d < lead:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {d}"
                )
            full[d] = have
        elif have != n and (have != 1 or n < 0):
            if n < -1 and d < lead:
                raise RuntimeError(f"Trying to create tensor with negative dimension {n}")
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at "
                f"non-singleton dimension {d}.  Target sizes: {list(given)}.  Tensor sizes: "
                f"{list(shape)}"
            )
    return look_at(Expand(tuple(full)), input)


def _type_name(x: Any) -> str:
    return f"torch.{dtypes.of(x.array.dtype).scalar_type}Tensor"


@function(free=False)
def expand_as(input: Any, other: Any) -> Any:
    """expand_as(other) -> Tensor

    `expand` to the shape of `other`.

    >>> import rushlight as torch
    >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, tuple(other.array.shape))


@function()
def broadcast_to(input: Any, size: Any) -> Any:
    """broadcast_to(input, size) -> Tensor

    A view of `input` in the broadcast shape `size`.

    >>> import rushlight as torch
    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    expect_tensor(input, "broadcast_to")
    return expand(input, tuple_of_ints("broadcast_to", "size", size, 2))


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that several broadcast to, or PyTorch's error."""
    out: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(out), len(shape))
        a = (1,) * (rank - len(out)) + tuple(out)
        b = (1,) * (rank - len(shape)) + tuple(shape)
        if any(m != n and m != 1 and n != 1 for m, n in zip(a, b, strict=True)):
            raise RuntimeError(broadcast_mismatch(out, shape))
        out = tuple([n if m == 1 else m for m, n in zip(a, b, strict=True)])
    return out


@function(method=False)
def broadcast_tensors(*tensors: Any) -> Any:
    """broadcast_tensors(*tensors) -> tuple of Tensors

    Views of all the tensors in the shape that they broadcast to.

    >>> import rushlight as torch
    >>> a, b = torch.broadcast_tensors(torch.zeros(3, 1), torch.zeros(2))
    >>> a.shape
    torch.Size([3, 2])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    shape = broadcast_shape([x.array.shape for x in tensors])
    return tuple([x if x.array.shape == shape else expand(x, shape) for x in tensors])


def _at_least(tensors: tuple[Any, ...], each: Any) -> Any:
    if len(tensors) == 1:
        if isinstance(tensors[0], (tuple, list)):
            return tuple([each(x) for x in tensors[0]])
        return each(tensors[0])
    return tuple([each(x) for x in tensors])


@function(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """atleast_1d(*tensors) -> Tensor or tuple of Tensors

    0-d tensors as 1-d ones; others as they are.

    >>> import rushlight as torch
    >>> torch.atleast_1d(torch.tensor(2))
    tensor([2])
    """
    return _at_least(tensors, lambda x: x if x.array.ndim else reshape(x, (1,)))


@function(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """atleast_2d(*tensors) -> Tensor or tuple of Tensors

    At least two dimensions, new ones in front.

    >>> import rushlight as torch
    >>> torch.atleast_2d(torch.tensor([1, 2]))
    tensor([[1, 2]])
    """

    def each(x: Any) -> Any:
        rank = x.array.ndim
        return reshape(x, (1, 1)) if rank == 0 else unsqueeze(x, 0) if rank == 1 else x

    return _at_least(tensors, each)


@function(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """atleast_3d(*tensors) -> Tensor or tuple of Tensors

    At least three dimensions: vectors become 1×n×1, matrices n×m×1.

    >>> import rushlight as torch
    >>> torch.atleast_3d(torch.tensor([1, 2])).shape
    torch.Size([1, 2, 1])
    """

    def each(x: Any) -> Any:
        rank = x.array.ndim
        if rank == 0:
            return reshape(x, (1, 1, 1))
        if rank == 1:
            return unsqueeze(unsqueeze(x, 0), -1)
        return unsqueeze(x, -1) if rank == 2 else x

    return _at_least(tensors, each)


@word_for("reshape")
def _reshape(x: Any, shape: Any) -> Any:
    return reshape(x, shape)
