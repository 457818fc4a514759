"""Flags of cuDNN, which rushlight does not use: remembered."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.backends.flags import Precision, changed, exchange_flags

__all__: list[str] = []
__dir__ = __all__.copy

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"
depthwise_kernel = "auto"
conv = Precision("tf32")
rnn = Precision("tf32")


def is_available() -> bool:
    """is_available() -> bool: never.

    >>> torch.backends.cudnn.is_available()
    False
    """
    return False


def version() -> int | None:
    """version() -> None: there is no cuDNN."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """is_acceptable(tensor) -> bool: no tensor is for cuDNN."""
    return False


def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10,
    deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> AbstractContextManager[None]:  # fmt: skip
    """flags(enabled=False, benchmark=False, ...): flags within a `with` block.

    >>> with torch.backends.cudnn.flags(enabled=False):
    ...     torch.backends.cudnn.enabled
    False
    """
    return changed(
        globals(), enabled=enabled, benchmark=benchmark, benchmark_limit=benchmark_limit,
        deterministic=deterministic, allow_tf32=allow_tf32, fp32_precision=fp32_precision,
        depthwise_kernel=depthwise_kernel,
    )  # fmt: skip


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None,
    _benchmark_limit: int | None = None, _deterministic: bool | None = None,
    _allow_tf32: bool | None = None, _fp32_precision: str = "none",
    _depthwise_kernel: str | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """set_flags(...): set flags; returns what they were."""
    names = (
        "enabled benchmark benchmark_limit deterministic allow_tf32 fp32_precision depthwise_kernel"
    )
    return exchange_flags(
        globals(), names, _enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32,
        _fp32_precision, _depthwise_kernel,
    )  # fmt: skip
