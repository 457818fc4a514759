"""Tables of registered hooks, and their handles: removing one, once, in any order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from rushlight.locks import lock
from rushlight.native import i64, mypyc_attr

__all__ = ["LeafTable", "RemovableHandle", "leaf_hooks", "register"]

_ids: Final = count()
_lock: Final = lock()  # a table may go, and be counted, while its thread is counting


class LeafHooks:
    """How many hooks there are on leaves: while none, no pass need care for the leaves' order."""

    def __init__(self) -> None:
        self.count: i64 = 0


leaf_hooks: Final = LeafHooks()


@mypyc_attr(native_class=False)
class LeafTable(dict[int, Any]):
    """The hooks of one kind on one leaf, counted in `leaf_hooks` as long as they are there.

    `node` keeps the leaf's `AccumulateGrad` once it has hooks of its own: in a graph the leaf
    stands in its place, so nothing else might.
    """

    node: Any = None
    counted: int = 0

    def __setitem__(self, key: int, hook: Any) -> None:
        with _lock:
            super().__setitem__(key, hook)
            self.count(len(self))

    def pop(self, key: int, default: Any = None) -> Any:
        with _lock:
            found = super().pop(key, default)
            self.count(len(self))
        return found

    def count(self, hooks: int) -> None:
        """Let the total know of so many; it is put right here if an interrupt came before."""
        leaf_hooks.count += hooks - self.counted
        self.counted = hooks

    def __del__(self) -> None:
        if self.counted:
            with _lock:
                self.count(0)


@mypyc_attr(allow_interpreted_subclasses=True)
class RemovableHandle:
    """What a `register_…_hook` gives back: `.remove()`, or use it as a context manager.

    `extra_dict` is a dict, or a list of them, in which the hook's id stands too.
    """

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.hooks = hooks_dict
        self.id: int = next(_ids)
        self.others: list[dict[int, Any]] = []
        if isinstance(extra_dict, dict):
            self.others.append(extra_dict)
        elif extra_dict is not None:
            self.others.extend(extra_dict)

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self.hooks.pop(self.id, None)
        for other in self.others:
            other.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self.remove()


def register(hooks: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Add `hook` to the hooks of one kind, kept in the order of registration."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
