"""Watching ops and backward nodes as they run.

Note [Watching]
    While a profiler is on somewhere, ops are off their fast path (a `Mode` is entered, so
    `state.active` is not 0) and `observer.profile` stands around each of them; the engine asks
    `begin_pass` for a `PassTimer`, its observer, and tells it of each node. While none is on nobody
    is asked, and nothing of this file is reached. The mode is entered in a context of its own: the
    user's modes are what they were, however the profiler's start and stop lie between theirs.

Note [Whose work]
    A recorder belongs to the thread that started it, as in PyTorch, and hears of nothing else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from time import perf_counter_ns, time_ns
from types import CodeType
from typing import Any, Final

from rushlight.arrays.batched import bottom
from rushlight.arrays.host import cupy, device_of, is_array
from rushlight.core.call_site import Where
from rushlight.core.engine.observers import PassObserver, observe, stop_observing
from rushlight.core.grad_mode import Mode, _lock, leave, within
from rushlight.core.graph import Op, next_number, node_class_of
from rushlight.core.observer import observer
from rushlight.errors import sentence
from rushlight.ops.apply import run_plain

__all__ = ["Entry", "Recorder", "current"]

# at::RecordScope, as PyTorch numbers it
FORWARD: Final = 0
BACKWARD: Final = 1
USER: Final = 7

Place = tuple[CodeType | None, int]
_NOWHERE: Final[Place] = (None, 0)


# --- names ----------------------------------------------------------------------------------------
_names: Final[dict[type[Any], str]] = {}


def profiled_name(op: type[Op]) -> str:
    """An op's name as PyTorch's profiles show it: 'aten::mul'.

    >>> from rushlight.autograd.profiler_record import profiled_name
    >>> from rushlight.ops.registry import table
    >>> profiled_name(table["sum_dim"])
    'aten::sum'
    """
    found = _names.get(op)
    if found is None:
        name = op.name
        if "::" in name:  # the user's own, with a namespace of its own
            found = name
        elif op.aten is None:  # a step that PyTorch has no op for
            found = f"rushlight::{name}"
        else:
            found = f"aten::{op.profile_name or op.aten.partition('.')[0] or name}"
        _names[op] = found
    return found


# --- what one event is before it is asked about ---------------------------------------------------
class Entry:
    """One event as it is being recorded: small, for it costs time that is being measured."""

    __slots__ = (
        "args", "backward", "bytes", "clock", "device_bytes", "dtypes", "end", "flops", "gpu",
        "mark", "name", "node", "parent", "place", "scope", "shapes", "stack", "start",
    )  # fmt: skip

    def __init__(self, name: str, scope: int, place: Place, parent: Entry | None) -> None:
        self.name = name
        self.scope = scope
        self.place = place
        self.parent = parent
        self.end = -1
        self.mark = -1  # of an op: the number its node will come right after
        self.node = -1  # of a backward node: its number
        self.backward: Any = None  # of an op: the class its node would have
        self.stack: list[Place] | None = None
        self.shapes: list[Any] = []
        self.dtypes: list[str] = []
        self.args: str | None = None
        self.bytes = 0
        self.device_bytes = 0
        self.flops = 0
        self.clock: Any = None  # a CUDA event: before, and then the pair
        self.gpu = -1
        self.start = perf_counter_ns()


class Recorder:
    """What happened on one thread between two moments."""

    def __init__(
        self, shapes: bool, memory: bool, flops: bool, stack: bool, device: str | None
    ) -> None:
        self.shapes = shapes
        self.memory = memory
        self.flops = flops
        self.stack = stack
        self.device = device
        self.on = False
        self.mode: Mode | None = None
        self.paused = False
        self.thread = threading.get_native_id()
        self.entries: list[Entry] = []
        self.open: list[Entry] = []
        self.calls: list[Place] = []  # the lines that called backward, of the passes that run
        self.began: Place = _NOWHERE
        self.start = 0
        self.end = 0
        self.wall = 0  # when that was, in nanoseconds since 1970

    # --- on and off ---------------------------------------------------------------------------
    def begin(self) -> None:
        """Start listening to this thread."""
        other = current()
        if other is not None:
            raise RuntimeError(
                sentence(
                    "Profiler is already enabled on this thread",
                    f"by the profiler that was started at {Where(*other.began)}",
                    "A thread has one profiler at a time: let the other one end first.",
                )
            )
        self.on = True
        self.began, _ = place_now()
        self.context = copy_context()
        self.mode = self.context.run(within, True, False)
        self.context.run(self.mode.__enter__)
        _thread.recorder = self
        with _lock:
            _live.append(self)
            observer.timed = time_op
            observe(begin_pass)
            if observer.profile is None:  # else `utils.around` is there, and hands on
                observer.profile = time_op
        self.wall = time_ns()
        self.start = perf_counter_ns()

    def finish(self) -> None:
        """Stop listening; called again it does nothing, or what an interrupt left undone."""
        if not self.on:
            return
        if not self.end:
            self.end = perf_counter_ns()
        with _lock:
            if self in _live:
                _live.remove(self)
            if not _live:
                observer.timed = None
                stop_observing(begin_pass)
                if observer.profile is time_op:
                    observer.profile = None
        if self.mode is not None:
            self.context.run(leave, self.mode)
        if getattr(_thread, "recorder", None) is self:
            del _thread.recorder
        for entry in self.open:
            entry.end = self.end
        self.open.clear()
        self.on = False
        self.read_clocks()

    # --- events -------------------------------------------------------------------------------
    def enter(self, name: str, scope: int, place: Place) -> Entry:
        """An event begins, inside those that are open."""
        entry = Entry(name, scope, place, self.open[-1] if self.open else None)
        self.entries.append(entry)
        self.open.append(entry)
        return entry

    def leave(self, entry: Entry) -> None:
        """It ends. What is still open above it did not happen inside it after all."""
        if entry.end >= 0:
            return
        entry.end = perf_counter_ns()
        if self.open[-1] is entry:
            self.open.pop()
            return
        at = self.open.index(entry)
        del self.open[at]
        for later in self.open[at:]:
            if later.parent is entry:
                later.parent = entry.parent

    def describe(self, entry: Entry, values: tuple[Any, ...]) -> None:
        """Note the shapes of the inputs, and their dtypes."""
        for x in values:
            shape = getattr(x, "shape", None)
            entry.shapes.append([] if shape is None else list(shape))
            entry.dtypes.append(_type_name(x))

    def weigh(self, entry: Entry, results: Any, inputs: tuple[Any, ...]) -> None:
        """Count the bytes of the results that are not in the memory of an input."""
        if entry.bytes or entry.device_bytes:
            return  # counted already, by the events inside
        held = {id(_owner(x)) for x in inputs}
        seen = set()
        for y in results if isinstance(results, tuple | list) else (results,):
            owner = _owner(y)
            if owner is None or id(owner) in held or id(owner) in seen:
                continue
            seen.add(id(owner))
            nbytes = int(bottom(y).nbytes)
            on_gpu = device_of(owner).type == "cuda"
            above: Entry | None = entry
            while above is not None:  # a range has what was made inside it
                if on_gpu:
                    above.device_bytes += nbytes
                else:
                    above.bytes += nbytes
                above = above.parent

    # --- the GPU's own time -------------------------------------------------------------------
    def clock(self, entry: Entry, values: tuple[Any, ...]) -> None:
        """Before work: have the GPU note the time, if there is anything of its."""
        for x in values:
            x = bottom(x)
            if not is_array(x) and hasattr(x, "dtype") and device_of(x).type == "cuda":
                entry.gpu = device_of(x).index or 0
                entry.clock = cupy().cuda.Event()
                entry.clock.record()
                return

    def unclock(self, entry: Entry) -> None:
        """After work: have it note the time again."""
        if entry.clock is not None and self.on:
            after = cupy().cuda.Event()
            after.record()
            entry.clock = (entry.clock, after)

    def read_clocks(self) -> None:
        """At the end: wait for the GPU, and turn its notes into microseconds."""
        for entry in self.entries:
            if isinstance(entry.clock, tuple):
                before, after = entry.clock
                after.synchronize()
                entry.clock = 1000.0 * float(cupy().cuda.get_elapsed_time(before, after))
            elif entry.clock is not None:  # it was under way when the profile ended
                entry.clock = None


_thread: Final = threading.local()
_live: Final[list[Recorder]] = []


def current() -> Recorder | None:
    """The recorder of this thread, if it is on."""
    found: Recorder | None = getattr(_thread, "recorder", None)
    return found if found is not None and found.on else None


# --- lines ----------------------------------------------------------------------------------------
def place_now() -> tuple[Place, bool]:
    """The user's line that is running, and whether an in-place form was called there."""
    written = False
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or not name.startswith("rushlight."):
            return (code, frame.f_lasti), written
        called = code.co_name
        if called == "run_inplace" or (called.endswith("_") and not called.endswith("__")):
            written = True
        if frame.f_back is None:
            break
        frame = frame.f_back
    return _NOWHERE, written


def same_place(a: Place, b: Place) -> bool:
    """Whether two places are one. Equal code objects may stand in different files."""
    return a[0] is b[0] and a[1] == b[1]


def stack_now() -> list[Place]:
    """The user's lines that are running, innermost first."""
    found: list[Place] = []
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or not name.startswith("rushlight."):
            found.append((frame.f_code, frame.f_lasti))
        if frame.f_back is None:
            break
        frame = frame.f_back
    return found


# --- ops ------------------------------------------------------------------------------------------
def time_op(op: Any, raws: tuple[Any, ...], *action: Callable[..., Any]) -> Any:
    """`core.observer.observer.profile`: an op's forward, or `action(*raws)` in its place, timed."""
    recorder = current()
    if recorder is None or recorder.paused:
        return run_plain(op, raws, *action)
    place, written = place_now()
    name = profiled_name(type(op))
    if written and not name.endswith("_"):
        name += "_"
    if recorder.calls and recorder.open and same_place(place, recorder.calls[-1]):
        place = recorder.open[-1].place  # a rule called it, on behalf of the node's line
    mark = next_number()
    entry = recorder.enter(name, FORWARD, place)
    entry.mark = mark
    entry.backward = node_class_of(op.plan)
    if recorder.stack:
        entry.stack = stack_now()
    if recorder.device is not None:
        recorder.clock(entry, raws)
    entry.start = perf_counter_ns()
    try:
        y = run_plain(op, raws, *action)
    finally:
        if recorder.device is not None:
            recorder.unclock(entry)
        recorder.leave(entry)
    if recorder.shapes:
        recorder.describe(entry, raws)
    if recorder.memory and not written:
        recorder.weigh(entry, y, raws)
    if recorder.flops:
        entry.flops = flops_of(name, raws, y)
    return y


def around_operator(name: str, values: tuple[Any, ...], action: Callable[[], Any]) -> Any:
    """`action()` as one event, like that of an op: for operators of the user's own."""
    recorder = current()
    if recorder is None or recorder.paused:
        return action()
    entry = recorder.enter(name, FORWARD, place_now()[0])
    if recorder.stack:
        entry.stack = stack_now()
    if recorder.shapes:
        recorder.describe(entry, tuple([getattr(x, "_array", x) for x in values]))
    try:
        return action()
    finally:
        recorder.leave(entry)


def flops_of(name: str, raws: tuple[Any, ...], y: Any) -> int:
    """Floating-point operations, of the ops for which PyTorch estimates them too."""
    if name in ("aten::mul", "aten::add"):
        return int(y.size)
    if name in ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"):
        return 2 * int(y.size) * int(raws[-1].shape[-2])
    return 0


# PyTorch's traces have the names of C++
_TYPES: Final = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "int8": "signed char", "uint8": "unsigned char", "int16": "short", "int32": "int",
    "int64": "long int", "bool": "bool", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def _type_name(x: Any) -> str:
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return "Scalar" if isinstance(x, bool | int | float | complex) else ""
    name = str(dtype).removeprefix("torch.")
    return _TYPES.get(name, name)


def _owner(x: Any) -> Any:
    """The array whose memory `x` looks into; None for what is no array."""
    x = bottom(x)
    if not hasattr(x, "nbytes"):
        return None
    while getattr(x, "base", None) is not None and hasattr(x.base, "nbytes"):
        x = x.base
    return x


# --- backward -------------------------------------------------------------------------------------
class PassTimer(PassObserver):
    """One backward pass, as the engine tells of it."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.call, _ = place_now()
        self.outer: Entry | None = None  # the engine's work on one node
        self.inner: Entry | None = None  # the node's own rule
        self.values: tuple[Any, ...] = ()
        recorder.calls.append(self.call)

    def before_node(self, node: Any) -> None:
        """The engine turns to a node; None stands for the node of a leaf."""
        self.end()
        if self.recorder.on and not self.recorder.paused:
            leaf = node is None
            name = "torch::autograd::AccumulateGrad" if leaf else node.name()
            place = self.call if leaf or node._code is None else (node._code, node._code_offset)
            self.outer = self.enter(f"autograd::engine::evaluate_function: {name}", place)
            if not leaf:
                self.outer.node = node._seq_nr

    def before_leaf(self, g: Any, stores: bool) -> None:
        """The engine turns to a leaf whose gradient is `g`; `stores`: it adds it to `.grad`."""
        self.before_node(None)
        if stores:
            self.before_rule(None, g)

    def sees_leaves(self) -> bool:
        return True

    def enter(self, name: str, place: Place) -> Entry:
        entry = self.recorder.enter(name, BACKWARD, place)
        if self.recorder.stack:
            entry.stack = [place]
        return entry

    def before_rule(self, node: Any, g: Any) -> None:
        """The node's rule is about to run on the gradient `g`."""
        recorder, outer = self.recorder, self.outer
        if outer is None:
            return
        name = outer.name.removeprefix("autograd::engine::evaluate_function: ")
        self.inner = self.enter(name, outer.place)
        self.inner.node = outer.node
        self.values = tuple(g) if isinstance(g, list) else (g,)
        if recorder.shapes:
            recorder.describe(self.inner, self.values)
        if recorder.device is not None:
            recorder.clock(self.inner, self.values)
        if node is not None and recorder.memory:
            self.values = (*self.values, *node._kept_values)
        self.inner.start = perf_counter_ns()

    def after_rule(self, node: Any, outs: Any) -> None:
        """It has run, and gave `outs`."""
        inner = self.inner
        if inner is None:
            return
        recorder = self.recorder
        if recorder.device is not None:
            recorder.unclock(inner)
        recorder.leave(inner)
        if recorder.memory and outs is not None:
            recorder.weigh(inner, tuple(outs), self.values)
        self.inner = None
        self.values = ()

    def end(self) -> None:
        """The engine is done with the node, or an error took it away from it."""
        self.values = ()
        if self.inner is not None:
            self.recorder.unclock(self.inner)
        for entry in (self.inner, self.outer):
            if entry is not None:
                self.recorder.leave(entry)
        self.inner = self.outer = None

    def finish(self) -> None:
        """The pass is over, one way or the other."""
        self.end()
        if self.recorder.calls and self.recorder.calls[-1] is self.call:
            self.recorder.calls.pop()


def begin_pass() -> PassTimer | None:
    """Who is told of the backward pass that begins, if this thread is watched."""
    recorder = current()
    return None if recorder is None else PassTimer(recorder)
