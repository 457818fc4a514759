"""`torch.accelerator`: the GPU, if there is one that rushlight can use.

>>> device = torch.accelerator.current_accelerator() or torch.device("cpu")
"""

from __future__ import annotations

from typing import Any

from rushlight import cuda
from rushlight.arrays.device import cuda_count
from rushlight.arrays.device import device as _device

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "device_count",
    "device_index", "empty_cache", "get_device_capability", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "synchronize",
]  # fmt: skip
__dir__ = __all__.copy


class AcceleratorError(RuntimeError):
    """An error of a GPU."""


class OutOfMemoryError(RuntimeError):
    """A GPU has too little memory."""


def get_device_module(device: Any = None) -> Any:
    """get_device_module(device=None): the module of a kind of devices.

    >>> torch.get_device_module("cpu") is torch.cpu
    True
    """
    import importlib

    kind = _device(device).type if device is not None else "cuda" if cuda_count() else "cpu"
    try:
        return importlib.import_module(f"rushlight.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Invalid device type '{kind}': please make sure it is available"
        ) from None


def _require() -> None:
    if cuda_count() == 0:
        raise RuntimeError("Cannot access accelerator device when none is available.")


def is_available() -> bool:
    """is_available() -> bool: whether there is a GPU."""
    return cuda_count() > 0


def device_count() -> int:
    """device_count() -> int: how many there are."""
    return cuda_count()


def current_accelerator(check_available: bool = False) -> Any:
    """current_accelerator(check_available=False) -> device or None

    >>> found = torch.accelerator.current_accelerator()
    >>> found is None or found.type == "cuda"
    True
    """
    return _device("cuda") if cuda_count() else None


def current_device_index() -> int:
    """current_device_index() -> int: the number of the current GPU."""
    _require()
    return cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """set_device_index(device): make a GPU the current one."""
    _require()
    cuda.set_device(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


class device_index(cuda.device):
    """device_index(device): a GPU as the current one, within a `with` block; None changes nothing.

    >>> with torch.accelerator.device_index(None):
    ...     pass
    """


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """get_device_capability(device=None) -> dict: the dtypes that the GPU computes with."""
    from rushlight import dtypes

    _require()
    return {"supported_dtypes": set(dtypes.all_dtypes)}


def synchronize(device: Any = None, /) -> None:
    """synchronize(device=None): wait until the GPU has done what it was given."""
    _require()
    cuda.synchronize(device)


def empty_cache() -> None:
    """empty_cache(): give memory that is kept for reuse back to the system."""
    _require()
    cuda.empty_cache()


def memory_allocated(device: Any = None, /) -> int:
    """memory_allocated(device=None) -> int: bytes that arrays occupy."""
    _require()
    return cuda.memory_allocated(device)


def max_memory_allocated(device: Any = None, /) -> int:
    """max_memory_allocated(device=None) -> int: no more than this was in use."""
    _require()
    return cuda.max_memory_allocated(device)


def memory_reserved(device: Any = None, /) -> int:
    """memory_reserved(device=None) -> int: bytes taken from the system."""
    _require()
    return cuda.memory_reserved(device)


def max_memory_reserved(device: Any = None, /) -> int:
    """max_memory_reserved(device=None) -> int: as `memory_reserved`."""
    _require()
    return cuda.max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """reset_peak_memory_stats(device=None): give back what is not in use, so that a peak shows."""
    _require()
    cuda.reset_peak_memory_stats(device)


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """get_memory_info(device=None) -> (int, int): free and total memory, in bytes."""
    _require()
    return cuda.mem_get_info(device)
