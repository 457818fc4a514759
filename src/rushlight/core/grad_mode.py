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

Note [Interrupts]
    Ctrl-C raises KeyboardInterrupt between two instructions of interpreted code: where a function
    begins, behind a call, where a loop turns; never behind a plain assignment, and never inside
    compiled code. A mode is in force from one assignment (`alive = True`, the last thing that
    entering does) to another (`alive = False`, the first thing that leaving does). What belongs to
    it beyond that is settled by whoever meets the dead mode next (`current`), if an interrupt came
    between: its number in `state.active`, its place in the context, and what it `closes`.

    Entered by `with`, compiled code begins and ends a mode in one piece. An interpreted `__exit__`
    could be interrupted before its first line; so there the `with` statement itself holds a token,
    whose death ends the mode too. Hence `with within(...)`, and no `try` and `finally`.

Note [Whose op computes]
    `state.busy` says that an op computes in this thread; see Note [Busy] in `core.fp_warnings`.
    Asking which thread this is would cost an op 50 ns, so at first a plain flag serves. An op that
    finds it set by another thread's makes all write down their threads from then on, and so does a
    warning that could be anyone's, until the other threads are gone.
"""

from __future__ import annotations

import os
from _thread import _count as _other_threads
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from typing import Any, Final
from weakref import ref

from rushlight.core.observer import observer
from rushlight.locks import lock
from rushlight.native import i64, mypyc_attr


class Mode:
    """One setting of the modes, and the one it covers.

    `grad` says whether ops are recorded, which inference mode forbids whatever was `asked`.
    `saving` (a pair of pack and unpack hooks), `dual` (levels of forward mode of that depth and
    deeper are hidden, see `core.transforms.forward_ad`), `level` (of transforms, see
    `core.transforms.stack`) and `around` (who stands around the ops that run here, see
    `utils.around`) are None unless someone set them; a mode inside inherits them.
    """

    # stated here because `__del__` reads them, even if `__init__` was interrupted
    counted: bool = False  # in `state.active`
    closes: Any = None  # `close()` of it is called when the mode ends

    def __init__(self, grad: bool, inference: bool, outer: Mode | None) -> None:
        self.asked = grad  # what `is_grad_enabled` says
        self.grad = grad and not inference
        self.inference = inference
        self.outer = outer
        self.thread: int = get_ident()
        self.alive: bool = False  # in force, from entering to leaving
        self.token: Any = None  # of the `with` that entered it; see Note [Interrupts]
        self.closing: bool = False
        self.follows: bool = False  # says what the mode outside it says; see `leave`
        self.at_once: bool = False  # set by a plain call, with no end in sight
        self.threads: Any = None  # what `is_multithreading_enabled` says, in `inference_mode`
        self.saving: Any = None if outer is None else outer.saving
        self.dual: Any = None if outer is None else outer.dual
        self.level: Any = None if outer is None else outer.level
        self.around: Any = None if outer is None else outer.around

    def __enter__(self) -> Mode:
        _mode.set(self)
        # Assignments alone from here on: see Note [Interrupts]. Nor can another thread come
        # between them.
        state.active += 1
        self.counted = True
        self.alive = True
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        leave(self)

    def hold(self, token: Any) -> None:
        """Die with a token; see Note [Interrupts]."""
        self.token = token

    def __del__(self) -> None:
        if self.counted or self.closes is not None:
            _end(self)


class State:
    """Flags shared by all threads; an instance because compiled fields beat module globals."""

    def __init__(self) -> None:
        self.active: i64 = 0
        self.number: i64 = 0
        self.level: i64 = 0  # the newest open transform of any thread; see `core.transforms.stack`
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
        self.note_threads()
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

    def note_threads(self) -> None:
        """Let ops say in which thread they compute if there are several, and only then."""
        self.named = _other_threads() > 0
        if not self.named and self.where:
            self.computing = get_ident() in self.where
            self.where.clear()

    def forget(self) -> None:
        """After a fork, in the child: the threads whose ops computed are gone."""
        self.computing = False
        self.where.clear()


state: Final = State()
_lock: Final = lock()  # what is collected or interrupts while it is held may take it too
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=state.forget)
_mode: Final[ContextVar[Mode | None]] = ContextVar("rushlight_mode", default=None)


def current() -> Mode | None:
    """The innermost mode that is in force in this context; None for the defaults."""
    mode = _mode.get()
    if mode is not None:
        me = get_ident()
        if not in_force(mode, me):
            mode = settle_mode(mode, me)
    return mode


def quick_mode() -> i64:
    """While some mode is active: 1 if ops run here as if there were none, 0 if all that counts here
    is `no_grad`; -1 if there is more to ask."""
    mode = current()
    inside = mode
    n: i64 = 0
    while inside is not None:
        n += 1
        inside = inside.outer
    if n != state.active or observer.profile is not None:
        return -1  # modes of other threads, and what is no mode, count too
    if mode is None or mode.inference or mode.saving is not None or mode.dual is not None:
        return -1
    if mode.level is not None or mode.around is not None:
        return -1
    return 1 if mode.grad else 0


def in_force(mode: Mode, me: int) -> bool:
    """Whether a mode was entered in this thread, and not left."""
    if not mode.alive or mode.thread != me:
        return False
    if COMPILED:  # leaving is one step
        return True
    while mode.at_once and mode.outer is not None:  # it ends with the block that it was set in
        mode = mode.outer
    return mode.alive and (mode.token is None or mode.token() is not None)


def settle_mode(mode: Mode, me: int) -> Mode | None:
    """The innermost mode in force from `mode` outward. Those that are over are ended, if that was
    interrupted, and this context forgets them."""
    forget = mode.thread == me and mode.counted
    found = from_here(mode, me)
    if forget:
        _mode.set(found)
    return found


def from_here(mode: Mode | None, me: int) -> Mode | None:
    """`settle_mode`, for a mode inside which this context may have others."""
    while mode is not None and not in_force(mode, me):
        if mode.thread == me and mode.counted:
            _end(mode)
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


def within(grad: bool, inference: bool) -> Mode:
    """Modes for a block of code: `with within(grad, inference):`."""
    return Mode(grad, inference, current())


def leave(mode: Mode) -> None:
    """End a mode, and what plain calls set inside it, unless it had no settings of its own. Its
    number is given back once, however often this is called."""
    mode.alive = False
    inner = _mode.get()
    while inner is not None and inner is not mode and (inner.at_once or not inner.alive):
        inner = inner.outer
    if inner is mode and mode.follows and _mode.get() is not mode:
        inner = _mode.get()
        while inner is not None and inner.outer is not mode:
            inner = inner.outer
        if inner is not None:
            inner.outer = mode.outer
        _end(mode)
    elif inner is mode:
        inner = _mode.get()
        while inner is not None and inner is not mode:
            _end(inner)
            inner = inner.outer
        _end(mode)
        _mode.set(mode.outer)
    else:  # not in the order in which they were entered
        _end(mode)
        follow(_mode.get(), mode)


def follow(inner: Mode | None, gone: Mode) -> None:
    """Let the modes inside one that is over, which only say what it said, say what is outside."""
    chain: list[Mode] = []
    while inner is not None and inner is not gone:
        chain.append(inner)
        inner = inner.outer
    if inner is None:
        return
    chain.reverse()
    for mode in chain:
        if mode.follows and mode.outer is not None:
            outer = from_here(mode.outer, mode.thread)
            mode.asked = outer is None or outer.asked
            mode.inference = outer is not None and outer.inference
            mode.grad = mode.asked and not mode.inference


def _end(mode: Mode) -> None:
    """Settle what belongs to a mode that is over; what an interrupt leaves undone is done by the
    next call."""
    mode.alive = False
    closes = mode.closes
    if closes is not None:
        if mode.closing:  # what it closes asked for the current mode
            return
        mode.closing = True
        try:
            closes.close()
        finally:
            mode.closing = False
        mode.closes = None
    if mode.counted:  # assignments alone: see Note [Interrupts]
        mode.counted = False
        state.active -= 1


@mypyc_attr(allow_interpreted_subclasses=True)
class ModeBlock:
    """A context manager whose `with` enters a mode: what `no_grad` and its kin are made of.

    One object may be entered several times, and in several threads. Subclasses leave `__enter__`
    and `__exit__` as they are: interpreted ones could be interrupted. They may say in `fill` what
    is in the mode; it may also begin something that the mode `closes`.
    """

    # stated here for subclasses that forget to call `__init__`
    _grad: Any = None  # None: as it is outside
    _inference: Any = None
    _entered: list[Mode] | None = None
    _tokens: dict[int, Any] | None = None  # of a `with` that is about to enter, by thread

    def __init__(self, grad: Any, inference: Any) -> None:
        self._grad = grad
        self._inference = inference
        self._entered = []

    def fill(self, mode: Mode) -> Any:
        """Settle what `mode`, which is about to be entered, says; what `as` shall give."""
        return None

    def __enter__(self) -> Any:
        grad: bool = grad_asked() if self._grad is None else self._grad
        inference: bool = inference_enabled() if self._inference is None else self._inference
        mode = within(grad, inference)
        mode.follows = self._grad is None and self._inference is None
        if not COMPILED:
            mode.token = _token_of(self)
        if self._entered is None:
            self._entered = []
        try:
            gives = self.fill(mode)
            self._entered.append(mode)
            mode.__enter__()
        except BaseException:
            _end(mode)
            raise
        return gives

    def hold(self, token: Any) -> None:
        """Give a token to the mode that this thread enters next; see Note [Interrupts]."""
        if self._tokens is None:
            self._tokens = {}
        self._tokens[get_ident()] = token

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        # one object may be in use in several threads: leave the mode that this one entered
        entered = self._entered
        if not entered:
            raise RuntimeError(f"this {type(self).__name__} was not entered, and cannot be left")
        mine = current()
        while mine is not None and mine not in entered:
            mine = mine.outer
        mode = entered[-1] if mine is None else mine
        leave(mode)
        entered.remove(mode)


@mypyc_attr(allow_interpreted_subclasses=True)
class GradSwitch(ModeBlock):
    """What `set_grad_enabled` is made of: sets recording at once, and a `with` of it takes that
    back and sets it for its block."""

    def __init__(self, grad: bool) -> None:
        super().__init__(grad, None)
        self.prev: bool = grad_asked()
        # A call replaces what an earlier call set, so that calls do not pile up: after the setting
        # is back at its default no mode is active, and ops are as quick as before.
        now = current()
        self._replaced: Any = now.asked if now is not None and now.at_once else None
        self._made: Mode | None = switch(grad)
        self._called: bool = True

    def take_back(self) -> None:
        """Undo what the call itself did: it was meant for a block, or for a decorated function."""
        if not self._called:
            return
        self._called = False
        if self._made is not None:
            leave(self._made)
        if self._replaced is not None:
            switch(self._replaced)

    def __enter__(self) -> Any:
        self.take_back()
        return super().__enter__()


def switch(grad: bool) -> Mode | None:
    """Switch recording with no end in sight; None if that needs no mode."""
    now = current()
    before = now if now is not None and now.at_once else None
    outer = now
    if before is not None:
        outer = from_here(before.outer, before.thread)
    mode: Mode | None = None
    if (outer is None or outer.asked) != grad:
        mode = Mode(grad, inference_enabled(), outer)
        mode.at_once = True
        mode.__enter__()
    if before is not None:
        if mode is None:
            leave(before)
        else:
            _end(before)
    return mode


class Undo:
    """What a mode may close: a call that puts something back as it was."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.function = function
        self.args = args

    def close(self) -> None:
        self.function(*self.args)


def _token_of(block: ModeBlock) -> Any:
    """The token of the `with` that is entering a block in this thread, if there is one."""
    token = None if block._tokens is None else block._tokens.pop(get_ident(), None)
    return None if token is None or token() is None else token


@mypyc_attr(native_class=False)
class Exit:
    """`__exit__` of an interpreted context manager that ends a mode; see Note [Interrupts].

    A `with` statement looks it up before it enters, and drops what it got in whatever way the block
    is left: that object is the token. Nothing but the statement holds it, not even a traceback.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, block: Any, kind: Any = None) -> Any:
        if block is None:
            return self.function
        exit_of = partial(self.function, block)
        block.hold(ref(exit_of))
        return exit_of


COMPILED: Final[bool] = not hasattr(current, "__code__")
if not COMPILED:  # interpreted ops are seen on the stack: see Note [Busy] in `core.fp_warnings`
    delattr(State, "busy")
    state.busy = False
    for kind in (Mode, ModeBlock):
        setattr(kind, "__exit__", Exit(kind.__exit__))  # noqa: B010  # mypy: a method
