"""Intel's GPUs, which rushlight does not compute on.

>>> torch.xpu.is_available()
False
"""

from rushlight.absent import lacking

__all__ = [
    "current_device", "current_stream", "device_count", "empty_cache", "get_device_capability",
    "get_device_name", "get_device_properties", "get_rng_state", "init", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "reset_peak_memory_stats", "set_device", "synchronize",
]  # fmt: skip
__dir__ = __all__.copy


def is_available() -> bool:
    """is_available() -> bool: never."""
    return False


def is_initialized() -> bool:
    """is_initialized() -> bool: never."""
    return False


def device_count() -> int:
    """device_count() -> int: 0."""
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """is_bf16_supported() -> bool: there is nothing to support it."""
    return False


def manual_seed(seed: int) -> None:
    """manual_seed(seed): there is nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """manual_seed_all(seed): there is nothing to seed."""


def empty_cache() -> None:
    """empty_cache(): there is no cache."""


def memory_allocated(device: object = None) -> int:
    """memory_allocated(device=None) -> int: 0."""
    return 0


def memory_reserved(device: object = None) -> int:
    """memory_reserved(device=None) -> int: 0."""
    return 0


def max_memory_allocated(device: object = None) -> int:
    """max_memory_allocated(device=None) -> int: 0."""
    return 0


def max_memory_reserved(device: object = None) -> int:
    """max_memory_reserved(device=None) -> int: 0."""
    return 0


def _lack(name: str) -> object:
    return lacking(name, "Torch not compiled with XPU enabled", AssertionError)


init = _lack("init")
current_device = _lack("current_device")
current_stream = _lack("current_stream")
set_device = _lack("set_device")
synchronize = _lack("synchronize")
get_device_name = _lack("get_device_name")
get_device_capability = _lack("get_device_capability")
get_device_properties = _lack("get_device_properties")
get_rng_state = _lack("get_rng_state")
reset_peak_memory_stats = _lack("reset_peak_memory_stats")
