"""`torch.cuda`: whether there is a GPU, and which. rushlight reaches GPUs through CuPy.

Imported when first used. What is drawn at random is drawn on the CPU, so seeds are the CPU's.
"""

from __future__ import annotations

from typing import Any

from rushlight.arrays.device import cuda_count
from rushlight.arrays.host import cupy
from rushlight.random import manual_seed as _manual_seed

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_name", "is_available",
    "manual_seed", "manual_seed_all", "set_device", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """is_available() -> bool

    Whether there is a GPU that rushlight can compute on.

    >>> import rushlight as torch
    >>> device = "cuda" if torch.cuda.is_available() else "cpu"
    """
    return cuda_count() > 0


def device_count() -> int:
    """device_count() -> int: the number of GPUs."""
    return cuda_count()


def current_device() -> int:
    """current_device() -> int: the number of the GPU that is used where none is named."""
    return int(cupy().cuda.Device().id)


def set_device(device: Any) -> None:
    """set_device(device): use this GPU where none is named."""
    index = getattr(device, "index", device)
    cupy().cuda.Device(int(index or 0)).use()


def get_device_name(device: Any = None) -> str:
    """get_device_name(device=None) -> str: the name of a GPU."""
    index = current_device() if device is None else getattr(device, "index", device)
    name = cupy().cuda.runtime.getDeviceProperties(int(index or 0))["name"]
    return str(name.decode() if isinstance(name, bytes) else name)


def synchronize(device: Any = None) -> None:
    """synchronize(device=None): wait until the GPU has done what it was given."""
    cupy().cuda.Device().synchronize()


def empty_cache() -> None:
    """empty_cache(): give memory that is kept for reuse back to the system."""
    if is_available():
        cupy().get_default_memory_pool().free_all_blocks()


def manual_seed(seed: int) -> None:
    """manual_seed(seed): the same as `torch.manual_seed`: one generator serves every device."""
    _manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """manual_seed_all(seed): the same as `torch.manual_seed`."""
    _manual_seed(int(seed))
