"""Flags of oneDNN, which rushlight does not use: remembered."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.backends.flags import Precision, changed, exchange_flags

__all__: list[str] = []
__dir__ = __all__.copy

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2

enabled = True
deterministic = False
allow_tf32: bool | None = None
fp32_precision = "none"
conv = Precision("none")
matmul = Precision("none")
rnn = Precision("none")


def is_available() -> bool:
    """is_available() -> bool: never.

    >>> torch.backends.mkldnn.is_available()
    False
    """
    return False


def is_acl_available() -> bool:
    """is_acl_available() -> bool: never."""
    return False


class verbose:
    """verbose(level): a context that would print what oneDNN does, and prints nothing."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *error: object) -> None:
        return None


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:  # fmt: skip
    """flags(enabled=False, deterministic=False, ...): flags within a `with` block."""
    return changed(
        globals(), enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )  # fmt: skip


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None,
    _allow_tf32: bool | None = None, _fp32_precision: str = "none",
) -> tuple[Any, ...]:  # fmt: skip
    """set_flags(...): set flags; returns what they were."""
    names = "enabled deterministic allow_tf32 fp32_precision"
    return exchange_flags(globals(), names, _enabled, _deterministic, _allow_tf32, _fp32_precision)
