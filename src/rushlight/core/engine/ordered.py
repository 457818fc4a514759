"""The backward pass where hooks on leaves show the order of everything: in PyTorch's order, to the
last tie. See Note [Leaves in time] in `core.engine.engine`, which starts it.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any, Final

from rushlight.core.engine.engine import Capture, GraphTask, current_task
from rushlight.core.graph import Node, TensorBase
from rushlight.native import i64

_ROOM: Final[i64] = 1 << 44  # more than there are nodes
_LEAF: Final[i64] = _ROOM - 1


class ReadyQueue:
    """PyTorch's priority queue of what is ready: leaves before all nodes, newer nodes before older.

    Several leaves may be ready at once, and which of them comes first is decided by how the C++
    library's heap happens to move them about. Hooks on leaves show that order, so this heap moves
    them in the same way. A pass inside a pass has its entries in the same heap, before all of the
    outer one's.
    """

    def __init__(self) -> None:
        self.keys: list[i64] = []
        self.ends: list[Any] = []

    def push_leaf(self, depth: i64, leaf: Any) -> None:
        """Enter a leaf whose gradient is complete, in a pass of this depth."""
        self.push(depth, _LEAF, leaf)

    def push(self, depth: i64, number: i64, end: Any) -> None:
        """Enter a node that has all its gradients."""
        key = depth * _ROOM + number
        self.keys.append(key)
        self.ends.append(end)
        self.rise(len(self.keys) - 1, key, end)

    def depth(self) -> i64:
        """The depth of the pass whose entry comes first; -1 if there is none."""
        return self.keys[0] // _ROOM if self.keys else -1

    def rise(self, hole: i64, key: i64, end: Any) -> None:
        """Fill a hole with an entry, after moving down the smaller ones above it."""
        keys = self.keys
        ends = self.ends
        while hole > 0:
            parent = (hole - 1) // 2
            if keys[parent] >= key:
                break
            keys[hole] = keys[parent]
            ends[hole] = ends[parent]
            hole = parent
        keys[hole] = key
        ends[hole] = end

    def pop(self) -> Any:
        """Take out the first; None if there is none."""
        keys = self.keys
        ends = self.ends
        if not keys:
            return None
        first = ends[0]
        key = keys.pop()
        end = ends.pop()
        n: i64 = len(keys)
        if n == 0:
            return first
        # the hole at the top sinks to the bottom, then the last entry rises from there
        hole: i64 = 0
        child: i64 = 0
        while child < (n - 1) // 2:
            child = 2 * (child + 1)
            if keys[child] < keys[child - 1]:
                child -= 1
            keys[hole] = keys[child]
            ends[hole] = ends[child]
            hole = child
        if n % 2 == 0 and child == (n - 2) // 2:
            child = 2 * (child + 1)
            keys[hole] = keys[child - 1]
            ends[hole] = ends[child - 1]
            hole = child - 1
        self.rise(hole, key, end)
        return first


class OrderedGraphTask(GraphTask):
    """Nodes and leaves run when all they will receive is there, in the order of PyTorch's queue."""

    def __init__(
        self, keep: bool, tensors: bool, inputs: list[Capture] | None, stores: bool
    ) -> None:
        super().__init__(keep, tensors, inputs, stores)
        outer = current_task()
        self.thread = get_ident()
        self.level: i64 = 0 if outer is None else outer.depth + 1
        self.queue: ReadyQueue = ReadyQueue()
        if isinstance(outer, OrderedGraphTask) and outer.thread == self.thread:
            self.queue = outer.queue  # the outer pass waits: nobody else touches it

    def push(self, node: Node) -> None:
        """It is not its first gradient that makes a node ready: see `deliver`."""

    def deliver(self, target: Node, nr: i64, g: Any) -> None:
        if self.executes is not None and target not in self.executes:
            return
        super().deliver(target, nr, g)
        uses = self.uses
        assert uses is not None
        left = uses[target] - 1
        uses[target] = left
        if left == 0:
            self.queue.push(self.level, target._seq_nr, target)

    def complete(self, leaf: TensorBase) -> None:
        self.queue.push_leaf(self.level, leaf)

    def run(self) -> None:
        try:
            super().run()
        finally:  # where it failed, what was ready must not be taken for another pass's
            while self.queue.depth() >= self.level:
                self.queue.pop()

    def pop(self) -> Node | None:
        while True:
            if self.queue.depth() < self.level:  # the rest is the outer pass's
                return None
            end = self.queue.pop()
            if isinstance(end, Node):
                return end
            self.accumulate_leaf(end, self.leaves.pop(end))
