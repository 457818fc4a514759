"""`torch._utils`: the functions that pickles of tensors call, by the name that programs use."""

from collections.abc import Sequence
from typing import Any

from rushlight.arrays.device import device as device_of
from rushlight.ops.registry import functions
from rushlight.serialization.rebuild import (
    _rebuild_meta_tensor_no_storage as _rebuild_meta_tensor_no_storage,
)
from rushlight.serialization.rebuild import _rebuild_parameter as _rebuild_parameter
from rushlight.serialization.rebuild import (
    _rebuild_parameter_with_state as _rebuild_parameter_with_state,
)
from rushlight.serialization.rebuild import _rebuild_sparse_tensor as _rebuild_sparse_tensor
from rushlight.serialization.rebuild import _rebuild_tensor as _rebuild_tensor
from rushlight.serialization.rebuild import _rebuild_tensor_v2 as _rebuild_tensor_v2
from rushlight.serialization.rebuild import _rebuild_tensor_v3 as _rebuild_tensor_v3

__all__: list[str] = []
__dir__ = __all__.copy


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Any:
    """All elements of some tensors in one vector, as code that sums gradients together wants them.

    >>> from rushlight._utils import _flatten_dense_tensors
    >>> _flatten_dense_tensors([torch.ones(2), torch.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    return functions["cat"]([t.contiguous().view(-1) for t in tensors], 0)


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The vector that `_flatten_dense_tensors` gave, as tensors of the shapes of `tensors`."""
    found, at = [], 0
    for t in tensors:
        n = t.numel()
        found.append(flat.narrow(0, at, n).view_as(t))
        at += n
    return tuple(found)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device."""
    if isinstance(device, int):
        return device
    found = device_of(device)
    if found.type == "cpu" and not allow_cpu:
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    return -1 if found.type == "cpu" else (found.index or 0)


def _element_size(dtype: Any) -> int:
    """Bytes of a number of a dtype."""
    return int(dtype.itemsize)


def _get_available_device_type() -> str | None:
    """The kind of accelerator that there is."""
    from rushlight.arrays.device import cuda_count

    return "cuda" if cuda_count() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of devices."""
    from rushlight.accelerator import get_device_module

    return get_device_module(device_type)


def _get_all_device_indices() -> list[int]:
    """The numbers of all GPUs."""
    from rushlight.arrays.device import cuda_count

    return list(range(cuda_count()))
