"""A tensor's memory: its storage, NumPy and DLPack, copies and pickles.

Methods of Tensor, written as functions; `tensor` attaches them with the rest of the table.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import making, shared
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import NO_MEMORY, NO_STORAGE
from rushlight.arrays.device import CPU, cuda_count, current
from rushlight.arrays.device import device as as_device
from rushlight.arrays.host import (
    ByteBounds,
    address,
    device_of,
    in_memory,
    is_array,
    is_sparse,
    make_array,
    map_file,
    move,
    put_off,
    to_host,
    with_put_off,
)
from rushlight.core.graph import Storage, TensorBase, factory, note, requires_grad, wrap, wrap_apart
from rushlight.core.operators import Operators
from rushlight.core.record import finish, recording
from rushlight.core.views.inplace import check_writable
from rushlight.dtypes import type_name
from rushlight.ops.checks import varies
from rushlight.ops.registry import function
from rushlight.ops.shape.contiguous import lend
from rushlight.storage import TypedStorage, UntypedStorage, among, join

_UNKNOWN_TO_NUMPY: Final = frozenset(
    d for d in dtypes.all_dtypes if d.is_floating_point and d.numpy.kind == "V"
) | {dtypes.bfloat16}
# The names of what a tensor consists of: slots when not compiled, else other descriptors.
_CORE: Final = frozenset(
    name
    for name, value in vars(TensorBase).items()
    if inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)
)

NON_LEAF: Final = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
    "support crossing process boundaries.  If you just want to transfer the data, call detach() "
    "on the tensor before serializing (e.g., putting it on the queue)."
)


def alias_without_history(t: Any) -> Any:
    """The same memory as another tensor, with its own version and no history."""
    alone = wrap_apart(t._array, t)
    if t._storage.inference:
        alone._storage.inference = True
    return alone


def note_shared_memory(t: Any, other: Any) -> None:
    """Note that a tensor looks at the memory of another now."""
    join(other._storage, t._storage)
    note(other._storage, other)
    note(t._storage, t)


def empty_tensor(shape: tuple[int, ...], dtype: dtypes.dtype) -> Any:
    """An uninitialised tensor."""
    return finish(wrap(make_array(shape, dtype.numpy, current())))


def set_data(t: Any, value: Any) -> None:
    """`t.data = value`: other memory, perhaps another shape and dtype; same place in the graph."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"Variable data has to be a tensor, but got {type_name(value)}")
    if requires_grad(t) and value._array.dtype.kind not in "fcVW":
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    t._array = value._array
    t._shape_of = t._contiguous_array = None  # let go of the old array
    note_shared_memory(t, value)


# --- NumPy ----------------------------------------------------------------------------------------
@function(free=False, returns="numpy.ndarray")
def numpy(input: Any, *, force: bool = False) -> Any:
    """The tensor as a NumPy array that shares its memory. With `force`, detached and copied to the
    CPU as needed.

    >>> torch.ones(2).numpy()
    array([1., 1.], dtype=float32)
    """
    if is_sparse(input._array):
        input._array.__array__()
    if force:
        return to_host(input._array)
    if requires_grad(input) and recording():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    where = device_of(input._array)
    if where is not CPU:
        raise TypeError(
            f"can't convert {where} device type tensor to numpy. Use Tensor.cpu() to copy the "
            "tensor to host memory first."
        )
    dtype = dtypes.of(input._array.dtype)
    if dtype in _UNKNOWN_TO_NUMPY or dtype is dtypes.complex32:
        raise TypeError(f"Got unsupported ScalarType {dtype.scalar_type}")
    if varies(input._array):
        raise RuntimeError(NO_STORAGE)
    bits = put_off(input._array)
    if bits:
        what, cure = ("conjugate", "conj") if bits & 1 else ("negative", "neg")
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {what} bit set. Use "
            f"tensor.resolve_{cure}().numpy() instead."
        )
    lend(input._array)
    return input._array


# --- DLPack ---------------------------------------------------------------------------------------
@function(free=False, returns="Any")
def __dlpack__(
    input: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
    copy: bool | None = None,
) -> Any:  # fmt: skip
    """The tensor's memory as a DLPack capsule, for other array libraries."""
    if requires_grad(input):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    bits = put_off(input._array)
    if bits:  # PyTorch exports a negated view as it lies in memory, with the wrong signs
        what = "conjugate" if bits & 1 else "negative"
        raise BufferError(f"Can't export tensors with the {what} bit set")
    if is_array(input._array):
        raw = numpy(input)
        return raw.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)
    return input._array.__dlpack__(stream=stream)


@function(free=False)
def __dlpack_device__(input: Any) -> tuple[int, int]:
    """(kind, index) of the device as DLPack numbers them: 1 is the CPU, 2 is CUDA."""
    where = device_of(input._array)
    return (1, 0) if where is CPU else (2, where.index or 0)


@function(method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor that shares memory with an array of another library.

    >>> import numpy
    >>> torch.from_dlpack(numpy.arange(3.))
    tensor([0., 1., 2.], dtype=torch.float64)
    """
    array = making.from_dlpack(ext_tensor)
    dtypes.of(array.dtype)
    if copy:
        return finish(wrap(v.copy(array)))
    lend(array)
    return finish(wrap(array))


def to_dlpack(tensor: Any) -> Any:
    """to_dlpack(tensor) -> a DLPack capsule, for `from_dlpack` of any library."""
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"to_dlpack(): argument 'tensor' must be Tensor, not {type_name(tensor)}")
    return __dlpack__(tensor)


# --- storage --------------------------------------------------------------------------------------
def _check_memory(t: Any) -> None:
    """Refuse to show the memory of a tensor inside `vmap`: it is that of all members."""
    if varies(t._array):
        raise NotImplementedError(NO_MEMORY)


@function(free=False)
def untyped_storage(input: Any) -> UntypedStorage:
    """The memory behind the tensor and its views, as bytes."""
    _check_memory(input)
    return UntypedStorage._of(_host_or_meta(input._array), _known(input))


@function(free=False)
def storage(input: Any) -> TypedStorage:
    """The memory behind the tensor and its views, as elements of its dtype."""
    _check_memory(input)
    return TypedStorage._of(_host_or_meta(input._array), _known(input))


def _host_or_meta(array: Any) -> Any:
    array = in_memory(array)
    return array if device_of(array).type == "meta" else to_host(array)


@function(method=False)
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A 1-d tensor over the first elements of a file, which are read when they are used.

    Args:
        filename: the file.
        shared: whether what is written goes into the file, which then grows to that size; else the
            file stays as it is.
        size: how many elements.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     torch.from_file(file.name, True, 3, dtype=torch.int16)
    tensor([0, 0, 0], dtype=torch.int16)
    """
    if not isinstance(filename, (str, bytes)):  # `open` would close the file of that number
        raise TypeError(
            f"from_file(): argument 'filename' (position 1) must be str, not {type_name(filename)}"
        )
    kind = dtypes.default if dtype is None else dtype
    nbytes = (size or 0) * kind.itemsize
    array = map_file(filename, bool(shared), nbytes).view(kind.numpy)
    return finish(wrap(move(array, current() if device is None else as_device(device))))


def _known(input: Any) -> Storage | None:
    """What knows the tensors over the memory that a storage object shows; a copy has none."""
    if not is_array(in_memory(input._array)):
        return None
    note(input._storage, input)
    found: Storage = input._storage
    return found


@function(free=False)
def storage_type(input: Any) -> type:
    """The class of storages of its dtype."""
    from rushlight.storage_types import of_dtype

    _check_memory(input)
    return of_dtype.get(dtypes.of(input._array.dtype), TypedStorage)


@function(free=False)
def get_device(input: Any) -> int:
    """The number of the GPU the tensor is on; -1 on the CPU."""
    where = device_of(input._array)
    return -1 if where is CPU else where.index or 0


@function(free=False)
def is_shared(input: Any) -> bool:
    """Whether other processes can see the memory: after `share_memory_`, and in batches that came
    from the worker processes of a `DataLoader`."""
    _check_memory(input)
    return bool(input.is_cuda) or shared.is_shared(input._array)


@function(free=False)
def share_memory_(input: Any) -> Any:
    """Move the memory to where other processes can see it: what one of them writes, all see.

    >>> x = torch.zeros(2).share_memory_()
    >>> x.is_shared()
    True
    """
    _check_memory(input)
    if is_array(in_memory(input._array)):
        untyped_storage(input).share_memory_()
    return input


@function(free=False)
def is_pinned(input: Any, device: Any = None) -> bool:
    """Whether the memory is pinned for copies to a GPU. It never is."""
    return False


@function(free=False)
def pin_memory(input: Any, device: Any = None) -> Any:
    """The tensor itself: CuPy pins memory as it copies."""
    if cuda_count() == 0:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return input


@function(free=False)
def is_distributed(input: Any) -> bool:
    """Whether the tensor is spread over processes. It never is."""
    return False


@function()
def is_same_size(input: Any, other: Any) -> bool:
    """Whether both have the same shape.

    >>> torch.is_same_size(torch.ones(2), torch.zeros(2))
    True
    """
    return bool(input._array.shape == other._array.shape)


# --- element by element, in Python ----------------------------------------------------------------
def _put_numbers(input: Any, name: str, fn: Callable[..., Any], *others: Any) -> Any:
    if requires_grad(input):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. "
            f"Use var.detach().{name}() instead."
        )
    check_writable(input, True)
    raw = input._array
    if varies(raw):
        raise RuntimeError(NO_STORAGE)
    if not is_array(in_memory(raw)):
        raise TypeError(f"{name} is only implemented on CPU tensors")
    arrays = [raw, *(o.expand(raw.shape)._array for o in others)]
    columns = [a.ravel().tolist() for a in arrays]
    made = making.from_data([fn(*row) for row in zip(*columns, strict=True)], raw.dtype, _no_tensor)
    v.overwrite(raw, v.reshape(made, raw.shape))
    input._storage.written()
    return input


def _no_tensor(x: Any) -> Any:
    return to_host(x._array) if isinstance(x, TensorBase) else None


@function(free=False)
def apply_(input: Any, callable: Callable[[Any], Any]) -> Any:
    """Replace each element by what a Python function makes of it.

    >>> torch.arange(3).apply_(lambda n: n * 10)
    tensor([ 0, 10, 20])
    """
    return _put_numbers(input, "apply_", callable)


@function(free=False)
def map_(input: Any, tensor: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Each element from it and another tensor's."""
    return _put_numbers(input, "map_", callable, tensor)


@function(free=False)
def map2_(input: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Each element from it and two other tensors'."""
    return _put_numbers(input, "map2_", callable, x, y)


# --- copies and pickles ---------------------------------------------------------------------------
def _own_attributes(t: Any) -> dict[str, Any]:
    """What the user hung on a tensor."""
    return dict(vars(t))


@function(free=False)
def __deepcopy__(input: Any, memo: dict[int, Any]) -> Any:
    if input.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(input) in memo:
        return memo[id(input)]
    if is_sparse(input._array):
        t = _rebuilt(type(input), input._array.deep_copy())
        memo[id(input)] = t
        t._requires_grad = input._requires_grad
        t._accumulated_grad = copy.deepcopy(input._accumulated_grad, memo)
        return t
    # PyTorch copies what is read, too, where something is put off
    root, array, offset = _root(v.copy(input._array) if put_off(input._array) else input._array)
    # raw arrays are copied through the memo: views of one memory stay views of one memory
    t = _rebuilt(type(input), _seen(copy.deepcopy(root, memo), array, offset))
    t._storage = memo.setdefault(id(input._storage), t._storage)
    among(t)
    memo[id(input)] = t
    t._requires_grad = input._requires_grad
    if input._accumulated_grad is not None:
        t._accumulated_grad = copy.deepcopy(input._accumulated_grad, memo)
    for key, value in _own_attributes(input).items():
        setattr(t, key, copy.deepcopy(value, memo))
    return t


@function(free=False)
def module_load(input: Any, other: Any, assign: bool = False) -> Any:
    """What `load_state_dict` puts in the place of a parameter: `other`, or this one with its
    values. Subclasses may say it otherwise.

    Args:
        assign: whether it is `other` itself.

    >>> torch.zeros(2).module_load(torch.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else input.copy_(other).detach()


@function(free=False)
def __setstate__(input: Any, state: dict[str, Any]) -> None:
    for key, value in state.items():
        if key in _CORE:
            raise RuntimeError(f"{key!r} is a tensor's own: no state can set it")
        setattr(input, key, value)


@function(free=False)
def __reduce_ex__(input: Any, proto: Any) -> tuple[Any, ...]:
    if is_sparse(input._array):
        from rushlight.ops.sparse.making import remade, sparse_parts

        return remade, sparse_parts(input)
    root, array, offset = _root(in_memory(input._array))
    among(input)  # `copy.copy` calls `_unpickled` with the same root
    # the root array itself is pickled: pickle writes it once for all the views of it
    where = place_of(array, offset, put_off(input._array))
    arguments = (type(input), root, where, requires_grad(input))
    return _unpickled, arguments, _own_attributes(input) or None


def place_of(array: Any, offset: int, bits: int) -> tuple[Any, ...]:
    """What `_unpickled` needs to know beside the memory, where the array begins at `offset`."""
    where = (array.shape, array.strides, offset, dtypes.of(array.dtype))
    return (*where, bits) if bits else where


def _root(array: Any) -> tuple[Any, Any, int]:
    """The array that owns the memory, `array` as it lies in it, and where it begins, in bytes.

    An array whose memory would not be copied as it is becomes its own root.
    """
    bounds = ByteBounds(array)
    flags = bounds.root.flags
    if is_array(array) and flags.forc and making.plain_bytes(bounds.root, array, bounds.offset):
        return bounds.root, array, bounds.offset
    if not is_array(array) and flags.c_contiguous:
        return bounds.root, array, address(array) - address(bounds.root)
    alone = v.laid_out(array, None)
    return alone, alone, 0


def _seen(root: Any, array: Any, offset: int) -> Any:
    """In `root`, what `array` shows of its own root."""
    return _window(root, array.shape, array.strides, array.dtype, offset)


def _window(
    root: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, offset: int
) -> Any:
    if root.shape == shape and root.dtype == dtype and root.strides == strides:
        return root
    steps = tuple(s // dtype.itemsize for s in strides)
    return making.over(making.bytes_of(root), shape, steps, dtype, offset)


def _rebuilt(cls: Any, array: Any) -> Any:
    t = Operators.__new__(cls)
    t._array = array
    t._storage = Storage()
    return t


def _unpickled(cls: Any, root: Any, where: tuple[Any, ...], requires_grad: bool) -> Any:
    shape, strides, offset, *more = where  # before 0.2 there was no dtype: it was the root's
    raw = more[0].numpy if more else root.dtype
    array = _window(root, shape, strides, raw, offset)
    t = _rebuilt(cls, with_put_off(array, more[1]) if len(more) > 1 else array)
    among(t)
    t._requires_grad = requires_grad
    return t


@function(free=False)
def as_subclass(input: Any, cls: type) -> Any:
    """The same values and history as an instance of `cls`."""
    if not issubclass(cls, factory.cls):
        raise RuntimeError("as_subclass expected type to be a subclass of torch.Tensor")
    if requires_grad(input):
        t = input.view_as(input)
    else:
        t = _rebuilt(cls, input._array)
        note_shared_memory(t, input)
    t.__class__ = cls
    return t


def _make_subclass(cls: Any, data: Any, require_grad: bool = False) -> Any:
    """A leaf of class `cls` over the memory of `data`."""
    t = _rebuilt(cls, data._array)
    note_shared_memory(t, data)
    t._requires_grad = require_grad
    return t
