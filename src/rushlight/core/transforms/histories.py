"""Histories that go through the inputs of a transform: where they enter it, and whether they lead
outside. See Note [One tape] in `func.tracking`.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.transforms.stack import TransformLevel


def neighbours(node: Node) -> list[Any]:
    """Where a node leads: its edges, and the histories of the tangents that it keeps."""
    found: list[Any] = list(node._next_edges)
    if node._kept_tangents is not None:
        for kept in node._kept_tangents:
            record: Any = kept
            while record is not None:
                value: Any = record.value
                if value is not None and value._node is not None:
                    found.append(value._node)
                record = record.outer
    return found


class Entrance(Op):
    """The way through an input of a level: what stands for a tensor inside has a node of this."""

    name = "alias"

    def __init__(self, level: TransformLevel) -> None:
        super().__init__()
        self.level = level

    def forward(self, *xs: Any) -> Any:
        return xs[0]

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        return (g,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return ts[0]


def from_outside(end: Any, level: TransformLevel) -> bool:
    """Whether an edge ends at something outside a level: a leaf that the level did not make, or an
    input of another that is open still."""
    if isinstance(end, AccumulateGradBase):
        end = end.variable
    elif isinstance(end, Node):
        node: Node = end
        op: Any = node._op
        if not isinstance(op, Entrance) or node._next_edges[0] is not None:
            return False
        return op.level is not level and op.level.mode is not None
    leaf: TensorBase = end
    return leaf._storage.level < level.number


def leads_outside(roots: list[Any], level: TransformLevel) -> bool:
    """Whether a history goes beyond a level: to what it captured, or on through an input."""
    seen: set[Node] = set()
    stack: list[Any] = list(roots)
    while stack:
        end: Any = stack.pop()
        if end is None or end in seen:
            continue
        if from_outside(end, level):
            return True
        if isinstance(end, Node) and not isinstance(end, AccumulateGradBase):
            seen.add(end)
            stack.extend(neighbours(end))
    return False


def kept_outside(roots: list[Any], level: TransformLevel) -> set[Any]:
    """The nodes and leaves among `roots`, and below them, that lead outside."""
    live: set[Any] = set()
    seen: set[Any] = set()
    inner: list[Node] = []
    stack: list[Any] = list(roots)
    while stack:
        end: Any = stack.pop()
        if end is None or end in seen:
            continue
        seen.add(end)
        if from_outside(end, level):
            live.add(end)
        elif isinstance(end, Node) and not isinstance(end, AccumulateGradBase):
            inner.append(end)
            stack.extend(end._next_edges)
    inner.sort(key=_number_of)
    for node in inner:  # oldest first: what an edge leads to is decided before
        for end in node._next_edges:
            if end in live:
                live.add(node)
                break
    return live


def _number_of(node: Node) -> int:
    return node._seq_nr
