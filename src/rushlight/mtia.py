"""Meta's accelerators, which rushlight does not compute on.

>>> torch.mtia.is_available()
False
"""

from rushlight.absent import lacking

__all__ = [
    "current_device", "current_stream", "device_count", "empty_cache", "is_available",
    "is_initialized", "manual_seed", "manual_seed_all", "memory_allocated", "set_device",
    "synchronize",
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


def manual_seed(seed: int) -> None:
    """manual_seed(seed): there is nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """manual_seed_all(seed): there is nothing to seed."""


def _lack(name: str, theirs: str = "getCurrentDevice") -> object:
    return lacking(name, f"Cannot execute {theirs}() without MTIA backend.")


current_device = _lack("current_device")
current_stream = _lack("current_stream")
set_device = _lack("set_device", "setCurrentDevice")
synchronize = _lack("synchronize")
empty_cache = _lack("empty_cache", "emptyCache")
memory_allocated = _lack("memory_allocated", "memoryStats")
