"""Modes (grad, inference) of the running code, and the one flag the eager path looks at.

Note [One flag]
    Every op asks "is anything unusual going on?". While `state.active` is 0 the answer is no,
    and that is one load from memory. It counts the modes entered and not yet left, in all
    threads together; only when it is not 0 does an op pay for looking at its own context.

Note [Modes are per context]
    The current mode is a context variable, so it belongs to one thread and to one asyncio task.
    A task that was started inside `with no_grad()` inherits the mode object; when the block
    ends the object dies (`alive`), and readers fall through to what was outside it. A thread that
    was given a copy of the context (`asyncio.to_thread`) does not see the modes of another thread,
    as in PyTorch. A mode that nobody holds any more, because its thread or task is over, ends.

Note [Whose op computes]
    `state.busy` says that an op computes in this thread; see Note [Busy] in `core.quiet`. Asking
    which thread this is would cost an op 50 ns, so at first a plain flag serves. An op that finds
    it set by another thread's makes all write down their threads from then on, and so does a
    warning that could be anyone's, until the other threads are gone.
"""

from __future__ import annotations

from _thread import _count as _other_threads
from contextvars import ContextVar
from itertools import count
from threading import RLock, get_ident
from typing import Any, Final

from rushlight.native import i64

__all__ = [
    "Mode",
    "State",
    "current",
    "enter",
    "grad_asked",
    "grad_enabled",
    "inference_enabled",
    "leave",
    "state",
]


class Mode:
    """One setting of the modes, and the one it covers.

    `grad` says whether ops are recorded, which inference mode forbids whatever was `asked`.
    `saving` (a pair of pack and unpack hooks), `dual` (levels of forward mode of that depth and
    deeper are hidden, see `core.tangents`), `level` (of transforms, see `core.levels`) and `around`
    (who stands around the ops that run here, see `utils.around`) are None unless someone set them;
    a mode inside inherits them.
    """

    def __init__(self, grad: bool, inference: bool, outer: Mode | None) -> None:
        self.asked = grad  # what `is_grad_enabled` says
        self.grad = grad and not inference
        self.inference = inference
        self.outer = outer
        self.thread: int = get_ident()
        self.alive = True
        self.at_once: bool = False  # set by a plain call, with no end in sight
        self.saving: Any = None if outer is None else outer.saving
        self.dual: Any = None if outer is None else outer.dual
        self.level: Any = None if outer is None else outer.level
        self.around: Any = None if outer is None else outer.around

    def __del__(self) -> None:
        if self.alive:
            _end(self)


class State:
    """Flags shared by all threads; an instance because compiled fields beat module globals."""

    def __init__(self) -> None:
        self.active: i64 = 0
        self.number: i64 = 0
        self.level: i64 = 0  # the newest open transform of any thread; see `core.levels`
        self.computing: bool = False  # an op computes, and did not say in which thread
        self.named: bool = False  # from now on they say
        self.where: set[int] = set()  # the threads in which they said one does

    @property
    def busy(self) -> bool:
        """Whether an op computes in this thread; see Note [Whose op computes]."""
        if self.named:
            return get_ident() in self.where
        return self.computing

    @busy.setter
    def busy(self, on: bool) -> None:
        if self.named or (on and self.computing):
            self.name(on)
        else:
            self.computing = on

    def name(self, on: bool) -> None:
        """Set `busy`, saying in which thread."""
        self.look()
        if not self.named:
            self.computing = on
            return
        me = get_ident()
        if on:
            self.where.add(me)
        elif me in self.where:
            self.where.discard(me)
        else:  # it began before they did
            self.computing = False

    def look(self) -> None:
        """Let ops say in which thread they compute if there are several, and only then."""
        self.named = _other_threads() > 0
        if not self.named and self.where:
            self.computing = get_ident() in self.where
            self.where.clear()


state: Final = State()
_lock: Final = RLock()  # what is collected or interrupts while it is held may leave a mode too
_numbers: Final = count(1)
_mode: Final[ContextVar[Mode | None]] = ContextVar("rushlight_mode", default=None)


def current() -> Mode | None:
    """The innermost mode that is still alive in this context; None for the defaults."""
    mode = _mode.get()
    if mode is not None:
        me = get_ident()
        while mode is not None and not (mode.alive and mode.thread == me):
            mode = mode.outer
    return mode


def grad_enabled() -> bool:
    """Whether operations on tensors that require grad are being recorded here."""
    if state.active == 0:
        return True
    mode = current()
    return mode is None or mode.grad


def grad_asked() -> bool:
    """Whether recording was switched on here, be it that inference mode forbids it."""
    if state.active == 0:
        return True
    mode = current()
    return mode is None or mode.asked


def inference_enabled() -> bool:
    """Whether this code runs inside `inference_mode`."""
    if state.active == 0:
        return False
    mode = current()
    return mode is not None and mode.inference


def enter(grad: bool, inference: bool) -> Mode:
    """Switch modes in this context; give the result to `leave`, in a `finally`."""
    mode = Mode(grad, inference, current())
    if COMPILED:  # nothing can come between reading and writing; see `next_number`
        state.active += 1
    else:
        with _lock:
            state.active += 1
    _mode.set(mode)
    return mode


def leave(mode: Mode) -> None:
    """End a mode, and what plain calls set inside it. Its number is given back once, however
    often this is called."""
    inner = _mode.get()
    while inner is not None and inner is not mode and (inner.at_once or not inner.alive):
        inner = inner.outer
    if inner is mode:
        inner = _mode.get()
        while inner is not None and inner is not mode:
            _end(inner)
            inner = inner.outer
        _mode.set(mode.outer)
    _end(mode)


def _end(mode: Mode) -> None:
    if COMPILED:
        if mode.alive:
            mode.alive = False
            state.active -= 1
        return
    with _lock:
        if mode.alive:
            mode.alive = False
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
if not COMPILED:  # interpreted ops are seen on the stack: see Note [Busy] in `core.quiet`
    delattr(State, "busy")
    state.busy = False
