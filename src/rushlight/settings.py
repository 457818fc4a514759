"""Settings that programs make and read back: threads, determinism, matrix precision.

NumPy decides for itself how it computes, and always computes the same way: these are remembered,
so that code which sets them runs, and change nothing.
"""

from __future__ import annotations

import os
from typing import Final

from rushlight.dtypes import type_name

__all__ = [
    "are_deterministic_algorithms_enabled", "get_float32_matmul_precision",
    "get_num_interop_threads", "get_num_threads", "set_float32_matmul_precision",
    "set_num_interop_threads", "set_num_threads", "use_deterministic_algorithms",
]  # fmt: skip


class _Settings:
    def __init__(self) -> None:
        set_by_user = os.environ.get("OMP_NUM_THREADS", "")
        self.threads = int(set_by_user) if set_by_user.isdecimal() else os.cpu_count() or 1
        self.interop = os.cpu_count() or 1
        self.deterministic = False
        self.precision = "highest"


_settings: Final = _Settings()


def _positive(function: str, given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise RuntimeError(f"{function} expects an int, but got {type_name(given)}")
    if given <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    return given


def get_num_threads() -> int:
    """get_num_threads() -> int: what was set, or the number of CPUs."""
    return _settings.threads


def set_num_threads(int: int, /) -> None:
    """set_num_threads(int): remembered; NumPy's own settings rule.

    >>> import rushlight as torch
    >>> torch.set_num_threads(2)
    >>> torch.get_num_threads()
    2
    """
    _settings.threads = _positive("set_num_threads", int)


def get_num_interop_threads() -> int:
    """get_num_interop_threads() -> int: what was set, or the number of CPUs."""
    return _settings.interop


def set_num_interop_threads(int: int, /) -> None:
    """set_num_interop_threads(int): remembered."""
    _settings.interop = _positive("set_num_interop_threads", int)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """use_deterministic_algorithms(mode): remembered; rushlight's results are always repeatable."""
    _settings.deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """are_deterministic_algorithms_enabled() -> bool: what was set."""
    return _settings.deterministic


def set_float32_matmul_precision(precision: str) -> None:
    """set_float32_matmul_precision(precision): remembered; products are in full precision."""
    _settings.precision = precision


def get_float32_matmul_precision() -> str:
    """get_float32_matmul_precision() -> str: what was set."""
    return _settings.precision
