"""The table of a profile, laid out as PyTorch lays it out, with the user's lines behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

# --- how numbers are shown ------------------------------------------------------------------------
_UNITS: Final = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_time(us: float, unit: str | None = None) -> str:
    """Microseconds as PyTorch shows them: '12.300us', '1.200ms'; `unit` insists on one.

    >>> format_time(1500)
    '1.500ms'
    """
    if unit not in _UNITS:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / _UNITS[unit]:.3f}{unit}"


def format_share(us: float, total: float) -> str:
    """A part of a time, in per cent."""
    return "NaN" if total == 0 else f"{us * 100 / total:.2f}%"


def format_memory(nbytes: int) -> str:
    """Bytes as PyTorch shows them.

    >>> format_memory(80), format_memory(3 << 20)
    ('80 B', '3.00 MB')
    """
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**power:
            return f"{nbytes / 1024**power:.2f} {unit}"
    return f"{nbytes} B"


# --- the table ------------------------------------------------------------------------------------
_WIDTH: Final = 12
_FLOPS: Final = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


class Column(NamedTuple):
    """A column: what is in each row, and on which side."""

    title: str
    width: int
    texts: list[str]
    side: str = ">"


def _width(texts: Iterable[str], limit: int | None) -> int:
    widest = max((len(text) for text in texts), default=0) + 4
    return widest if limit is None else min(widest, limit)


def _cut_end(text: str, limit: int | None) -> str:
    return text[: limit - 3] + "..." if limit is not None and len(text) >= limit - 3 else text


def _cut_start(text: str, limit: int) -> str:
    """The end of a path, which says more than its beginning."""
    return text if len(text) <= limit else "..." + text[len(text) - limit + 3 :]


class Table:
    """Which columns a list of events has, and what is in them."""

    def __init__(
        self, events: Any, max_src: int | None, max_name: int | None, max_shapes: int | None,
        unit: str | None,
    ) -> None:  # fmt: skip
        self.events = events
        self.unit = unit
        self.max_src = max_src
        self.max_name = max_name
        self.max_shapes = max_shapes
        self.cpu_total = sum(event.self_cpu_time_total for event in events)
        self.device_total = sum(event.self_device_time_total for event in events)
        self.stacks = events._with_stack and any(event.stack for event in events)

    def times(self, title: str, name: str) -> Column:
        return Column(
            title, _WIDTH, [format_time(getattr(e, name), self.unit) for e in self.events]
        )

    def memory(self, title: str, name: str) -> Column:
        return Column(title, _WIDTH, [format_memory(getattr(e, name)) for e in self.events])

    def shares(self, title: str, name: str, total: float, kept_as: str) -> Column:
        texts = [format_share(getattr(e, name), total) for e in self.events]
        for event, text in zip(self.events, texts, strict=True):
            setattr(event, kept_as, text)
        return Column(title, _WIDTH, texts)

    def columns(self) -> list[Column]:
        """PyTorch's columns in PyTorch's order, then the line."""
        events = self.events
        names = [_cut_end(event.key, self.max_name) for event in events]
        found = [Column("Name", _width((e.key for e in events), self.max_name), names)]
        if any(event.overload_name for event in events):
            found.append(Column("Overload Name", found[0].width, [e.overload_name for e in events]))
        found += [
            self.shares("Self CPU %", "self_cpu_time_total", self.cpu_total, "self_cpu_percent"),
            self.times("Self CPU", "self_cpu_time_total"),
            self.shares("CPU total %", "cpu_time_total", self.cpu_total, "total_cpu_percent"),
            self.times("CPU total", "cpu_time_total"),
            self.times("CPU time avg", "cpu_time"),
        ]
        device = (events._use_device or "").upper()
        if device and self.device_total > 0:
            share, own = "total_device_percent", "self_device_time_total"
            found += [
                self.times(f"Self {device}", own),
                self.shares(f"Self {device} %", own, self.device_total, share),
                self.times(f"{device} total", "device_time_total"),
                self.times(f"{device} time avg", "device_time"),
            ]
        if events._profile_memory:
            found.append(self.memory("CPU Mem", "cpu_memory_usage"))
            found.append(self.memory("Self CPU Mem", "self_cpu_memory_usage"))
            if device and any(event.self_device_memory_usage for event in events):
                found.append(self.memory(f"{device} Mem", "device_memory_usage"))
                found.append(self.memory(f"Self {device} Mem", "self_device_memory_usage"))
        found.append(Column("# of Calls", _WIDTH, [str(event.count) for event in events]))
        return found + self.extra_columns()

    def extra_columns(self) -> list[Column]:
        events = self.events
        found = []
        if any(event.input_shapes for event in events):
            shapes = [str(event.input_shapes) for event in events]
            width = _width(shapes, self.max_shapes)
            found.append(Column("Input Shapes", width, [text[:width] for text in shapes]))
        least = min((event.flops for event in events if event.flops > 0), default=0)
        if events._with_flops and least:
            step = min(int(math.log10(least) / 3), len(_FLOPS) - 1)
            texts = [f"{e.flops / 1000**step:8.3f}" if e.flops > 0 else "--" for e in events]
            found.append(Column(f"Total {_FLOPS[step]}", _WIDTH, texts))
        lines = [self.line(event) for event in events]
        if any(lines):
            texts = [entry for e in events for entry in e.stack] if self.stacks else lines
            width = max(_width(texts, self.max_src), len("Source Location"))
            found.append(
                Column("Source Location", width, [_cut_start(text, width) for text in lines], "<")
            )
        return found

    def line(self, event: Any) -> str:
        """The line of an event as its row shows it."""
        if self.stacks:
            return event.stack[0] if event.stack else ""
        places: dict[str, float] = event.places
        if not places:
            return ""
        first = max(places, key=places.__getitem__)
        others = len(places) - 1
        return f"{first} (+{others})" if others else first

    def text(self, header: str | None, row_limit: int, top_level_only: bool) -> str:
        columns = self.columns()
        columns = [c._replace(width=max(c.width, len(c.title))) for c in columns]
        rule = "".join("-" * column.width + "  " for column in columns)

        def row(texts: list[str]) -> str:
            return "".join(
                f"{text:{column.side}{column.width}}  " for text, column in zip(texts, columns)
            )

        lines = []
        if header is not None:
            lines += ["=" * (len(rule) - 2), header]
        if top_level_only:
            lines += ["=" * (len(rule) - 2), "This report only display top-level ops statistics"]
        lines += [rule, row([column.title for column in columns]), rule]
        shown = 0
        for k, event in enumerate(self.events):
            if shown == row_limit:
                break
            if top_level_only and event.cpu_parent is not None:
                continue
            shown += 1
            lines.append(row([column.texts[k] for column in columns]))
            if self.stacks:
                blank = [""] * (len(columns) - 1)
                for entry in event.stack[1:]:
                    lines.append(row([*blank, _cut_start(entry, columns[-1].width)]))
                lines.append(row([*blank, ""]))
        lines += [rule, f"Self CPU time total: {format_time(self.cpu_total, self.unit)}"]
        if self.events._use_device and self.device_total > 0:
            device = self.events._use_device.upper()
            lines.append(f"Self {device} time total: {format_time(self.device_total, self.unit)}")
        return "\n".join(lines) + "\n"
