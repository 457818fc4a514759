"""What a `Timer` found: `Measurement`, of the task that a `TaskSpec` describes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Measurement", "TaskSpec", "select_unit", "trim_sigfig"]
__dir__ = __all__.copy

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_IQR_WARNING, _IQR_BAD = 0.1, 0.25
_CLOCK = 25e-9  # no time is known better than this


def select_unit(t: float) -> tuple[str, float]:
    """select_unit(t) -> (str, float): the unit for a time in seconds, and how long it is.

    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    found = [(name, size) for name, size in _UNITS.items() if t >= size]
    return found[-1] if found else ("ns", 1e-9)


def trim_sigfig(x: float, n: int) -> float:
    """trim_sigfig(x, n) -> float: x to n significant figures.

    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    if x == 0:
        return x
    scale = 10.0 ** (n - 1 - math.floor(math.log10(abs(x))))
    return round(x * scale) / scale


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured: the statement, and how it is called in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        more = "\n".join(f"  {line}" for line in self.stmt.splitlines())
        return f"stmt:\n{more}"

    def setup_str(self) -> str:
        """The setup, for the printed form."""
        if self.setup in ("pass", ""):
            return ""
        if "\n" not in self.setup:
            return f"setup: {self.setup}"
        return "setup:\n" + "\n".join(f"  {line}" for line in self.setup.splitlines())

    def summarize(self) -> str:
        """All of it, in lines."""
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        parts = [self.title, self.description or "", self.setup_str(), threads]
        return "\n".join(part for part in parts if part)


class Measurement:
    """Measurement(number_per_run, raw_times, task_spec): times of one statement, in seconds.

    >>> from rushlight.utils.benchmark import Measurement, TaskSpec
    >>> m = Measurement(10, [0.1, 0.2, 0.3], TaskSpec("f()", "pass"))
    >>> m.median, m.number_per_run
    (0.02, 10)
    """

    def __init__(
        self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec,
        metadata: dict[Any, Any] | None = None,
    ) -> None:  # fmt: skip
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task_spec
        self.metadata = metadata

    def __getattr__(self, name: str) -> Any:
        if name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds that one execution took, in each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        return _quantile(self.times, 0.75) - _quantile(self.times, 0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median can be believed."""
        count = len(self.times)
        middle = sorted(self.times)[count // 4 : math.ceil(3 * count / 4)]
        error = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))
        figures = math.log10(self.median / max(error, _CLOCK))
        return max(min(math.floor(figures), 5), 1)

    @property
    def has_warnings(self) -> bool:
        return len(self.times) > 1 and not self.meets_confidence(_IQR_WARNING)

    def meets_confidence(self, threshold: float = _IQR_WARNING) -> bool:
        """Whether the runs differ by less than `threshold` of their median."""
        return self.iqr / self.median < threshold if self.median else True

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        spec = self.task_spec
        lines = [object.__repr__(self), spec.title]
        lines += [part for part in (spec.description or "", spec.setup_str()) if part]
        unit, size = select_unit(self.median)
        threads = f"{spec.num_threads} thread{'s' if spec.num_threads > 1 else ''}"
        if len(self.raw_times) > 1:
            lines.append(f"  Median: {self.median / size:.2f} {unit}")
            if len(self.raw_times) > 3:
                low, high = _quantile(self.times, 0.25), _quantile(self.times, 0.75)
                spread = f"{self.iqr / size:.2f} {unit} ({low / size:.2f} to {high / size:.2f})"
                lines.append(f"  IQR:    {spread}")
            lines.append(
                f"  {len(self.raw_times)} measurements, {self.number_per_run} runs per "
                f"measurement, {threads}"
            )
        else:
            lines.append(f"  {self.median / size:.2f} {unit}")
            lines.append(f"  1 measurement, {self.number_per_run} runs , {threads}")
        if self.has_warnings:
            part = self.iqr / self.median * 100
            lines.append(
                f"  WARNING: Interquartile range is {part:.1f}% of the median measurement."
            )
            hard = self.iqr / self.median > _IQR_BAD
            lines.append(
                "           This suggests significant environmental influence."
                if hard
                else "           This could indicate system fluctuation."
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all of its measurements."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        merged = []
        for spec, group in groups.items():
            times = [t for m in group for t in m.times]
            merged.append(Measurement(1, times, spec))
        return merged


def _quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
