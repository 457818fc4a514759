"""Settings that programs make and read back: threads, determinism, matrix precision.

`set_num_threads` tells the linear algebra under NumPy. For the rest, NumPy decides for itself how
it computes, and always computes the same way: it is remembered, so that code which sets it runs,
and changes nothing.
"""

from __future__ import annotations

import os
from typing import Final

from rushlight.dtypes import type_name

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip


class _Settings:
    def __init__(self) -> None:
        set_by_user = os.environ.get("OMP_NUM_THREADS", "")
        self.threads = int(set_by_user) if set_by_user.isdecimal() else os.cpu_count() or 1
        self.interop = os.cpu_count() or 1
        self.deterministic = False
        self.warn_only = False
        self.warn_always = False
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
    """set_num_threads(int): how many threads matrix products, decompositions and kernels use.

    >>> torch.set_num_threads(2)
    >>> torch.get_num_threads()
    2
    """
    _settings.threads = _positive("set_num_threads", int)
    from rushlight.arrays import threads  # wanted here alone

    threads.set_threads(int)


def get_num_interop_threads() -> int:
    """get_num_interop_threads() -> int: what was set, or the number of CPUs."""
    return _settings.interop


def set_num_interop_threads(int: int, /) -> None:
    """set_num_interop_threads(int): remembered."""
    _settings.interop = _positive("set_num_interop_threads", int)


def set_flush_denormal(mode: bool) -> bool:
    """set_flush_denormal(mode) -> bool: whether it was done. Numbers too small for the exponent
    are never taken for zero here, so what can be done is to leave it so.

    >>> torch.set_flush_denormal(False), torch.set_flush_denormal(True)
    (True, False)
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return not mode


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """use_deterministic_algorithms(mode): remembered; rushlight's results are always repeatable."""
    _settings.deterministic = bool(mode)
    _settings.warn_only = bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """are_deterministic_algorithms_enabled() -> bool: what was set."""
    return _settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """is_deterministic_algorithms_warn_only_enabled() -> bool: what was set."""
    return _settings.warn_only


def get_deterministic_debug_mode() -> int:
    """get_deterministic_debug_mode() -> int: 0 for "default", 1 for "warn", 2 for "error"."""
    if not _settings.deterministic:
        return 0
    return 1 if _settings.warn_only else 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """set_deterministic_debug_mode(debug_mode): `use_deterministic_algorithms` by a number or name.

    >>> torch.set_deterministic_debug_mode("warn")
    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    True
    >>> torch.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    names = ("default", "warn", "error")
    if isinstance(debug_mode, str):
        if debug_mode not in names:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = names.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def set_warn_always(b: bool, /) -> None:
    """set_warn_always(b): remembered; Python's own filters say how often a warning is shown."""
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce() expects a bool, but got {type_name(b)}")
    _settings.warn_always = b


def is_warn_always_enabled() -> bool:
    """is_warn_always_enabled() -> bool: what was set."""
    return _settings.warn_always


def set_float32_matmul_precision(precision: str) -> None:
    """set_float32_matmul_precision(precision): remembered; products are in full precision."""
    _settings.precision = precision


def get_float32_matmul_precision() -> str:
    """get_float32_matmul_precision() -> str: what was set."""
    return _settings.precision
