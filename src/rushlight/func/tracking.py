"""What a derivative level does with the tensors that enter and leave it.

Note [One tape]
    Levels of `grad` share the tape of the tensors they are given: an input becomes a fresh leaf
    there, and when the level ends, edges to that leaf are bent to the input it stands for, through
    a node that was numbered before all others of the level. So an outer derivative goes on where
    the inner one ended, and what depends on nothing outside leaves without a history.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.batches import seen_at
from rushlight.core.graph import Node, TensorBase, asks, begin_node, wrap_as
from rushlight.core.levels import Level
from rushlight.core.node import AccumulateGradBase
from rushlight.core.record import edge, slots
from rushlight.core.tangents import Tangent
from rushlight.ops.view_select import ALIAS

__all__ = ["Source", "at_level", "plain", "reaches_outside", "released", "root_of", "track"]


class Source:
    """An input of a level: the tensor `x` given, the leaf that stands for it, and their link."""

    def __init__(self, x: Any, leaf: Any, node: Node) -> None:
        self.x = x
        self.leaf = leaf
        self.node = node

    def asks(self) -> bool:
        """Whether somebody outside wants gradients of the input."""
        return self.node.nexts[0] is not None


def track(x: Any, level: Level) -> Source:
    """Make a tensor an input of the level."""
    if not isinstance(x, TensorBase):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    if x.array.dtype.kind not in "fcVW":
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    given = x
    x = at_level(x, level)
    target = edge(x) if level.recording and asks(x) else None
    node = begin_node(ALIAS.plan, ALIAS)
    node.nexts = (target,)
    if target is not None:
        node.wants = 1
        if x.index != 0:
            node.nrs = (x.index,)
    node.shapes = (x.array.shape,)
    node.dtypes = (x.array.dtype,)
    leaf = wrap_as(x.array, x.memory)
    if slots.levels != 0:
        slots.push_view(ALIAS, x, leaf)
    leaf.leaf = True
    level.given.add(id(x.memory))
    return Source(given, leaf, node)


def at_level(x: Any, level: Level) -> Any:
    """A tensor as the `vmap` around a level sees it: derivatives taken inside are the members'."""
    around: Level | None = level.outer
    while around is not None and around.batch is None:
        around = around.outer
    return x if around is None else seen_at(x, around.batch)


def leaf_of(end: Any) -> Any:
    """The leaf that an edge ends at, or None if it leads to a node with work to do."""
    if isinstance(end, AccumulateGradBase):
        return end.variable
    return None if isinstance(end, Node) else end


def neighbours(node: Node) -> list[Any]:
    """Where a node leads: its edges, and the histories of what it keeps beside them."""
    found: list[Any] = list(node.nexts)
    inner = getattr(node, "fn", None)  # what a CopySlices wraps
    if inner is not None:
        found.append(inner)
    for record in node.duals or ():
        while record is not None:
            if record.value is not None and record.value.node is not None:
                found.append(record.value.node)
            record = record.outer
    return found


def nodes_from(roots: list[Any]) -> list[Node]:
    """All nodes that lead on from `roots`, oldest first."""
    seen: set[Node] = set()
    stack = [n for n in roots if isinstance(n, Node)]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for end in neighbours(node):
            if isinstance(end, Node) and end not in seen and leaf_of(end) is None:
                stack.append(end)
    return sorted(seen, key=lambda n: n.number)


def reaches_outside(roots: list[Any], sources: list[Source]) -> bool:
    """Whether a history goes beyond the level: to a captured leaf, or through an input."""
    own = {id(s.leaf): s for s in sources}
    starts = [root_of(t, sources) for t in roots]
    for node in nodes_from(starts):
        if any(node is s.node for s in sources):
            continue
        for end in neighbours(node):
            leaf = leaf_of(end)
            if leaf is not None and (id(leaf) not in own or own[id(leaf)].asks()):
                return True
    return any(s.asks() for s in sources for t in roots if t is s.leaf) or any(
        isinstance(t, TensorBase) and t.leaf and id(t) not in own for t in roots
    )


def root_of(t: Any, sources: list[Source]) -> Any:
    """The node or leaf where the history of a tensor begins; None if it has none."""
    if not isinstance(t, TensorBase) or not asks(t):
        return None
    for s in sources:
        if t is s.leaf:
            return s.node
    return edge(t)


def bend(nodes: list[Node], sources: list[Source]) -> None:
    """Let edges that end at the level's leaves go on to what these stand for."""
    into = {id(s.leaf): s.node for s in sources}
    for node in nodes:
        nexts = node.nexts
        if any(id(leaf_of(end)) in into for end in nexts if end is not None):
            node.nexts = tuple([_bent(end, into) for end in nexts])


def _bent(end: Any, into: dict[int, Node]) -> Any:
    leaf = None if end is None else leaf_of(end)
    return end if leaf is None else into.get(id(leaf), end)


def released(tensors: list[Any], sources: list[Source], outside: bool) -> list[Any]:
    """Results of a level as the code outside sees them. `outside`: some of them may have a history
    there; see Note [One tape]."""
    slopes = [r.value for t in tensors for r in records_of(t) if r.value is not None]
    everything = [*tensors, *slopes]
    starts = [root_of(t, sources) for t in everything]
    nodes = nodes_from(starts)
    bend(nodes, sources)
    live = {s.node for s in sources if s.asks()} if outside else set()
    if outside:
        for node in nodes:  # oldest first: what an edge leads to is decided before
            for end in node.nexts:
                leaf = None if end is None else leaf_of(end)
                if leaf is not None or end in live:
                    live.add(node)
    results: list[Any] = []
    for t, start in zip(everything, starts, strict=True):
        mine = next((s for s in sources if t is s.leaf), None)
        if mine is not None:
            results.append(mine.x if outside or not asks(mine.x) else plain(mine.x))
        elif start is None or start in live or (outside and not isinstance(start, Node)):
            results.append(t)
        else:
            results.append(plain(t))
    count = len(tensors)
    instead = {id(a): b for a, b in zip(slopes, results[count:], strict=True) if a is not b}
    if instead:
        for t in results[:count]:
            if isinstance(t, TensorBase):
                t.tangent = exchanged(t.tangent, instead)
    return results[:count]


def records_of(t: Any) -> list[Tangent]:
    """The tangents of a tensor, innermost level first."""
    found: list[Tangent] = []
    record = t.tangent if isinstance(t, TensorBase) else None
    while record is not None:
        found.append(record)
        record = record.outer
    return found


def exchanged(record: Tangent | None, instead: dict[int, Any]) -> Tangent | None:
    """A chain of records with other values. (Nodes may hold the old one.)"""
    if record is None:
        return None
    value = None if record.value is None else instead.get(id(record.value), record.value)
    return Tangent(
        record.level, value, record.root, record.ops, exchanged(record.outer, instead)
    )


def plain(t: Any) -> Any:
    """The same values without their history; tangents stay."""
    made = wrap_as(t.array, t.memory)
    made.tangent = t.tangent
    return made
