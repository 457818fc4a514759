"""`Compare`: measurements as a table, a row a `sub_label` and a column a `description`."""

from __future__ import annotations

import math
from typing import Any

from rushlight.utils.benchmark.measurement import Measurement, select_unit, trim_sigfig

__all__ = ["Compare"]
__dir__ = __all__.copy

_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


class Compare:
    """Compare(results): a table of measurements.

    >>> from rushlight.utils.benchmark import Compare, Measurement, TaskSpec
    >>> spec = [TaskSpec("f", "", label="add", sub_label="small", description=d) for d in "ab"]
    >>> both = [Measurement(1, [2e-6], spec[0]), Measurement(1, [3e-6], spec[1])]
    >>> Compare(both).print()  # doctest: +NORMALIZE_WHITESPACE
    [---------- add ----------]
                 |   a   |   b
    1 threads: ----------------
          small  |  2.0  |  3.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = False
        self.extend_results(results)

    def extend_results(self, results: list[Measurement]) -> None:
        """Add measurements."""
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only figures that can be believed."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Tables have no colours here."""

    def highlight_warnings(self) -> None:
        """Tables have no colours here."""

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[Any, list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            groups.setdefault(m.label, []).append(m)
        return "\n".join(self._table(label, group) for label, group in groups.items())

    def _table(self, label: str | None, group: list[Measurement]) -> str:
        unit, size = select_unit(min(m.median for m in group))
        columns = list(dict.fromkeys(m.description or "" for m in group))
        rows: dict[tuple[int, str], dict[str, Measurement]] = {}
        for m in sorted(group, key=lambda m: m.num_threads):
            rows.setdefault((m.num_threads, m.as_row_name), {})[m.description or ""] = m
        cells = [self._column(name, size, list(rows.values())) for name in columns]
        stub = max(len(name) for _, name in rows) + 6
        lines, last = [], None
        head = " " * stub + "".join(f"  |  {column[0]}" for column in cells)
        for i, (threads, name) in enumerate(rows):
            if threads != last:
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
                last = threads
            row = "".join(f"  |  {column[i + 1]}" for column in cells)
            lines.append(" " * 6 + name.ljust(stub - 6) + row)
        title = f" {label} " if label else ""
        top = "[" + title.center(len(head) - 2, "-") + "]"
        foot = f"\nTimes are in {_NAMES[unit]} ({unit}).\n"
        return "\n".join([top, head, *lines, foot])

    def _column(self, name: str, size: float, rows: list[dict[str, Measurement]]) -> list[str]:
        """The heading and the cells, all of one width."""
        times = [row[name].median / size if name in row else None for row in rows]
        digits = 1
        if self._trim:
            figures = [row[name].significant_figures if name in row else 0 for row in rows]
            pairs = [(t, n) for t, n in zip(times, figures) if t is not None]
            digits = min(max(n - 1 - math.floor(math.log10(t)) for t, n in pairs), 1)
            times = [None if t is None else trim_sigfig(t, n) for t, n in zip(times, figures)]
        texts = ["" if t is None else f"{t:.{max(digits, 0)}f}" for t in times]
        numbers = max(map(len, texts))
        width = max(numbers, len(name))
        return [name.center(width), *(text.rjust(numbers).center(width) for text in texts)]
