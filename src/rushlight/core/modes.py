"""Modes (grad, inference) of the running code, and the one flag the eager path looks at.

Note [One flag]
    Every op asks "is anything unusual going on?". While `state.active` is 0 the answer is no,
    and that is one load from memory. It counts the modes entered and not yet left, in all
    threads together; only when it is not 0 does an op pay for looking at its own context.

Note [Modes are per context]
    The current mode is a context variable, so it belongs to one thread and to one asyncio task.
    A task that was started inside `with no_grad()` inherits the mode object; when the block
    ends the object dies (`alive`), and readers fall through to what was outside it.
"""

from __future__ import annotations

from contextvars import ContextVar
from itertools import count
from threading import Lock
from typing import Any, Final

from rushlight.native import i64

__all__ = [
    "Mode",
    "State",
    "current",
    "enter",
    "grad_enabled",
    "inference_enabled",
    "leave",
    "state",
]


class Mode:
    """One setting of the modes, and the one it covers.

    `saving` (a pair of pack and unpack hooks) and `dual` (False: tangents are switched off, see
    `core.tangents`) are None unless someone set them; a mode inside inherits them.
    """

    def __init__(self, grad: bool, inference: bool, outer: Mode | None) -> None:
        self.grad = grad
        self.inference = inference
        self.outer = outer
        self.alive = True
        self.at_once: bool = False  # set by a plain call, with no end in sight
        self.saving: Any = None if outer is None else outer.saving
        self.dual: Any = None if outer is None else outer.dual


class State:
    """Flags shared by all threads; an instance because compiled fields beat module globals."""

    def __init__(self) -> None:
        self.active: i64 = 0
        self.number: i64 = 0
        self.busy: bool = False  # see Note [Busy] in `core.quiet`


state: Final = State()
_lock: Final = Lock()
_numbers: Final = count(1)
_mode: Final[ContextVar[Mode | None]] = ContextVar("rushlight_mode", default=None)


def current() -> Mode | None:
    """The innermost mode that is still alive in this context; None for the defaults."""
    mode = _mode.get()
    while mode is not None and not mode.alive:
        mode = mode.outer
    return mode


def grad_enabled() -> bool:
    """Whether operations on tensors that require grad are being recorded here."""
    if state.active == 0:
        return True
    mode = current()
    return mode is None or mode.grad


def inference_enabled() -> bool:
    """Whether this code runs inside `inference_mode`."""
    if state.active == 0:
        return False
    mode = current()
    return mode is not None and mode.inference


def enter(grad: bool, inference: bool) -> Mode:
    """Switch modes in this context; give the result to `leave`, in a `finally`."""
    mode = Mode(grad, inference, current())
    with _lock:
        state.active += 1
    _mode.set(mode)
    return mode


def leave(mode: Mode) -> None:
    """End a mode, and what plain calls set inside it. Its number is given back once, however
    often this is called."""
    inner = _mode.get()
    while inner is not None and inner is not mode and inner.at_once:
        _end(inner)
        inner = inner.outer
    _end(mode)
    if inner is mode:
        _mode.set(mode.outer)


def _end(mode: Mode) -> None:
    if mode.alive:
        mode.alive = False
        with _lock:
            state.active -= 1


def next_number() -> i64:
    """A number larger than all before it, from any thread: nodes are ordered by it.

    Compiled code holds the interpreter's lock from one line to the next; interpreted code does
    not, and takes its numbers from an iterator, which is atomic.
    """
    if COMPILED:
        state.number += 1
        return state.number
    return next(_numbers)


COMPILED: Final[bool] = not hasattr(next_number, "__code__")
