"""`viz.flame`: a profile as a page: where the time goes by line, forward and backward, in tables
and as a flame graph. `page_files/flame.js` draws that."""

from __future__ import annotations

import json
from typing import Any, Final

from rushlight.autograd.profiler_table import format_time
from rushlight.autograd.profiler_util import shown_place
from rushlight.viz.sheet import page, page_file, table, write

ROOT: Final = "all"
THIN: Final = 1e-3  # of the whole: narrower boxes are left out


class Box:
    """A box of the flame graph: what it is, and what it is made of."""

    def __init__(self, name: str, kind: str, source: str = "") -> None:
        self.name = name
        self.kind = kind  # 'line', 'forward', 'backward' or 'range'
        self.source = source
        self.own = 0.0
        self.calls = 0
        self.inside: dict[tuple[str, str], Box] = {}

    def part(self, name: str, kind: str, source: str = "") -> Box:
        """The box of that name inside this one, made when first asked for."""
        found = self.inside.get((name, kind))
        if found is None:
            found = self.inside[name, kind] = Box(name, kind, source)
        return found

    @property
    def total(self) -> float:
        return self.own + sum(box.total for box in self.inside.values())

    def plain(self, whole: float) -> dict[str, Any]:
        """As the page's script reads it."""
        found: dict[str, Any] = {"n": self.name, "c": self.kind, "v": round(self.total, 2)}
        if self.source:
            found["s"] = self.source
        if self.calls:
            found["k"] = self.calls
        inside = [box for box in self.inside.values() if box.total > THIN * whole]
        if inside:
            inside.sort(key=lambda box: -box.total)
            found["i"] = [box.plain(whole) for box in inside]
        return found


class LineTime:
    """The time of one line of the program, in microseconds."""

    def __init__(self, place: str, source: str) -> None:
        self.place = place
        self.source = source
        self.forward = 0.0
        self.backward = 0.0
        self.calls = 0

    @property
    def total(self) -> float:
        return self.forward + self.backward


class FlamePage:
    """A profile by line: `lines`, the boxes below `root`, and the page. `str()` is a table."""

    def __init__(self, events: Any) -> None:
        self.events = events
        self.root = Box(ROOT, "range")
        found: dict[str, LineTime] = {}
        for event in events:
            cost = max(0.0, event.self_cpu_time_total)
            path = path_of(event)
            box = self.root
            for name, kind, source in path:
                box = box.part(name, kind, source)
            box.own += cost
            box.calls += 1
            place = shown_place(event.where)
            if place and not event.is_user_annotation:
                line = found.setdefault(place, LineTime(place, event.where.source))
                backward = is_backward(event)
                line.backward += cost if backward else 0.0
                line.forward += 0.0 if backward else cost
                line.calls += 0 if backward else 1
        self.lines = sorted(found.values(), key=lambda line: -line.total)

    def __repr__(self) -> str:
        return f"<flame graph of {len(self.events)} events on {len(self.lines)} lines>"

    def __str__(self) -> str:
        rows = [f"{'total':>10}  {'forward':>10}  {'backward':>10}  {'calls':>6}  line"]
        rows += [
            f"{format_time(line.total):>10}  {format_time(line.forward):>10}  "
            f"{format_time(line.backward):>10}  {line.calls:>6}  {line.place}     {line.source}"
            for line in self.lines[:30]
        ]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        return self._tables()

    def _tables(self) -> str:
        most = max([1e-9, *(line.total for line in self.lines)])
        shown = self.lines[:100]
        rows = [
            (format_time(x.total), f"{x.place}  {x.source}", format_time(x.forward),
             format_time(x.backward), x.calls)
            for x in shown
        ]  # fmt: skip
        averages = sorted(self.events.key_averages(), key=lambda e: -e.self_cpu_time_total)[:40]
        ops = [
            (format_time(e.self_cpu_time_total), e.key, format_time(e.cpu_time_total), e.count,
             ", ".join(list(e.places)[:3]))
            for e in averages
        ]  # fmt: skip
        return (
            "<h2>By line</h2>"
            + table(["#total", "`line", "#forward", "#backward", "#calls"], rows,
                    [x.total / most for x in shown])
            + "<h2>By operation</h2>"
            + table(["#self", "name", "#total", "#calls", "lines"], ops)
        )  # fmt: skip

    def html(self) -> str:
        """The whole page."""
        whole = self.root.total
        data = json.dumps(self.root.plain(whole)).replace("<", "\\u003c")
        body = (
            f'<p class="key">{format_time(whole)} in {len(self.events)} events.'
            '<b class="line"></b>line <b class="forward"></b>operation <b class="backward"></b>'
            'backward <b class="range"></b>range</p>'
            '<p><input id="find" type="search" placeholder="search ( / )" aria-label="search">'
            ' <span class="dim">click or Enter: zoom in, again: out; Esc: all</span></p>'
            '<div id="flame"></div><p id="said" aria-live="polite"></p>'
            f'{self._tables()}<script id="data" type="application/json">{data}</script>'
        )
        return page("Where the time goes", body, page_file("flame.js"))

    def save(self, path: Any) -> None:
        """Write the page: `profile.html`."""
        write(path, self.html())


def is_backward(event: Any) -> bool:
    """Whether an event is of a backward pass."""
    return bool(event.fwd_thread is not None or "Backward" in event.name or "engine" in event.name)


def path_of(event: Any) -> list[tuple[str, str, str]]:
    """From the outermost range to the event: (name, kind, source) of each box."""
    chain = []
    at = event
    while at is not None:
        chain.append(at)
        at = at.cpu_parent
    found: list[tuple[str, str, str]] = []
    line = ""
    for each in reversed(chain):
        place = shown_place(each.where)
        if each.is_user_annotation:
            found.append((each.name, "range", ""))
            continue
        if each is event and len(each.stack) > 1:
            found += [(text, "line", "") for text in map(frame, reversed(each.stack[1:])) if
                      (text, "line", "") not in found]  # fmt: skip
        if place and place != line:
            found.append((place, "line", each.where.source))
            line = place
        name = each.name.replace("autograd::engine::evaluate_function: ", "engine, ")
        found.append((name, "backward" if is_backward(each) else "forward", ""))
    return found


def frame(text: str) -> str:
    """A frame of a stack, 'path/train.py(12): main', as 'train.py:12 main'."""
    head, _, function = text.partition("): ")
    file, _, number = head.rpartition("(")
    return f"{file.rpartition('/')[2]}:{number} {function}".rstrip()


def flame(prof: Any) -> FlamePage:
    """A profile as a page: time by line of your program, forward and backward, and a flame graph to
    zoom and search. `prof` is a profiler that has ended, of `torch.profiler` or
    `torch.autograd.profiler`.

    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.profiler.profile() as prof:
    ...     (x * x).sum().backward()
    >>> picture = torch.viz.flame(prof)
    >>> picture.save("profile.html")  # doctest: +SKIP
    >>> sorted(box.name for box in picture.root.inside.values()) != []
    True
    """
    events = prof.events() if hasattr(prof, "events") else prof.function_events
    if not len(events):
        raise ValueError("nothing was recorded: profile something inside `with profile() as prof:`")
    return FlamePage(events)
