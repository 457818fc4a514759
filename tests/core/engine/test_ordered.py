"""The queue of nodes that are ready, in the pass that keeps an order."""

from __future__ import annotations

from rushlight.core.engine.ordered import ReadyQueue


def test_the_queue_puts_the_largest_first() -> None:
    queue = ReadyQueue()
    for key in (5, 1, 9, 7, 3, 8, 2):
        queue.push(0, key, key)
    queue.push_leaf(0, "leaf")
    queue.push(1, 4, "inner")
    assert queue.depth() == 1
    assert [queue.pop() for _ in range(10)] == ["inner", "leaf", 9, 8, 7, 5, 3, 2, 1, None]
    assert queue.depth() == -1
