"""What can be asked about a tensor's memory and shape: strides, offsets, sizes, addresses.

Note [Strides of size-1 axes]
    A stride of an axis of size 1 means nothing to NumPy, which writes 0 for new axes. PyTorch
    shows such an axis as if it were contiguous with what follows; `strides_of` does the same.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import ref

from rushlight import dtypes
from rushlight.arrays.batched import NO_STORAGE, bottom
from rushlight.arrays.host import ByteBounds, address, is_sparse, root_of
from rushlight.arrays.layouts import lies_in, shown_strides
from rushlight.arrays.making import row_strides
from rushlight.core import plain_calls
from rushlight.ops.checks import one_dim, varies
from rushlight.ops.registry import function, methods, settle
from rushlight.size import unchecked


def attribute(name: str, read: Any, settles: bool = False) -> None:
    """Let `tensor` attach a property rather than a method."""
    made: Any = property(settle(read) if settles else read, doc=read.__doc__)
    methods[name] = made


def strides_of(array: Any) -> tuple[int, ...]:
    """The strides of a raw array in elements; see Note [Strides of size-1 axes]."""
    width = array.dtype.itemsize
    if 0 in array.strides:
        if array.size == 0:
            return row_strides(array.shape)
        return tuple([s // width for s in shown_strides(array)])
    return tuple([s // width for s in array.strides])


# --- what can be asked ----------------------------------------------------------------------------
@function(free=False)
def is_contiguous(input: Any, memory_format: Any = dtypes.contiguous_format) -> bool:
    """Whether the elements lie in memory in order, without gaps.

    >>> torch.zeros(2, 3).t().is_contiguous()
    False
    """
    array = input._array
    if memory_format is dtypes.channels_last:
        return array.ndim == 4 and lies_in(array, (0, 2, 3, 1))
    if memory_format is dtypes.channels_last_3d:
        return array.ndim == 5 and lies_in(array, (0, 2, 3, 4, 1))
    return bool(array.flags.c_contiguous)


@function(free=False, settles=True, quick=plain_calls.contiguous)
def contiguous(input: Any, memory_format: Any = dtypes.contiguous_format) -> Any:
    """The tensor itself if its elements lie in order, otherwise a copy in which they do.

    >>> torch.zeros(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if memory_format is dtypes.preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if is_contiguous(input, memory_format):
        return input
    return methods["clone"](input, memory_format=memory_format)


@function(free=False, returns="tuple[int, ...] | int")
def stride(input: Any, dim: Any = None) -> Any:
    """How many elements lie between neighbours along each dimension.

    >>> torch.zeros(2, 3).stride()
    (3, 1)
    """
    found = strides_of(input._array)
    if is_sparse(input._array):
        found = _sparse_strides(input)
    if dim is None:
        return found
    if not found:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return found[one_dim(dim, len(found))]


def _sparse_strides(x: Any) -> tuple[int, ...]:
    if x.is_sparse:
        return (0,) * int(x._array.ndim)
    name = str(x.layout).rpartition("_")[2].upper()
    raise RuntimeError(f"Sparse {name} tensors do not have strides")


@function(free=False)
def storage_offset(input: Any) -> int:
    """How many elements of the memory come before the first one.

    >>> torch.arange(5)[2:].storage_offset()
    2
    """
    return int(ByteBounds(bottom(input._array)).offset // input._array.dtype.itemsize)


@function(free=False, returns="Size | int", quick=plain_calls.size)
def size(input: Any, dim: Any = None) -> Any:
    """The shape, or one size of it.

    >>> torch.zeros(2, 3).size(), torch.zeros(2, 3).size(-1)
    (torch.Size([2, 3]), 3)
    """
    shape = input._array.shape
    if dim is None:
        return unchecked(shape)
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[one_dim(dim, len(shape))]


@function(free=False, aliases=("ndimension",), quick=plain_calls.dim)
def dim(input: Any) -> int:
    """The number of dimensions.

    >>> torch.zeros(2, 3).dim()
    2
    """
    return int(input._array.ndim)


@function(quick=plain_calls.numel)
def numel(input: Any) -> int:
    """The number of elements.

    >>> torch.numel(torch.zeros(2, 3))
    6
    """
    return int(input._array.size)


@function(free=False)
def nelement(input: Any) -> int:
    """Another name of `numel`.

    >>> torch.zeros(2, 3).nelement()
    6
    """
    return int(input._array.size)


@function(free=False)
def element_size(input: Any) -> int:
    """The number of bytes of an element.

    >>> torch.zeros(2).element_size()
    4
    """
    return int(input._array.dtype.itemsize)


@function(free=False)
def data_ptr(input: Any) -> int:
    """The address of the first element.

    >>> x = torch.zeros(2, 2)
    >>> x.data_ptr() == x.t().data_ptr()
    True
    """
    if varies(input._array):
        raise RuntimeError(NO_STORAGE)
    return address(input._array) if input._array.size else 0


@function(free=False)
def is_set_to(input: Any, tensor: Any) -> bool:
    """Whether both show the same memory in the same shape and strides.

    >>> x = torch.zeros(2, 2)
    >>> x.is_set_to(x.view(2, 2)), x.is_set_to(x.t())
    (True, False)
    """
    a, b = input._array, tensor._array
    same = a.shape == b.shape and strides_of(a) == strides_of(b) and a.dtype == b.dtype
    return same and _place(a) == _place(b)


def _place(array: Any) -> tuple[int, int]:
    bounds = ByteBounds(array)
    return bounds.start, bounds.offset


# --- who else holds the memory ------------------------------------------------------------------
_LENT: Final[dict[int, ref[Any]]] = {}


def lend(array: Any) -> None:
    """Remember that NumPy has this memory too: it must stay where it is."""
    root = root_of(array)
    key = id(root)
    if key not in _LENT:
        _LENT[key] = ref(root, lambda gone: _LENT.pop(key, None))


def lent(array: Any) -> bool:
    """Whether the memory behind an array is NumPy's too."""
    return id(root_of(array)) in _LENT


def _itemsize(input: Any) -> int:
    """The number of bytes of an element."""
    return int(input._array.dtype.itemsize)


def _nbytes(input: Any) -> int:
    """The number of bytes of all elements."""
    return int(input._array.size * input._array.dtype.itemsize)


attribute("itemsize", _itemsize)
attribute("nbytes", _nbytes)
