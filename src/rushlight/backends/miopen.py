"""Flags of MIOpen, AMD's library, which rushlight does not use: remembered."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.backends.flags import changed, exchange_flags

__all__: list[str] = []
__dir__ = __all__.copy

immediate = False


def flags(immediate: bool = False) -> AbstractContextManager[None]:
    """flags(immediate=False): the flag within a `with` block."""
    return changed(globals(), immediate=immediate)


def set_flags(_immediate: bool | None = None) -> tuple[Any, ...]:
    """set_flags(...): set the flag; returns what it was."""
    return exchange_flags(globals(), "immediate", _immediate)
