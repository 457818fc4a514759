"""Views in another shape; the choice between a view and a copy: `view`, `reshape`, `flatten`."""

from __future__ import annotations

from math import prod
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import put_off
from rushlight.core.families import Linear, ViewOp
from rushlight.core.graph import wrap_alias
from rushlight.core.record import apply
from rushlight.core.views import plain_views
from rushlight.core.views.views import apply_view
from rushlight.errors import sentence
from rushlight.ops.checks import check_tensor, ints, one_dim, tuple_of_ints
from rushlight.ops.registry import function, implements, methods, op
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.shape.contiguous import contiguous, strides_of


class Reshape(Linear):
    """The same elements in the same order, in another shape."""

    params = ("shape",)
    shape: tuple[int, ...]

    def forward(self, x: Any) -> Any:
        return v.reshape(x, self.shape)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.reshape(g, shape)


@op
class ViewShape(Reshape, ViewOp):
    """`view`: only where the strides allow it, which the public functions check."""

    name = "view"
    saved_names = "self_sym_sizes=self.sizes"

    samples = drawn(real=[((3, 2), (2, 3)), ((1, 1), ()), ((2, 0), (0, 3))])


@op
class ReshapeAlias(Reshape, ViewOp):
    """What `reshape` records where a view is possible though the input is not contiguous."""

    name = "reshape_alias"
    aten = "_reshape_alias.default"

    samples = drawn(real=[((2, 3, 1), (2, 3))])


@op
class UnsafeView(Reshape):
    """`view` of a copy that nothing else refers to: the result counts as a tensor of its own."""

    name, aten = "unsafe_view", "_unsafe_view.default"
    saved_names = "self_sym_sizes=self.sizes"

    samples = drawn(real=[((3, 2), (2, 3))])


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
    wanted = f"a multiple of {known}" if unknown >= 0 else f"{known}"
    raise RuntimeError(
        sentence(
            f"shape '{list(shape)}' is invalid for input of size {size}",
            "",
            f"The shape asks for {wanted} elements, and there are {size}.",
        )
    )


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


plain_views.view_ops.view = ViewShape


@function(free=False, settles=True, quick=plain_views.view, told=True)
def view(input: Any, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """The same memory in another shape, or read as another dtype.

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
    array = input._array
    sizes = _full_shape(ints("view", "size", shape), array.size)
    if not _can_view(array, sizes):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return apply_view(ViewShape(sizes), input)


def _view_dtype(input: Any, dtype: dtypes.dtype) -> Any:
    """The same memory as another dtype: PyTorch makes it no part of the graph."""
    array = input._array
    bits = put_off(array)
    if bits:
        what = "conjugate view tensors" if bits & 1 else "tensors with negative bit set"
        raise RuntimeError(
            f"torch.Tensor.view is not supported for {what} when converting to a different dtype."
        )
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
    return wrap_alias(v.bits(array, dtype.numpy), input)


@function(free=False)
def view_as(input: Any, other: Any) -> Any:
    """A view in the shape of `other`.

    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(input, tuple(other._array.shape))


@function(method=False, settles=True, quick=plain_views.view)
def reshape(input: Any, shape: Any) -> Any:
    """The same elements in another shape: a view where the strides allow, otherwise a copy.

    >>> torch.reshape(torch.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    check_tensor(input, "reshape")
    array = input._array
    if type(shape) is not tuple:
        shape = tuple_of_ints("reshape", "shape", shape, 2)
    sizes = _full_shape(ints("reshape", "shape", (shape,)), array.size)
    if array.flags.c_contiguous:
        return apply_view(ViewShape(sizes), input)
    if _can_view(array, sizes):
        return apply_view(ReshapeAlias(sizes), input)
    return apply(UnsafeView(sizes), _contiguous_clone(input))


@function(name="reshape", free=False, settles=True, quick=plain_views.view, told=True)
def _reshape_method(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """The same elements in another shape: a view where the strides allow, otherwise a copy.

    >>> torch.arange(4).reshape(2, -1)
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, ints("reshape", "shape", sizes if shape is None else (shape,)))


def _contiguous_clone(input: Any) -> Any:
    return methods["clone"](input, memory_format=dtypes.contiguous_format)


@function(free=False)
def reshape_as(input: Any, other: Any) -> Any:
    """The same elements in the shape of `other`.

    >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, tuple(other._array.shape))


@implements("reshape")
def _reshape(x: Any, shape: Any) -> Any:
    return reshape(x, shape)


@function(settles=True, quick=plain_views.flatten)
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Dimensions `start_dim` to `end_dim` made into one.

    >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    shape = input._array.shape
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
    """One dimension made into several; one of the sizes may be -1.

    Args:
        sizes: the sizes that `dim` becomes; one may be -1.

    >>> torch.unflatten(torch.zeros(3, 4), 1, (2, -1)).shape
    torch.Size([3, 2, 2])
    """
    shape = input._array.shape
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
    """All elements as one contiguous dimension; a copy only if it must be.

    >>> torch.ravel(torch.eye(2))
    tensor([1., 0., 0., 1.])
    """
    return view(contiguous(input), (-1,))
