"""`torch.utils._foreach_utils`: tensors sorted by device and dtype."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []
__dir__ = __all__.copy


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cuda", "cpu"]


def _device_has_foreach_support(device: Any) -> bool:
    return bool(device.type in ("cpu", "cuda"))


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    return _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Lists of tensors that go together, member by member, cut by the device and dtype of the first
    list's members; with the places that they had."""
    found: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for at, first in enumerate(tensorlistlist[0]):
        lists, places = found.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for whole, part in zip(tensorlistlist, lists, strict=True):
            if whole:
                part.append(whole[at])
        if with_indices:
            places.append(at)
    return found
