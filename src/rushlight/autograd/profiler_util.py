"""What a profiler hands out: events, their averages, and the table.

`autograd.profiler` makes the events; users read them. `profiler_trace` writes them for a browser.

Note [Lines in a profile]
    Every event knows the line of the user's program that it is due to (`where`): of an op the line
    that called it, of a backward node the line that made the node in the forward pass. A row that
    averages several events is shown with the costliest of their lines; `places` has them all.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, NamedTuple, Self

from rushlight.autograd.profiler_table import Table, format_time
from rushlight.core.call_site import Where

__all__ = [
    "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg",
    "Interval", "Kernel",
]  # fmt: skip
__dir__ = __all__.copy


class DeviceType(Enum):
    """Where an event took place: on the CPU or on CUDA. The others have PyTorch's numbers."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __int__(self) -> int:
        return self.value


class Interval:
    """From when to when, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long that was."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work that an event gave to a GPU: its name, which GPU, how many microseconds it took."""

    name: str
    device: int
    duration: float


# --- lines ----------------------------------------------------------------------------------------
def shown_place(where: Where | None) -> str:
    """A line as tables show it: 'train.py:12'."""
    if where is None or where.code is None:
        return ""
    name = where.file if where.file.startswith("<") else os.path.basename(where.file)
    return f"{name}:{where.line}"


def frame_text(where: Where) -> str:
    """A line as PyTorch's stacks show it: 'path/train.py(12): main'."""
    return f"{where.file}({where.line}): {where.function}"


def _text_of(name: str) -> property:
    def read(self: Any) -> str:
        return format_time(getattr(self, name))

    return property(read)


def _old_name(old: str, new: str) -> property:
    def read(self: Any) -> Any:
        text = f"`{old}` is deprecated, please use `{new}` instead."
        warnings.warn(text, FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)


class FormattedTimesMixin:
    """Averages and texts of what an event and an average both have: totals, and a count."""

    count: int
    cpu_time_total: Any
    device_time_total: Any
    self_cpu_percent = total_cpu_percent = total_device_percent = ""

    cpu_time_str = _text_of("cpu_time")
    device_time_str = _text_of("device_time")
    cpu_time_total_str = _text_of("cpu_time_total")
    device_time_total_str = _text_of("device_time_total")
    self_cpu_time_total_str = _text_of("self_cpu_time_total")
    self_device_time_total_str = _text_of("self_device_time_total")
    cuda_time = _old_name("cuda_time", "device_time")

    @property
    def cpu_time(self) -> float:
        """Microseconds on the CPU, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds on the GPU, on average."""
        return self.device_time_total / self.count if self.count else 0.0


# --- events ---------------------------------------------------------------------------------------
class FunctionEvent(FormattedTimesMixin):
    """One thing that happened: an op, a backward node, or a range of the user's.

    Times are in microseconds from the start of the profile. `where` is the line it is due to; see
    Note [Lines in a profile].
    """

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float,
        overload_name: str | None = None, fwd_thread: int | None = None,
        input_shapes: list[Any] | None = None, stack: list[str] | None = None, scope: int = 0,
        use_device: str | None = None, cpu_memory_usage: int = 0, device_memory_usage: int = 0,
        is_async: bool = False, is_remote: bool = False, sequence_nr: int = -1, node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU, device_index: int = 0,
        device_resource_id: int | None = None, is_legacy: bool = False, flops: int = 0,
        trace_name: str | None = None, concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None, is_user_annotation: bool = False,
        input_dtypes: list[str] | None = None, where: Where | None = None,
    ) -> None:  # fmt: skip
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name or ""
        self.trace_name = trace_name or name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = [] if input_shapes is None else input_shapes
        self.input_dtypes = [] if input_dtypes is None else input_dtypes
        self.concrete_inputs = [] if concrete_inputs is None else concrete_inputs
        self.kwinputs = {} if kwinputs is None else kwinputs
        self.stack = [] if stack is None else stack
        self.where = where
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops = flops
        self.is_user_annotation = is_user_annotation

    @property
    def key(self) -> str:
        """What events are grouped by."""
        return self.name

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Note work that this event gave to a GPU."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note an event that happened directly inside this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Note the event that this one happened directly inside of."""
        self.cpu_parent = parent

    @property
    def places(self) -> dict[str, float]:
        """Its line, and the time it took itself; see Note [Lines in a profile]."""
        place = shown_place(self.where)
        return {place: self.self_cpu_time_total} if place else {}

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from its start to its end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """The same, without what happened inside it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """Microseconds of work on the GPU: its own, if that was measured (it then includes what
        happened inside), else the sum of what happened inside."""
        if self.kernels:
            return sum(kernel.duration for kernel in self.kernels)
        return sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """The same, without what happened inside it."""
        inside = sum(child.device_time_total for child in self.cpu_children)
        return max(0.0, self.device_time_total - inside)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of new results in the CPU's memory, without those made inside it."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes of new results in the GPU's memory, without those made inside it."""
        inside = sum(child.device_memory_usage for child in self.cpu_children)
        return self.device_memory_usage - inside

    cuda_time_total = _old_name("cuda_time_total", "device_time_total")
    self_cuda_time_total = _old_name("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _old_name("self_cuda_memory_usage", "self_device_memory_usage")

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} "
            f"{device}_time={self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_SUMS: Final = (
    "cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total",
    "cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage",
    "self_device_memory_usage", "count", "flops",
)  # fmt: skip
_FIRST: Final = (
    "key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name",
    "input_shapes", "stack", "scope", "device_type", "is_legacy", "use_device",
    "is_user_annotation",
)  # fmt: skip


class FunctionEventAvg(FormattedTimesMixin):
    """Several events of one key together. Times are sums; `cpu_time` and `device_time` are a
    call's share of them. `places` says how much time each of their lines took itself."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: Any = 0
        self.device_time_total: Any = 0
        self.self_cpu_time_total: Any = 0
        self.self_device_time_total: Any = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.is_user_annotation = False
        self.flops = 0
        self.places: dict[str, float] = {}

    def add(self, other: Any) -> Self:
        """Add an event, or another average, of the same key."""
        if not isinstance(other, FunctionEvent | FunctionEventAvg):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            for name in _FIRST:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        self._count_in(other)
        return self

    def _count_in(self, other: FunctionEvent | FunctionEventAvg) -> None:
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for place, time in other.places.items():
            self.places[place] = self.places.get(place, 0.0) + time

    def __iadd__(self, other: Any) -> Self:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )


# --- lists of them --------------------------------------------------------------------------------
class EventList(list[Any]):
    """Events (what `profile.events()` gives) or averages (what `key_averages()` gives)."""

    def __init__(
        self, events: Iterable[Any] = (), *, use_device: str | None = None,
        profile_memory: bool = False, with_flops: bool = False, with_stack: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._with_stack = with_stack

    def _like(self, events: Iterable[Any]) -> EventList:
        return EventList(
            events, use_device=self._use_device, profile_memory=self._profile_memory,
            with_flops=self._with_flops, with_stack=self._with_stack,
        )  # fmt: skip

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds that the events took themselves, together."""
        total: float = sum(event.self_cpu_time_total for event in self)
        return total

    def table(
        self, sort_by: str | None = None, row_limit: int = 100,
        max_src_column_width: int | None = 75, max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The events as a table, largest `sort_by` first (`self_cpu_time_total`, `cpu_time_total`,
        `cuda_time_total`, `cpu_memory_usage`, `count`, ...), or in their order.

        The last column has the line of your program that the event is due to, of several the
        costliest; after `key_averages(group_by_stack_n=1)` each line has its own row.
        `top_level_events_only` leaves out what happened inside another event. `time_unit` is "s",
        "ms" or "us" for all times.
        """
        if not self:
            return ""
        events: EventList = self
        if sort_by is not None:
            column = sort_by.replace("cuda", "device")
            events = self._like(sorted(self, key=lambda e: getattr(e, column), reverse=True))
        return Table(
            events, max_src_column_width, max_name_column_width, max_shapes_column_width, time_unit
        ).text(header, row_limit, top_level_events_only)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:  # fmt: skip
        """The events of one name together; on request only those whose input shapes agree too, or
        the `group_by_stack_n` innermost lines of the program that led to them."""
        groups: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            key: tuple[Any, ...] = (event.key, event.is_user_annotation)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_overload_name:
                key += (event.overload_name,)
            key += tuple(event.stack[: max(group_by_stack_n, 0)])
            groups.setdefault(key, FunctionEventAvg()).add(event)
        for average in groups.values():
            average.stack = average.stack[: max(group_by_stack_n, 0)]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return self._like(groups.values())

    def total_average(self) -> FunctionEventAvg:
        """All events together, under the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total.add(event)
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing or ui.perfetto.dev; compressed if `path` ends in
        ".gz"."""
        from rushlight.autograd.profiler_trace import write_trace

        write_trace(path, self, {})

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can weigh stacks by."""
        return ["self_cpu_time_total", "self_cuda_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line an event, its stack and what it cost, for flame graphs."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        clean = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                cost = int(getattr(event, metric.replace("cuda", "device")))
                if event.stack and cost > 0:
                    frames = [entry.translate(clean) for entry in reversed(event.stack)]
                    file.write(f"{';'.join(frames)} {cost}\n")
