"""The order in which PyTorch runs what is ready: its priority queue, to the last tie.

Leaves come before all nodes, newer nodes before older ones. Several leaves may be ready at once,
and which of them comes first is decided by how the C++ library's heap happens to move them about.
Hooks on leaves show that order, so this heap moves them in the same way. A pass inside a pass has
its entries in the same heap, before all of the outer one's.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.native import i64

__all__ = ["ReadyQueue"]

_ROOM: Final[i64] = 1 << 44  # more than there are nodes
_LEAF: Final[i64] = _ROOM - 1


class ReadyQueue:
    """A heap of nodes by number, largest first; leaves have the largest number there is."""

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
