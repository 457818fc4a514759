"""Locks that a fork does not leave locked.

A child process has one thread, the one that forked. A lock that another thread held at that moment
stays locked there for ever, for nobody is left to release it. So every lock of rushlight is made
here, and is made anew in the child. What it guarded may have been half changed, as with any fork
among threads: at worst a random draw that the child repeats in part, never a wait without end.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, Final
from weakref import WeakSet

_locks: Final[WeakSet[Any]] = WeakSet()


def lock() -> Any:
    """A new lock, which its thread may take again."""
    made = RLock()
    _locks.add(made)
    return made


def renew(held: Any) -> None:
    """Have a lock that others made, such as NumPy's, renewed in children too."""
    _locks.add(held)


def _in_child() -> None:
    for held in list(_locks):
        held._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
