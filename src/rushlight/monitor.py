"""`torch.monitor`: events that programs log, and handlers that see them.

>>> seen = []
>>> handle = torch.monitor.register_event_handler(seen.append)
>>> import datetime
>>> torch.monitor.log_event(torch.monitor.Event("epoch", datetime.datetime.now(), {"loss": 0.5}))
>>> seen[0].name, seen[0].data
('epoch', {'loss': 0.5})
>>> torch.monitor.unregister_event_handler(handle)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Event", "EventHandlerHandle", "log_event", "register_event_handler",
    "unregister_event_handler",
]  # fmt: skip
__dir__ = __all__.copy


@dataclass
class Event:
    """Event(name, timestamp, data): something that happened."""

    name: str
    timestamp: Any
    data: dict[str, Any] = field(default_factory=dict)


class EventHandlerHandle:
    """What `register_event_handler` gives, for `unregister_event_handler`."""


_handlers: dict[EventHandlerHandle, Callable[[Event], Any]] = {}


def register_event_handler(callback: Callable[[Event], Any]) -> EventHandlerHandle:
    """register_event_handler(callback): have it called with every event."""
    handle = EventHandlerHandle()
    _handlers[handle] = callback
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """unregister_event_handler(handler): the callback is not called any more."""
    _handlers.pop(handler, None)


def log_event(event: Event) -> None:
    """log_event(event): tell all handlers."""
    for callback in list(_handlers.values()):
        callback(event)
