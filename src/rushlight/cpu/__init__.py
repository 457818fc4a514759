"""`torch.cpu`: the CPU, with the names that `torch.cuda` has for GPUs.

>>> torch.cpu.is_available(), torch.cpu.device_count()
(True, 1)
"""

from __future__ import annotations

import typing as _typing
from typing import Any

from rushlight.missing import face as _face

__all__ = [
    "current_device", "device_count", "is_available", "is_initialized", "set_device", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Always."""
    return True


def is_initialized() -> bool:
    """Always."""
    return True


def device_count() -> int:
    """One, however many cores it has."""
    return 1


def current_device() -> str:
    """`"cpu"`."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Does nothing: what was called is done when it returns."""


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.cpu", globals(), {"amp": ""})
