"""Other memory or another shape for a tensor that exists: `set_`, `resize_`, `swap_tensors`.

Methods of Tensor, written as functions; `tensor` attaches them with the rest of the table.
"""

from __future__ import annotations

import warnings
import weakref
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays.device import CPU
from rushlight.arrays.host import ByteBounds, in_memory, make_array, put_off_as
from rushlight.core.grad_mode import inference_enabled
from rushlight.core.graph import (
    Node,
    Op,
    Sharer,
    TensorBase,
    extra_of,
    next_number,
    node_class_of,
    note,
    requires_grad,
    spec_for,
)
from rushlight.core.record import make_node
from rushlight.core.transforms.tangents import tangent_of
from rushlight.core.views.history import forget_view_ops
from rushlight.core.views.inplace import check_writable, settle
from rushlight.dtypes import c_name
from rushlight.ops.creation.tensor import shape_of, size_of
from rushlight.ops.registry import function
from rushlight.ops.shape.contiguous import is_contiguous, strides_of
from rushlight.storage import TypedStorage, enlarge, is_storage, join
from rushlight.tensor_memory import _CORE, note_shared_memory

_ORDERS: Final = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


# --- set_ -----------------------------------------------------------------------------------------
class Set(Op):
    """What `set_` leaves in the graph: the end of all gradients."""

    name, node = "set_", "NotImplemented"
    inputs = ("self", "source")

    def vjp(self, node: Node, g: Any) -> Any:
        raise RuntimeError("derivative for set_ is not implemented")


SET: Final = Set()
node_class_of(spec_for(Set)).name = lambda node: "torch::autograd::NotImplemented"


@function(free=False)
def set_(
    input: Any, source: Any = None, storage_offset: Any = None, size: Any = None, stride: Any = None
) -> Any:
    """Look at the memory of another tensor or storage from now on.

    >>> x = torch.zeros(3)
    >>> x.set_(torch.arange(4.).untyped_storage(), 1, (3,))
    tensor([1., 2., 3.])
    """
    other = isinstance(source, TensorBase)
    if not (source is None or other or is_storage(source)) or (
        (storage_offset is None) is not (size is None)
    ):
        given = [x for x in (source, storage_offset, size, stride) if x is not None]
        kinds = ", ".join(dtypes.type_name(x) for x in given)
        raise TypeError(
            f"set_() received an invalid combination of arguments - got ({kinds}), but expected "
            "one of:\n * ()\n * (torch.Storage source)\n * (torch.Storage source, int "
            "storage_offset, tuple of ints size, tuple of ints stride = None)\n * (Tensor source)\n"
            " * (Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = "
            "None)\n"
        )
    others = (source,) if other else ()
    check_writable(input, False, others)
    if tangent_of(input) is not None:
        raise NotImplementedError(
            "Trying to use forward AD with set_ that does not support it because it has not been "
            "implemented yet."
        )
    array = _there(input, source, storage_offset or 0, size, stride)
    node = make_node(SET, (input, *others))
    input._array = put_off_as(array, input._array)  # a tensor's own, as in PyTorch
    if other:
        note_shared_memory(input, source)
    elif source is not None:
        join(source._memory, input._storage)
        note(input._storage, input)
    forget_view_ops(input)
    settle(input, node, SET.plan)
    return input


def _there(input: Any, source: Any, offset: int, size: Any, stride: Any) -> Any:
    """The array that `set_` wants."""
    dtype = dtypes.of(input._array.dtype)
    if source is None:
        return make_array((0,), dtype.numpy, CPU)
    if isinstance(source, TensorBase):
        have = dtypes.of(source._array.dtype)
        if size is None:
            if have is not dtype:
                raise RuntimeError(
                    f"Could not set tensor of type {c_name(have)} to a tensor of type "
                    f"{c_name(dtype)}"
                )
            return in_memory(source._array)
        memory = making.bytes_of(source._array)
        known = source._storage
        note(known, source)
    else:
        if isinstance(source, TypedStorage) and source.dtype is not dtype:
            raise RuntimeError(
                f"Expected a Storage of type {c_name(dtype)} or an UntypedStorage, but got type "
                f"{source.dtype.scalar_type} for argument 1 'storage'"
            )
        memory = source._bytes
        known = source._memory
    if size is None:
        shape: tuple[int, ...] = (memory.nbytes // dtype.itemsize,)
    else:
        _check_positive(size)
        shape = shape_of("set_", size)
    strides = making.row_strides(shape) if stride is None else tuple(stride)
    if len(shape) != len(strides):
        raise RuntimeError(f"unequal size length ({len(shape)}) and stride length ({len(strides)})")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(s < 0 for s in strides):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(strides)}"
        )
    last = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    need = 0 if 0 in shape else (offset + last) * dtype.itemsize
    if need > memory.nbytes:
        memory = enlarge(memory, need, known)
    return making.over(memory, shape, strides, dtype.numpy, offset * dtype.itemsize)


def _check_positive(size: Any) -> None:
    if any(isinstance(n, int) and n < 0 for n in size):
        raise RuntimeError("numel: integer multiplication overflow")


# --- resize_ --------------------------------------------------------------------------------------
@function(free=False)
def resize_(input: Any, *sizes: Any, memory_format: Any = dtypes.contiguous_format) -> Any:
    """Give the tensor another shape, over the same memory; that grows if it is too small, for all
    tensors that share it.

    >>> torch.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    _check_positive(sizes[0] if sizes and isinstance(sizes[0], (tuple, list)) else sizes)
    shape = size_of("resize_", sizes, None)
    if memory_format is dtypes.preserve_format:
        raise RuntimeError("Unsupported memory format Preserve")
    order = _ORDERS.get(memory_format.name)
    if order is not None and len(order) != len(shape):
        raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format.name} format")
    if order is not None:
        return _resize(input, shape, _in(shape, order))
    same = input._array.shape == shape  # then it stays as it is, however it lies in memory
    return _resize(input, shape, strides_of(input._array) if same else making.row_strides(shape))


def _in(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a dense tensor whose axes lie in this order."""
    inside = making.row_strides(tuple(shape[d] for d in order))
    return tuple(inside[order.index(d)] for d in range(len(shape)))


def _resize(input: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    if requires_grad(input) and not inference_enabled():
        raise RuntimeError("cannot resize variables that require grad")
    if tangent_of(input) is not None:
        raise RuntimeError("cannot resize variables that has a forward grad")
    raw = input._array
    if raw.shape == shape and strides_of(raw) == strides:
        return input
    check_writable(input, False)
    count = 1
    for n in shape:
        count *= n
    bounds = ByteBounds(raw)
    memory = making.bytes_of(raw)
    need = bounds.offset + count * raw.dtype.itemsize
    if count and need > memory.nbytes:
        memory = enlarge(memory, need, input._storage)
    array = making.over(memory, shape, strides, raw.dtype, bounds.offset if count else 0)
    input._array = put_off_as(array, raw)
    forget_view_ops(input)
    if raw.shape != shape:
        input._storage.written()
    return input


@function(free=False)
def resize_as_(
    input: Any, the_template: Any, *, memory_format: Any = dtypes.contiguous_format
) -> Any:
    """Give the tensor the shape of another.

    >>> torch.arange(4).resize_as_(torch.zeros(2, 1))
    tensor([[0],
            [1]])
    """
    if not isinstance(the_template, TensorBase):
        raise TypeError(
            "resize_as_(): argument 'the_template' (position 1) must be Tensor, not "
            f"{dtypes.type_name(the_template)}"
        )
    shape = tuple(the_template._array.shape)
    if memory_format is dtypes.preserve_format:
        memory_format = dtypes.contiguous_format
        for found in (dtypes.channels_last, dtypes.channels_last_3d):
            if not is_contiguous(the_template) and is_contiguous(the_template, found):
                memory_format = found
    return resize_(input, shape, memory_format=memory_format)


@function(free=False)
def resize(input: Any, *sizes: Any) -> Any:
    """As `reshape`, in PyTorch's oldest word for it. Deprecated."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    return input.reshape(size_of("resize", sizes, None))


@function(free=False)
def resize_as(input: Any, tensor: Any) -> Any:
    """`reshape` to the shape of another tensor. Deprecated."""
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=2)
    return input.reshape(tuple(tensor._array.shape))


# --- swap_tensors ---------------------------------------------------------------------------------
_PARTS: Final = tuple(sorted(_CORE - {"__dict__", "__weakref__"}))


def swap_tensors(t1: Any, t2: Any) -> None:
    """Let two tensors change places: each object becomes in every respect what the other was.

    Graphs made before with one of them can no longer be run backward to it.

    >>> a, b = torch.zeros(2), torch.ones(3, requires_grad=True)
    >>> torch.utils.swap_tensors(a, b)
    >>> a
    tensor([1., 1., 1.], requires_grad=True)
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if any(type(found) is not Sharer for found in weakref.getweakrefs(t)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    # edges lead to the object: those of nodes made so far led to what it was, see `Run.propagate`
    marked = [t._requires_grad or (t._extra is not None and t._extra.swapped > 0) for t in (t1, t2)]
    own = [dict(vars(t)) for t in (t1, t2)]
    parts = [[getattr(t, part, None) for part in _PARTS] for t in (t1, t2)]
    kinds = (type(t1), type(t2))
    for t, kind, others, mine, theirs in (
        (t1, kinds[1], parts[1], own[0], own[1]),
        (t2, kinds[0], parts[0], own[1], own[0]),
    ):
        t.__class__ = kind
        for part, value in zip(_PARTS, others, strict=True):
            setattr(t, part, value)
        for key in mine:
            delattr(t, key)
        for key, value in theirs.items():
            setattr(t, key, value)
    for t, edges in zip((t1, t2), marked, strict=True):
        if edges:
            extra_of(t).swapped = next_number()
        elif t._extra is not None:
            t._extra.swapped = 0
        shown = None if t._extra is None or t._extra.accumulate is None else t._extra.accumulate()
        if shown is not None:
            shown.variable = t
        note(t._storage, t)
