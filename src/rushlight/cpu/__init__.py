"""`torch.cpu`: the CPU in the words of `torch.cuda`, for programs that run on either.

>>> torch.cpu.device_count()
1
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rushlight.arrays.host import cpu_features
from rushlight.missing import face as _face

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
    "get_capabilities", "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """is_available() -> bool: always."""
    return True


def is_initialized() -> bool:
    """is_initialized() -> bool: always."""
    return True


def device_count() -> int:
    """device_count() -> int: 1."""
    return 1


def current_device() -> str:
    """current_device() -> str: 'cpu'."""
    return "cpu"


def set_device(device: Any) -> None:
    """set_device(device): there is only one."""


def synchronize(device: Any = None) -> None:
    """synchronize(device=None): work on the CPU is done when it returns."""


def get_capabilities() -> Mapping[str, bool]:
    """get_capabilities() -> mapping: which vector instructions the CPU has.

    >>> isinstance(torch.cpu.get_capabilities(), dict)
    False
    """
    return MappingProxyType(cpu_features())


class Stream:
    """Stream(priority=-1): a queue of work; on the CPU work is done at once."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """There is nothing to wait for."""

    def record_event(self) -> None:
        """There is nothing to record."""

    def wait_event(self, event: Any) -> None:
        """There is nothing to wait for."""


class Event:
    """Event(): a mark in a queue of work; on the CPU it has always been reached."""

    def query(self) -> bool:
        return True

    def record(self, stream: Any = None) -> None:
        """There is nothing to record."""

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """There is nothing to wait for."""


_default = Stream()


def current_stream(device: Any = None) -> Stream:
    """current_stream(device=None) -> Stream: the only one."""
    return _default


class StreamContext:
    """StreamContext(stream): a `with` block that changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """stream(stream): a `with` block that changes nothing.

    >>> with torch.cpu.stream(torch.cpu.current_stream()):
    ...     pass
    """
    return StreamContext(stream)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.cpu", globals(), {"amp": ""})
