"""opt_einsum, which finds the best order of products in `einsum`; rushlight has its own way."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.backends.flags import changed, exchange_flags

__all__: list[str] = []
__dir__ = __all__.copy

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """is_available() -> bool: rushlight does not use it.

    >>> torch.backends.opt_einsum.is_available()
    False
    """
    return False


def get_opt_einsum() -> Any:
    """get_opt_einsum() -> None: the module that is used, which is none."""
    return None


def flags(enabled: bool | None = None, strategy: str | None = None) -> AbstractContextManager[None]:
    """flags(enabled=None, strategy=None): flags within a `with` block."""
    return changed(globals(), enabled=enabled, strategy=strategy)


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[Any, ...]:
    """set_flags(...): set flags; returns what they were."""
    return exchange_flags(globals(), "enabled strategy", _enabled, _strategy)
