"""The profiler that follows a training loop: it waits, warms up, records, and starts over.

`autograd.profiler` does the recording; here is decided when.
"""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final, Self

from rushlight.arrays.device import cuda_count
from rushlight.autograd import profiler as _autograd
from rushlight.autograd.profiler import ProfilerActivity, record_function, refuse_config
from rushlight.autograd.profiler_util import EventList
from rushlight.ops.warned import warn_caller

__all__ = [
    "ProfilerAction", "profile", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip
__dir__ = __all__.copy


class ProfilerAction(Enum):
    """What a profiler does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


_RECORDING: Final = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """supported_activities() -> set: what can be recorded here."""
    found = {ProfilerActivity.CPU}
    if cuda_count() > 0:
        found.add(ProfilerActivity.CUDA)
    return found


def kineto_available() -> bool:
    """kineto_available() -> bool: False, rushlight measures by itself."""
    return False


def _default_schedule_fn(_: int) -> ProfilerAction:
    """The schedule of those who give none: record always."""
    return ProfilerAction.RECORD


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0)

    A schedule for `profile`: skip `skip_first` steps, then again and again wait, warm up, and
    record for so many steps; `repeat` times, or (0) until the end. With `skip_first_wait` the first
    cycle does not wait.

    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle, at = divmod(step, length)
        if (repeat and cycle >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:  # fmt: skip
    """tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False)

    For `on_trace_ready`: write each trace into a folder, under the names that TensorBoard looks
    for.
    """

    def write(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


def _check(activities: Iterable[Any] | None) -> set[ProfilerActivity]:
    if activities is None:
        return supported_activities()
    found: set[ProfilerActivity] = set()
    for activity in activities:
        if not isinstance(activity, ProfilerActivity):
            raise TypeError(f"Expected ProfilerActivity, got {type(activity)}")
        if activity in found:
            raise ValueError(f"Activity {activity} specified more than once")
        found.add(activity)
    return found


class _KinetoProfile:
    """What is recorded, and what came of it; `profile` adds the steps."""

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config: None = None,
        execution_trace_observer: Any = None, acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        refuse_config(experimental_config)
        self.activities = _check(activities)
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: _autograd.profile | None = None
        self.use_device: str | None = None
        for activity in ("CUDA", "XPU", "MTIA", "HPU"):
            if ProfilerActivity[activity] in self.activities:
                self.use_device = activity.lower()
                break
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, Any] = {}

    # --- on and off -----------------------------------------------------------------------------
    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """End it."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Make ready for `start_trace`."""
        if self.profiler is not None and not self.acc_events:
            _warn_cleared()
        if self.profiler is None or not self.acc_events:
            self.profiler = _autograd.profile(
                use_cpu=ProfilerActivity.CPU in self.activities, use_device=self.use_device,
                record_shapes=self.record_shapes, with_flops=self.with_flops,
                profile_memory=self.profile_memory, with_stack=self.with_stack,
                with_modules=self.with_modules, use_kineto=True, acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s,
            )  # fmt: skip
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        """Begin to record, now."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        self.profiler._start_trace()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        options = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
        for name in options:
            if getattr(self, name):
                self._metadata[name] = 1
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self) -> None:
        """Record no longer."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        self.profiler._stop_trace()

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Stop recording for a while, or go on; see `autograd.profiler.profile`."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # --- what was found -------------------------------------------------------------------------
    def _made(self, what: str) -> _autograd.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self) -> EventList:
        """Every event by itself."""
        return self._made("accessing events").function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:  # fmt: skip
        """Events of one name together; by input shapes or lines too, if asked."""
        return self._made("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the last cycle for chrome://tracing or ui.perfetto.dev; compressed if `path` ends
        in ".gz". It is Python that writes it, whatever `use_python_export` says."""
        self._made("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and what they cost, for flame graphs. Needs `with_stack=True`."""
        self._made("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text of yours into the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value of yours into the trace, given as JSON."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same, for every trace that begins from now on."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Who names the traces: asked once a cycle."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the current trace."""
        return None if self.profiler is None else self.profiler.trace_id


class _Told:
    """What has been said once."""

    cleared = False


def _warn_cleared() -> None:
    if not _Told.cleared:
        _Told.cleared = True
        warn_caller(
            "Warning: Profiler clears events at the end of each cycle. Only events from the "
            "current cycle will be reported. To keep events across cycles, set acc_events=True."
        )


class profile(_KinetoProfile):
    """profile(*, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
    profile_memory=False, with_stack=False, with_flops=False, ...)

    Record what this thread does: in a `with` block, or between `start()` and `stop()`. With a
    `schedule`, only the steps it picks, a step lasting from one call of `step()` to the next;
    `on_trace_ready` is called with the profiler when they are done. Each event is counted to the
    line of your program that it is due to.

    >>> x = torch.ones(3, requires_grad=True)
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> with torch.profiler.profile(schedule=plan) as prof:
    ...     for _ in range(5):
    ...         (x * 2).sum().backward()
    ...         prof.step()
    >>> {row.key: row.count for row in prof.key_averages()}["aten::mul"]
    2
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config: None = None,
        execution_trace_observer: Any = None, acc_events: bool = False,
        use_cuda: bool | None = None, custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        chosen = supported_activities() if activities is None else list(activities)
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
            chosen = [a for a in chosen if a is not ProfilerActivity.CUDA]
            if use_cuda:
                chosen.append(ProfilerActivity.CUDA)
        if not any(isinstance(activity, ProfilerActivity) for activity in chosen):
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=chosen, record_shapes=record_shapes, profile_memory=profile_memory,
            with_stack=with_stack, with_flops=with_flops, with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer, acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )  # fmt: skip
        self.schedule = _always if schedule is None else schedule
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: record_function | None = None
        self.current_action = self._action_at(0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    # --- steps ----------------------------------------------------------------------------------
    def _action_at(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if action is ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be "
                "returned by a user-provided schedule"
            )
        return action

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def start(self) -> None:
        """Begin with the schedule's current step."""
        self._go(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End, and hand over what was recorded."""
        self._end_step()
        self._go(self.current_action, None)

    def step(self) -> None:
        """The next step of the loop begins."""
        self._end_step()
        before = self.current_action
        action = self._action_at(self.step_num + 1)
        self.step_num += 1
        self.current_action = action
        self._go(before, action)
        self._begin_step()

    def _go(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """From what was done in the last step to what is done in the next (None: there is none)."""
        if before is ProfilerAction.WARMUP:
            if now in _RECORDING:
                self.start_trace()
            elif now is not ProfilerAction.WARMUP:
                if now is not None:
                    _warn_order(before, now)
                self.start_trace()
                self.stop_trace()
            return
        if before is ProfilerAction.RECORD:
            if now in _RECORDING:
                return
            if now is not None:
                _warn_order(before, now)
            self.stop_trace()
            if now is None:
                self._trace_ready()
            return
        if before is ProfilerAction.RECORD_AND_SAVE:
            self.stop_trace()
            self._trace_ready()
        if now is ProfilerAction.WARMUP or now in _RECORDING:
            self.prepare_trace()
        if now in _RECORDING:
            self.start_trace()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)


def _warn_order(before: ProfilerAction, now: ProfilerAction) -> None:
    warnings.warn(f"Incorrect schedule: {before.name} followed by {now.name}", stacklevel=4)
