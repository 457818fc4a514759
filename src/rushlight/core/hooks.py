"""Handles of registered hooks: removing one, once, in any order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from rushlight.native import mypyc_attr

__all__ = ["RemovableHandle", "register"]

_ids: Final = count()


@mypyc_attr(allow_interpreted_subclasses=True)
class RemovableHandle:
    """What a `register_…_hook` gives back: `.remove()`, or use it as a context manager."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.hooks = hooks
        self.id: int = next(_ids)

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self.remove()


def register(hooks: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Add `hook` to the hooks of one kind, kept in the order of registration."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
