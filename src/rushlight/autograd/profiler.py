"""`torch.autograd.profiler`: where the time of a piece of code goes, op by op and line by line.

`torch.profiler` builds on this. How things are heard of is in `profiler_record`, what they look
like in `profiler_util`.
"""

from __future__ import annotations

import functools
import logging
import typing as _typing
import uuid
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable
from enum import Enum
from time import perf_counter
from typing import Any, Final, Self, TypeVar

from rushlight.arrays.device import cuda_count
from rushlight.autograd.profiler_record import USER, Entry, Recorder, current, place_now, stack_now
from rushlight.autograd.profiler_trace import write_trace
from rushlight.autograd.profiler_util import DeviceType as DeviceType
from rushlight.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, frame_text
from rushlight.core.call_site import Where
from rushlight.core.grad_mode import Mode, ModeBlock, Undo
from rushlight.core.observer import observer
from rushlight.missing import face as _face

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]

F = TypeVar("F", bound=Callable[..., Any])
_log: Final = logging.getLogger(__name__)


class ProfilerActivity(Enum):
    """What is to be recorded. There are CPU and CUDA here; the others have PyTorch's numbers."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5

    def __int__(self) -> int:
        return self.value

    def __str__(self) -> str:
        return f"ProfilerActivity.{self.name}"


def _profiler_enabled() -> bool:
    """Whether a profile is being taken."""
    return observer.timed is not None


class emit_nvtx:
    """emit_nvtx(enabled=True): a block whose ops are marked for NVIDIA's profiler. rushlight makes
    no such marks: entering it raises."""

    _tool = "NVTX"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> Self:
        if self.enabled:
            raise RuntimeError(
                f"rushlight makes no marks for {self._tool}; use torch.profiler.profile"
            )
        return self

    def __exit__(self, *error: object) -> None:
        return None


class emit_itt(emit_nvtx):
    """emit_itt(enabled=True): likewise for Intel's profiler."""

    _tool = "ITT"


class record_function:
    """record_function(name, args=None)

    Give a block, or as a decorator each call of a function, a name in the profile that is being
    taken. Without a profiler it does nothing.

    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("my block"):
    ...         y = torch.ones(2) * 3
    >>> [event.name for event in prof.function_events]
    ['my block', 'aten::mul']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[tuple[Recorder, Entry] | None] = []

    def __enter__(self) -> Self:
        recorder = current()
        if recorder is None or recorder.paused:
            self._open.append(None)
            return self
        if not isinstance(self.name, str):
            raise RuntimeError(
                "profiler::_record_function_enter_new() Expected a value of type 'str' for "
                f"argument 'name' but instead found type {type(self.name).__name__!r}."
            )
        place, _ = place_now()
        entry = recorder.enter(self.name, USER, place)
        entry.args = self.args
        if recorder.stack:
            entry.stack = stack_now()
        self._open.append((recorder, entry))
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not self._open:
            raise AssertionError("Expected record to be set")
        opened = self._open.pop()
        if opened is not None:
            recorder, entry = opened
            recorder.leave(entry)

    def __call__(self, fn: F) -> F:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return fn(*args, **kwargs)

        return call  # type: ignore[return-value]  # it has the signature of what it wraps


class profile(ModeBlock):
    """profile(enabled=True, *, use_device=None, record_shapes=False, with_flops=False,
    profile_memory=False, with_stack=False, ...)

    Record what this thread does in a `with` block: ops, backward nodes, and the ranges that
    `record_function` names. Each is counted to the line of your program that it is due to.
    `use_device="cuda"` also has the GPU measure its own work. With `enabled=False` nothing happens.

    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.autograd.profiler.profile() as prof:
    ...     for _ in range(10):
    ...         (x * x).sum().backward()
    >>> rows = {row.key: row.count for row in prof.key_averages()}
    >>> rows["aten::mul"], rows["MulBackward0"]
    (10, 10)
    >>> print(prof.key_averages().table(sort_by="self_cpu_time_total"))  # doctest: +ELLIPSIS
    ---...
    Self CPU time total: ...
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False,
        use_cpu: bool = True, experimental_config: None = None, acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(None, None)
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use "
                "``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        refuse_config(experimental_config)
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_device = _check_device(use_device)
        if not use_cpu and self.use_device is None:
            raise AssertionError("No activities specified for the profiler")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.use_cuda = self.use_device == "cuda"
        self.use_cpu = use_cpu
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.trace_id = ""
        self.entered = False
        self._recorder: Recorder | None = None
        self._finished: Recorder | None = None  # its events are read when someone asks
        self._kept: list[Any] = []  # of earlier cycles
        self._events: EventList | None = None

    # --- on and off -----------------------------------------------------------------------------
    def fill(self, mode: Mode) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        mode.closes = Undo(self._stop_trace)
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        self.entered = True
        callback = self.custom_trace_id_callback
        self.trace_id = callback() if callback is not None else f"{uuid.uuid4().int:032X}"

    def _start_trace(self) -> None:
        self.entered = True
        recorder = Recorder(
            self.record_shapes, self.profile_memory, self.with_flops, self.with_stack,
            self.use_device,
        )  # fmt: skip
        self._recorder = recorder
        recorder.begin()

    def _stop_trace(self) -> None:
        """What an interrupt leaves undone is done by another call."""
        recorder = self._recorder
        if recorder is None:
            return
        recorder.finish()
        if self.acc_events and self._finished is not None:
            self._kept = list(self.function_events)
        self._recorder = None
        self._finished = recorder
        self._events = None

    def toggle_collection_dynamic(
        self, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Stop recording for a while, or go on. Only all activities together can be stopped: the
        GPU's times belong to events of the CPU."""
        if self._recorder is not None and ProfilerActivity.CPU in set(activities):
            self._recorder.paused = not enabled

    # --- what was found -------------------------------------------------------------------------
    @property
    def function_events(self) -> EventList:
        """The events, in the order they began."""
        if self._events is None:
            self._events = EventList(
                [] if self._finished is None else self._made_events(self._finished),
                use_device=self.use_device, profile_memory=self.profile_memory,
                with_flops=self.with_flops, with_stack=self.with_stack,
            )  # fmt: skip
            self._events.extend(self._kept)
        return self._events

    def _made_events(self, recorder: Recorder) -> list[FunctionEvent]:
        limit, began = self.post_processing_timeout_s, perf_counter()
        numbers = node_numbers(recorder.entries)
        made: dict[int, FunctionEvent] = {}
        for k, entry in enumerate(recorder.entries):
            if limit is not None and perf_counter() - began >= limit:
                _log.warning(
                    "Profiler timed out after %.3f seconds, returning partial results with %d "
                    "events", limit, len(made),
                )  # fmt: skip
                break
            event = event_of(entry, k + 1, numbers.get(k, entry.node), recorder)
            parent = None if entry.parent is None else made.get(id(entry.parent))
            if parent is not None:
                event.set_cpu_parent(parent)
                parent.append_cpu_child(event)
            made[id(entry)] = event
        return list(made.values())

    def __repr__(self) -> str:
        if not self.enabled or self._finished is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if not self.enabled or self._finished is None:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    def table(
        self, sort_by: str | None = None, row_limit: int = 100,
        max_src_column_width: int | None = 75, max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80, header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """Every event as a row; see `EventList.table`."""
        return self.function_events.table(
            sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width, header=header,
            top_level_events_only=top_level_events_only,
        )  # fmt: skip

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:  # fmt: skip
        """Events of one name together; see `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds that the events took, each counted once."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(
        self, path: str, metadata: dict[str, Any] | None = None, use_python_export: bool = False
    ) -> None:
        """Write the events of the last cycle for chrome://tracing or ui.perfetto.dev; compressed if
        `path` ends in ".gz". It is Python that writes them, whatever `use_python_export` says."""
        if self._finished is None:
            raise AssertionError("Expected profiling results")
        events = self.function_events
        last = events[: len(events) - len(self._kept)]
        write_trace(path, last, {"trace_id": self.trace_id, **(metadata or {})}, self._finished)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and what they cost, for flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)


def refuse_config(config: object) -> None:
    """PyTorch's experimental options are Kineto's, and there is no Kineto here."""
    if config is not None:
        raise ValueError("experimental_config sets options of Kineto, which rushlight has not")


def _check_device(use_device: str | None) -> str | None:
    """The device to measure, if it can be."""
    if use_device is None:
        return None
    if use_device not in ("cuda", "xpu", "mtia", "hpu"):
        warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=3)
        return None
    if use_device != "cuda" or cuda_count() == 0:
        name = use_device.upper()
        warnings.warn(f"{name} is not available, disabling {name} profiling", stacklevel=3)
        return None
    return use_device


# --- from what was recorded to what is shown ------------------------------------------------------
def node_numbers(entries: list[Entry]) -> dict[int, int]:
    """For ops whose node ran in the profile too: position of the entry -> number of the node.

    A node takes its number right after its op has run. So it is due to the last op that took its
    mark before, if that op makes nodes of this kind.
    """
    marked = [k for k, entry in enumerate(entries) if entry.mark >= 0]
    marks = [entries[k].mark for k in marked]
    found: dict[int, int] = {}
    for entry in entries:
        if entry.node >= 0:
            at = bisect_left(marks, entry.node) - 1
            if at >= 0 and entries[marked[at]].backward.__name__ in entry.name:
                found[marked[at]] = entry.node
    return found


def event_of(entry: Entry, id: int, number: int, recorder: Recorder) -> FunctionEvent:
    """A recorded entry as users see it."""
    where = Where(*entry.place)
    lines = entry.stack if entry.stack is not None else [entry.place]
    step = entry.name.startswith("ProfilerStep#")
    event = FunctionEvent(
        id=id, name="ProfilerStep*" if step else entry.name, trace_name=entry.name,
        thread=recorder.thread, start_us=(entry.start - recorder.start) / 1000,
        end_us=(entry.end - recorder.start) / 1000,
        fwd_thread=recorder.thread if entry.node >= 0 else None, input_shapes=entry.shapes,
        input_dtypes=entry.dtypes, concrete_inputs=[] if entry.args is None else [entry.args],
        stack=[frame_text(Where(*line)) for line in lines if line[0] is not None],
        scope=entry.scope, use_device=recorder.device, cpu_memory_usage=entry.bytes,
        device_memory_usage=entry.device_bytes, sequence_nr=number,
        is_legacy=entry.clock is not None, flops=entry.flops,
        is_user_annotation=entry.scope == USER, where=None if where.code is None else where,
    )  # fmt: skip
    if entry.clock is not None:
        event.append_kernel(entry.name, entry.gpu, entry.clock)
    return event


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.autograd.profiler", globals(), unlisted=("DeviceType", "ProfilerActivity")
    )
