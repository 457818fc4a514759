"""NNPACK, which rushlight does not use: a flag, remembered."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.backends.flags import changed, exchange_flags

__all__ = ["flags", "is_available", "set_flags"]
__dir__ = __all__.copy

_enabled = True


def is_available() -> bool:
    """is_available() -> bool: never."""
    return False


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """flags(enabled=False): the flag within a `with` block."""
    return changed(globals(), _enabled=enabled)


def set_flags(_enabled: bool | None = None) -> tuple[Any, ...]:
    """set_flags(...): set the flag; returns what it was."""
    return exchange_flags(globals(), "_enabled", _enabled)
