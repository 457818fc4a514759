"""What can be known of a tensor after the fact: its graph, who uses it, which passes there were.

A graph leads from results to leaves. Who uses a leaf is found from the other side: from all tensors
that the variables of the program hold.
"""

from __future__ import annotations

import functools
from collections import deque
from types import FrameType
from typing import Any

from rushlight.core.engine.traverse import end_of, reachable
from rushlight.core.graph import Node, TensorBase
from rushlight.explaining import Names
from rushlight.reasons import watching
from rushlight.reasons.answer import Link, link_of
from rushlight.reasons.source import Program


class Facts:
    """A tensor, its name, its graph, and the program around it."""

    def __init__(self, x: Any, y: Any, names: Names, frame: FrameType | None) -> None:
        self.x = x
        self.names = names
        self.name = names.of_tensor(x) or "the tensor"
        self.grad = x._accumulated_grad  # `.grad` would warn of tensors that are not leaves
        self.node = x.grad_fn
        self.leaf = x.is_leaf
        self.program = Program(frame, self.module_of(frame))
        self.verb = "is"  # or "would be", of a pass that was not run
        self.sure = True  # that `y` is what backward() is called on
        self.y = y
        if y is None:
            self.y = self.named_loss()

    def module_of(self, frame: FrameType | None) -> Any:
        """The module that owns the tensor, if its name says so."""
        first = self.name.split(".")[0]
        while frame is not None and "." in self.name:
            for space in (frame.f_locals, frame.f_globals):
                if hasattr(space.get(first), "named_parameters"):
                    return space[first]
            frame = frame.f_back
        return None

    # --- the graph ------------------------------------------------------------------------------
    @functools.cached_property
    def nodes(self) -> list[Any]:
        """The nodes that the tensors of the program lead to, and those of passes that were watched;
        oldest first."""
        known = [*self.names.known, self.x, *([] if self.y is None else [self.y])]
        roots = [t.grad_fn for t in known]
        for turns in watching.last.passes if watching.last is not None else ():
            roots += [turn.node for turn in turns]
        return sorted(reachable(roots, None), key=lambda node: int(node._seq_nr))

    @functools.cached_property
    def consumers(self) -> dict[int, list[Any]]:
        """For each node or leaf that is led to: the nodes that lead there."""
        found: dict[int, list[Any]] = {}
        for node in self.nodes:
            for target in node._next_edges:
                end = end_of(target)
                if end is not None:
                    found.setdefault(id(end), []).append(node)
        return found

    @property
    def end(self) -> Any:
        """What edges to the tensor lead to."""
        return self.x if self.node is None else end_of(self.node)

    @functools.cached_property
    def users(self) -> list[Any]:
        """The nodes that lead to the tensor directly."""
        return self.consumers.get(id(self.end), [])

    @functools.cached_property
    def above(self) -> set[Any]:
        """All nodes that lead to the tensor."""
        found: set[Any] = set()
        waiting = list(self.users)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.consumers.get(id(node), [])
        return found

    def depends(self, y: Any) -> bool:
        """Whether the graph of `y` leads to the tensor."""
        node = y.grad_fn
        if y is self.x or (node is not None and node is self.node):
            return True
        return node is not None and any(
            end_of(target) is self.end
            for each in reachable([node], None)
            for target in each._next_edges
        )

    def path(self, y: Any) -> list[Any]:
        """Nodes from the tensor's first user to the node of `y`: a shortest way."""
        return self.path_from(y.grad_fn)

    def path_from(self, node: Any) -> list[Any]:
        """The same, from a node."""
        return [] if node is None else self.way(node, self.end)

    def way(self, start: Any, goal: Any) -> list[Any]:
        """Nodes on a shortest way, oldest first, from above `goal` to `start`; [] if there is none.
        `start` itself is the last of them, unless it is `goal`."""
        before: dict[int, Any] = {id(start): None}
        waiting: deque[Any] = deque([start])
        while waiting:
            node = waiting.popleft()
            for target in node._next_edges:
                end = end_of(target)
                if end is goal:
                    found = [node]
                    while before[id(found[-1])] is not None:
                        found.append(before[id(found[-1])])
                    return found
                if isinstance(end, Node) and id(end) not in before:
                    before[id(end)] = node
                    waiting.append(end)
        return []

    def after(self, node: Any) -> list[Any]:
        """Nodes on the way from `node` to the loss, oldest first."""
        last = self.newest_above() if self.y is None else self.y.grad_fn
        return [] if last is None else self.way(last, node)

    def leaves_behind(self, y: Any = None) -> list[Any]:
        """The leaves that the tensor, or `y`, was computed from."""
        node = (self.x if y is None else y).grad_fn
        found: dict[int, Any] = {}
        for each in reachable([node], None) if node is not None else []:
            for target in each._next_edges:
                end = end_of(target)
                if isinstance(end, TensorBase):
                    found[id(end)] = end
        return list(found.values())

    def freed(self) -> Any:
        """Where a backward pass came through to the tensor and freed the graph; None if none did.
        What leads to the tensor was freed by passes that went on to it."""
        for node in self.above:
            if node._freed_at is not None:
                return node._freed_at
        return None

    # --- the loss -------------------------------------------------------------------------------
    def named_loss(self) -> Any:
        """The tensor that the program calls `backward()` on, or else the newest that leads here."""
        known = [t for t in self.names.known if t is not self.x]
        for name in self.program.backward_names():
            for t in known:
                if self.names.of_tensor(t) == name:
                    return t
        self.sure = False
        found = [t for t in known if t.grad_fn in self.above]
        return max(found, key=lambda t: int(t.grad_fn._seq_nr), default=None)

    def newest_above(self) -> Any:
        """The newest node that leads to the tensor."""
        return max(self.above, key=lambda node: int(node._seq_nr), default=None)

    # --- lines ----------------------------------------------------------------------------------
    def made(self, note: str = "") -> list[Link]:
        """The line that made the tensor, if the program shows it."""
        if self.node is not None and not self.leaf:
            return [link_of(self.node, note)]
        place = self.program.binding(self.name)
        return [Link(place, note)] if place else []

    def lines(self, path: list[Any], notes: dict[int, str] | None = None) -> list[Link]:
        """Nodes as lines of the program."""
        said = notes or {}
        return [link_of(node, said.get(id(node), "")) for node in path]


def is_tensor(x: Any) -> bool:
    """Whether `why` can say anything about it."""
    return isinstance(x, TensorBase)
