"""What pickles of tensors call: PyTorch has these in `torch._utils`, and files spell them so.

A file may call these functions with anything: each believes nothing that
it is told, and either makes what it is named after or raises

    pickle.UnpicklingError    its arguments are not as `save` writes them
    RuntimeError              a tensor does not fit its memory
"""

from __future__ import annotations

from pickle import UnpicklingError
from typing import Any

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays.host import meta_array, with_put_off
from rushlight.serialization.archive import corrupt
from rushlight.storage import TypedStorage, among
from rushlight.tensor import Tensor
from rushlight.tensor_memory import _CORE, _rebuilt


def _rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Any:
    """A tensor over a storage, of its dtype."""
    if not isinstance(storage, TypedStorage):
        raise UnpicklingError("a tensor in this file has no storage")
    return _made(storage, storage_offset, size, stride, storage.dtype)


def _made(storage: Any, offset: Any, size: Any, stride: Any, dtype: dtypes.dtype) -> Any:
    raw = dtype.numpy
    _check_place(size, stride, offset)
    try:
        array = making.over(storage._bytes, tuple(size), stride, raw, offset * raw.itemsize)
    except (ValueError, OverflowError) as error:
        raise corrupt("reading a tensor", f"shape {size}, strides {stride}: {error}") from error
    t = _rebuilt(Tensor, array)
    among(t)
    return t


def _check_place(size: Any, stride: Any, offset: Any) -> None:
    """Refuse a place in memory that no tensor has; `making.over` refuses what is outside it."""
    right = isinstance(size, tuple) and isinstance(stride, tuple)
    numbers = (*size, *stride, offset) if right else (None,)
    if not all(type(n) is int and n >= 0 for n in numbers):
        raise corrupt("reading a tensor", "its shape, strides or offset are no natural numbers")
    if len(size) != len(stride):
        raise corrupt("reading a tensor", f"shape {size} and strides {stride} do not agree")


def _asking(t: Any, requires_grad: Any) -> Any:
    t._requires_grad = bool(requires_grad) and t._array.dtype.kind in "fcVW"
    return t


def _rebuild_tensor_v2(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any,
    backward_hooks: Any, metadata: Any = None,
) -> Any:  # fmt: skip
    t = _rebuild_tensor(storage, storage_offset, size, stride)
    return _asking(_deferring(t, metadata), requires_grad)


def _rebuild_tensor_v3(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any,
    backward_hooks: Any, dtype: Any, metadata: Any = None,
) -> Any:  # fmt: skip
    """Of a dtype that the storage need not have: those that came later have no storages."""
    if not isinstance(storage, TypedStorage) or not isinstance(dtype, dtypes.dtype):
        raise UnpicklingError("a tensor in this file has no storage, or no dtype")
    t = _made(storage, storage_offset, size, stride, dtype)
    return _asking(_deferring(t, metadata), requires_grad)


def _deferring(t: Any, metadata: Any) -> Any:
    """A conjugate is saved as what it is the conjugate of: note that on what was loaded."""
    if metadata is None:
        return t
    if type(metadata) is not dict:
        raise UnpicklingError("the metadata of a tensor is no dictionary")
    conj = metadata.get("conj") is True and t._array.dtype.kind in "cW"
    t._array = with_put_off(t._array, conj + 2 * (metadata.get("neg") is True))
    return t


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    from rushlight.nn.parameter import Parameter

    if not isinstance(data, Tensor):
        raise UnpicklingError("a parameter in this file is made of no tensor")
    asks = bool(requires_grad) and data._array.dtype.kind in "fcVW"
    return Parameter(data, asks)


def _rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Any:
    return _with_attributes(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _with_attributes(t: Any, state: Any) -> Any:
    """Hang on a tensor what a user had hung on it. Slots, if any, come second in a pair."""
    parts = state if type(state) is tuple else (state,)
    for part in parts:
        if part is None:
            continue
        if type(part) is not dict:
            raise UnpicklingError("the attributes of a tensor are no dictionary")
        for key, value in part.items():
            if type(key) is str and key not in _CORE and not hasattr(Tensor, key):
                vars(t)[key] = value
    return t


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    """A tensor of a class of the user's, or one with attributes."""
    if not any(func is fn for fn in (_rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter)):
        raise UnpicklingError(f"{func!r} makes no tensor")
    if type(args) is not tuple or not isinstance(new_type, type):
        raise UnpicklingError("a tensor in this file is not as `save` writes it")
    t = func(*args)
    if new_type is not type(t):
        if not issubclass(new_type, Tensor):
            raise UnpicklingError(f"{new_type!r} is no class of tensors")
        asks = t.requires_grad
        t = t.detach().as_subclass(new_type)
        t._requires_grad = asks
    if not new_type.__module__.startswith(("rushlight.", "torch.")) and _sets_state(new_type):
        t.__setstate__(state)
        return t
    return _with_attributes(t, state)


def _sets_state(cls: type) -> bool:
    """Whether a class of the user's has a `__setstate__` of its own."""
    return getattr(cls, "__setstate__", None) is not getattr(Tensor, "__setstate__", None)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Any:
    """A sparse tensor of its indices and values."""
    if type(data) is not tuple or not isinstance(layout, dtypes.layout):
        raise UnpicklingError("a sparse tensor in this file has no parts")
    from rushlight.ops.sparse.making import remade  # few files have one

    return remade(layout, data)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Any:
    """A tensor of the device `meta`, which has no numbers."""
    if not isinstance(dtype, dtypes.dtype):
        raise UnpicklingError("a tensor in this file has no dtype")
    _check_place(size, stride, 0)
    steps = [s * dtype.itemsize for s in stride]
    return _asking(_rebuilt(Tensor, meta_array(tuple(size), dtype.numpy, steps)), requires_grad)


def _get_layout(name: Any) -> Any:
    """A layout by its name. PyTorch has it in `torch.serialization`."""
    found = getattr(dtypes, str(name).removeprefix("torch."), None)
    if not isinstance(found, dtypes.layout):
        raise UnpicklingError(f"there is no layout {name!r}")
    return found
