"""Which module made a node. Nothing is noted while a model runs, so this costs nothing.

Whatever reads a module's parameter belongs to that module. What was made between two such nodes
belongs to the innermost module that both are in: the activation between `block.linear1` and
`block.linear2` is part of `block`; and what one call made, as in `h = cell(x, h)`,
belongs to one module. Inside `viz.record()` calls of modules are seen, and then it is known
exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from rushlight.viz.model import GraphModel

Path = tuple[str, ...]
Span = tuple[int, int, Path]  # the numbers before a call and at its end, and the module's path


def assign_modules(model: GraphModel, spans: Iterable[Span] | None = None) -> None:
    """Give each node the path of its module."""
    nodes = model.nodes
    known = _called(nodes, list(spans)) if spans else {}
    own: dict[int, Path] = {}
    for edge in model.edges:
        source = model.items[edge.source]
        if source.kind in ("parameter", "leaf") and source.module and edge.target < len(nodes):
            held = own.get(edge.target)
            own[edge.target] = source.module if held is None else _common(held, source.module)
    before = _nearest(own, range(len(nodes)))
    after = _nearest(own, reversed(range(len(nodes))))
    calls: dict[Any, Path] = {}  # by the call in the user's program
    for i, path in own.items():
        call = _call(nodes[i])
        calls[call] = path if call not in calls else _common(calls[call], path)
    for item in nodes:
        i = item.id
        if i in known:
            item.module = known[i]
        elif i in own:
            item.module = own[i]
        else:
            between = _common(before[i], after[i]) if i in before and i in after else ()
            item.module = max(between, calls.get(_call(item), ()), key=len)


def _nearest(own: dict[int, Path], order: Iterable[int]) -> dict[int, Path]:
    """For each node the path of the last one on the way that reads a parameter."""
    found: dict[int, Path] = {}
    last: Path | None = None
    for i in order:
        last = own.get(i, last)
        if last is not None:
            found[i] = last
    return found


def _call(item: Any) -> Any:
    return item.graph_node._code, item.graph_node._code_offset


def _common(a: Path, b: Path) -> Path:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return a[:n]


def _called(nodes: list[Any], spans: list[Span]) -> dict[int, Path]:
    """The innermost call that a node was made in, by its number."""
    made = sorted((int(item.graph_node._seq_nr), item.id) for item in nodes)
    numbers = [number for number, _ in made]
    found: dict[int, Path] = {}
    for first, last, path in sorted(spans, key=lambda span: span[0] - span[1]):  # inner ones last
        for _, i in made[bisect_right(numbers, first) : bisect_right(numbers, last)]:
            found[i] = path
    return found
