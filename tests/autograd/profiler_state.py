"""Whether a profiler is on."""

from __future__ import annotations

from rushlight.autograd import profiler_record
from rushlight.core.engine.engine import watch
from rushlight.core.grad_mode import state
from rushlight.core.record import slots


def no_profiler() -> bool:
    return (
        slots.profile is None
        and watch.profile is None
        and state.active == 0
        and profiler_record.current() is None
    )
