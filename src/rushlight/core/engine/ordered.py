"""The backward pass where hooks on leaves show the order of everything; see Note [Leaves in time].

Started by `core.engine.engine` in place of a plain `Run` while any leaf has hooks.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

from rushlight.core.engine.ready_queue import ReadyQueue
from rushlight.core.engine.run import Run
from rushlight.core.engine.task import Target, running
from rushlight.core.graph import Node, TensorBase
from rushlight.native import i64

__all__ = ["OrderedRun"]


class OrderedRun(Run):
    """Nodes and leaves run when all they will receive is there, in the order of PyTorch's queue."""

    def __init__(
        self, keep: bool, tensors: bool, targets: list[Target] | None, store: bool
    ) -> None:
        super().__init__(keep, tensors, targets, store)
        outer = running()
        self.thread = get_ident()
        self.level: i64 = 0 if outer is None else outer.depth + 1
        self.queue: ReadyQueue = ReadyQueue()
        if isinstance(outer, OrderedRun) and outer.thread == self.thread:
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
