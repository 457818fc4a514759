"""Apple's GPUs, which rushlight does not compute on.

>>> torch.mps.is_available()
False
"""

from rushlight.absent import lacking

__all__ = [
    "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache",
    "get_rng_state", "is_available", "manual_seed", "recommended_max_memory", "seed",
    "set_per_process_memory_fraction", "set_rng_state", "synchronize",
]  # fmt: skip
__dir__ = __all__.copy


def is_available() -> bool:
    """is_available() -> bool: never."""
    return False


def device_count() -> int:
    """device_count() -> int: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """manual_seed(seed): there is nothing to seed."""


def _lack(name: str, theirs: str) -> object:
    return lacking(name, f"Cannot execute {theirs}() without MPS backend.")


synchronize = _lack("synchronize", "deviceSynchronize")
empty_cache = _lack("empty_cache", "emptyCache")
current_allocated_memory = _lack("current_allocated_memory", "getCurrentAllocatedMemory")
driver_allocated_memory = _lack("driver_allocated_memory", "getDriverAllocatedMemory")
recommended_max_memory = _lack("recommended_max_memory", "getRecommendedMaxMemory")
set_per_process_memory_fraction = _lack("set_per_process_memory_fraction", "setMemoryFraction")
seed = _lack("seed", "getDefaultGenerator")
get_rng_state = _lack("get_rng_state", "getDefaultGenerator")
set_rng_state = _lack("set_rng_state", "getDefaultGenerator")
