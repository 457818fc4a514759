"""The page to explore a graph: data, style and script in one file that needs no network.

All that comes from the user's program (names, source lines, shapes) travels as JSON and is put into
the page as text, never as markup. Formulas are MathML, escaped where they are written.
"""

from __future__ import annotations

import json
import linecache
import os
import re
from html import escape
from importlib.resources import files
from typing import Any

from rushlight.viz.folding import Group
from rushlight.viz.formula import boxes_of, forward_box, mathml
from rushlight.viz.kept import kept_values
from rushlight.viz.model import GraphModel, Item
from rushlight.viz.rules import rule_of
from rushlight.viz.shapes import Shapes
from rushlight.viz.values import describe

_MOST_VALUES = 3000  # described on one page
_LONGEST = 1500  # lines of a source file that are shown


def page(
    model: GraphModel, root: Group, shapes: Shapes, opened: frozenset[str], recorded: Any,
    title: str,
) -> str:  # fmt: skip
    """The whole page as text."""
    data = _Data(model, shapes, recorded).collect(root, opened, title)
    parts = {"TITLE": escape(title), "DATA": embedded(data)}
    return re.sub("@(TITLE|DATA)@", lambda mark: parts[mark[1]], template())


def template() -> str:
    """The page with its style and scripts in place. In a wheel they are so already: `setup.py`."""
    home = files("rushlight.viz") / "page_files"
    text = (home / "page.html").read_text("utf-8")
    return re.sub(r"@FILE:([\w.]+)@", lambda mark: (home / mark[1]).read_text("utf-8"), text)


def embedded(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class _Data:
    """What the page knows, collected from the graph."""

    def __init__(self, model: GraphModel, shapes: Shapes, recorded: Any) -> None:
        self.model = model
        self.shapes = shapes
        self.recorded = recorded
        self.values: list[Any] = []
        self.places: dict[Any, int] = {}
        self.formulas: dict[Any, int] = {}
        self.rules: list[dict[str, Any]] = []

    def collect(self, root: Group, opened: frozenset[str], title: str) -> dict[str, Any]:
        items = [self.item(item) for item in self.model.items]
        edges = [
            [e.source, e.target, e.input, e.name, e.output, self.sent(e.target, e.input)]
            for e in self.model.edges
        ]
        order = self.backward_order()
        return {
            "title": title, "items": items, "edges": edges, "root": tree(root),
            "open": sorted(opened), "places": [[p.file, p.line, p.function] for p in self.places],
            "files": self.sources(), "rules": self.rules, "values": self.values, "order": order,
            "recorded": self.recorded is not None,
        }  # fmt: skip

    def item(self, item: Item) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": item.kind, "title": item.title, "size": item.size_text}
        if item.label and item.label != item.title:
            found["label"] = item.label
        if item.module:
            found["module"] = ".".join(item.module)
        if item.details:
            found["details"] = item.details
        if item.place is not None and item.place.file:
            found["place"] = self.places.setdefault(item.place, len(self.places))
        if item.kind in ("op", "function"):
            self.add_node(item, found)
        elif item.graph_node is not None:
            found["value"] = self.value(item.graph_node)
            grad = getattr(item.graph_node, "_accumulated_grad", None)
            if item.kind in ("parameter", "leaf") and grad is not None:
                found["grad"] = self.value(grad)
        return found

    def add_node(self, item: Item, found: dict[str, Any]) -> None:
        node = item.graph_node
        found["name"] = node.name()
        found["rule"] = self.rule(node)
        seen = self.recorded
        if seen is not None and node in seen.received:
            found["kept"] = [[name, self.add(told)] for name, told in seen.kept[node]]
            found["received"] = [-1 if g is None else self.add(g) for g in seen.received[node]]
            return
        if node._freed_at is not None:
            found["freed"] = str(node._freed_at)
        elif len(self.values) < _MOST_VALUES:
            found["kept"] = [[name, self.add(told)] for name, told in kept_values(node)]

    # --- values -----------------------------------------------------------------------------------
    def value(self, thing: Any) -> int:
        return -1 if len(self.values) >= _MOST_VALUES else self.add(describe(thing))

    def add(self, told: Any) -> int:
        if told is None or len(self.values) >= _MOST_VALUES:
            return -1
        self.values.append(told)
        return len(self.values) - 1

    def sent(self, target: int, at: int) -> int:
        """The gradient that flowed back through an edge; -1 where none was recorded."""
        item = self.model.items[target]
        if self.recorded is None:
            return -1
        if item.kind == "output":
            edge = next(e for e in self.model.edges if e.target == target)
            node = self.model.items[edge.source].graph_node
            given = self.recorded.received.get(node, ()) if edge.source < target else ()
            return self.add(given[edge.output]) if edge.output < len(given) else -1
        return self.add(self.recorded.sent.get((item.graph_node, at)))

    # --- rules ------------------------------------------------------------------------------------
    def rule(self, node: Any) -> int:
        """The number of a node's formula; nodes that work alike share it."""
        key = self.key_of(node)
        found = self.formulas.get(key)
        if found is None:
            found = self.formulas[key] = len(self.rules)
            rule = rule_of(node, self.shapes)
            forward = forward_box(rule)
            self.rules.append({
                "forward": None if forward is None else mathml(forward),
                "backward": [mathml(box) for box in boxes_of(rule)],
                "source": rule.source,
                "about": _about(node),
            })  # fmt: skip
        return found

    def key_of(self, node: Any) -> Any:
        op = node._op
        if op is None:
            return node
        kinds = tuple(
            v if isinstance(v, (int, float, complex)) else v is None for v in node._kept_values
        )
        count = len(node._next_edges)
        shapes = tuple(str(self.shapes.of_input(node, i)) for i in range(count))
        wanted = int(node._needs_grad_mask)
        return (type(op), repr(op), repr(kinds), shapes, wanted, node._freed_at is None)

    # --- order and sources ------------------------------------------------------------------------
    def backward_order(self) -> list[int]:
        """The nodes as the backward pass runs them: as seen, else newest first."""
        numbers = {item.graph_node: item.id for item in self.model.nodes}
        if self.recorded is not None and self.recorded.order:
            return [numbers[node] for node in self.recorded.order if node in numbers]
        return [item.id for item in reversed(self.model.nodes)]

    def sources(self) -> dict[str, Any]:
        """The user's files: the number of the first line shown, and the lines."""
        found: dict[str, Any] = {}
        for place in self.places:
            found.setdefault(place.file, []).append(place.line)
        for file, numbers in found.items():
            lines = [line.rstrip("\n") for line in linecache.getlines(file)]
            first = 1
            if len(lines) > _LONGEST:
                first = max(1, min(numbers) - 40)
                lines = lines[first - 1 : min(max(numbers) + 40, first + _LONGEST)]
            found[file] = {"name": os.path.basename(file), "first": first, "lines": lines}
        return found


def tree(group: Group) -> dict[str, Any]:
    """A group as nested data; not by recursion on long chains, which groups do not form."""
    return {
        "id": group.id, "kind": group.kind, "title": group.title, "subtitle": group.subtitle,
        "children": [tree(c) if isinstance(c, Group) else c for c in group.children],
        "leaves": group.leaves,
    }  # fmt: skip


def _about(node: Any) -> str:
    """The first sentence of an op's documentation."""
    cls = type(node._op) if node._op is not None else getattr(node, "_forward_cls", None)
    text = (getattr(cls, "doc", "") or getattr(cls, "__doc__", "") or "").strip()
    first = text.partition("\n\n")[0].replace("\n", " ")
    return " ".join(first.split())[:300]
