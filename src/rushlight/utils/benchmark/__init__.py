"""Measuring how long statements take: `Timer`, `Measurement`, `Compare`.

>>> from rushlight.utils.benchmark import Timer
>>> Timer("x + 1", globals={"x": torch.ones(3)}).timeit(10).number_per_run
10
"""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.utils.benchmark.compare import Compare
from rushlight.utils.benchmark.measurement import Measurement, TaskSpec, select_unit, trim_sigfig
from rushlight.utils.benchmark.timer import Timer, timer

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig"]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.utils.benchmark", globals())
