"""`torch.profiler`: profiles of training loops, step by step.

>>> from rushlight.profiler import profile, record_function, ProfilerActivity
>>> with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
...     with record_function("double"):
...         y = torch.ones(2, 3) * 2
>>> [(row.key, row.count) for row in prof.key_averages()]
[('double', 1), ('aten::mul', 1)]
"""

import typing as _typing

from rushlight.autograd.profiler import DeviceType, ProfilerActivity, record_function
from rushlight.missing import face as _face
from rushlight.profiler.profiler import (
    ProfilerAction,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from rushlight.profiler.profiler import _KinetoProfile as _KinetoProfile

__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available",
    "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.profiler", globals(), unlisted=("_KinetoProfile",))
