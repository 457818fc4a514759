"""Whether a profiler is on."""

from __future__ import annotations

from rushlight.autograd import profiler_record
from rushlight.core.engine.observers import begins
from rushlight.core.grad_mode import state
from rushlight.core.observer import observer


def no_profiler() -> bool:
    return (
        observer.profile is None
        and not begins
        and state.active == 0
        and profiler_record.current() is None
    )
