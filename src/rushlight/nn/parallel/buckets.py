"""Buckets of gradients: flat tensors that several gradients lie in, so that one message between
processes carries many of them.

A message costs time to start, whatever its length. So gradients travel together; but in one single
bucket nothing could travel before the last of them is computed. Buckets of some megabytes are the
middle way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rushlight.ops.registry import functions

__all__ = ["Bucket", "GradBucket", "assign_buckets"]
__dir__ = __all__.copy


class GradBucket:
    """GradBucket: what a communication hook gets: the gradients of one bucket, end to end.

    `DistributedDataParallel.register_comm_hook` says what a hook does with it.
    """

    def __init__(self, bucket: Bucket, index: int, last: bool) -> None:
        self._bucket = bucket
        self._index = index
        self._last = last
        self._buffer = bucket.buffer

    def index(self) -> int:
        """The place of this bucket among all. Bucket 0 is sent first."""
        return self._index

    def buffer(self) -> Any:
        """All gradients of the bucket, flat, in one tensor. They are not divided by anything."""
        return self._buffer

    def gradients(self) -> list[Any]:
        """The gradients one by one, in the shapes of their parameters: views of the buffer."""
        return self._bucket.cut(self._buffer)

    def parameters(self) -> list[Any]:
        """The parameters that the gradients belong to, in the same order."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Whether no bucket is sent after this one in a backward pass."""
        return self._last

    def set_buffer(self, buffer: Any) -> None:
        """Put another flat tensor, of the same length, in the place of the buffer."""
        self._buffer = buffer


class Bucket:
    """The gradients of some parameters in one flat tensor, and how far they have come."""

    def __init__(
        self, indices: Sequence[int], parameters: Sequence[Any], zeros: Any = None
    ) -> None:
        self.indices = tuple(indices)
        self.parameters = tuple(parameters)
        length = sum(p.numel() for p in self.parameters)
        first = self.parameters[0]
        self.buffer: Any = (
            functions["zeros"](length, dtype=first.dtype, device=first.device)
            if zeros is None
            else zeros
        )
        self.views = self.cut(self.buffer)
        self.pending = len(self.indices)  # gradients that have not been put in
        self.work: Any = None  # what to wait for, once the bucket was sent

    def cut(self, flat: Any) -> list[Any]:
        """Views of a flat tensor, one for each parameter and in its shape."""
        views, start = [], 0
        for p in self.parameters:
            end = start + p.numel()
            views.append(flat[start:end].view(p.shape))
            start = end
        return views


def assign_buckets(
    parameters: Sequence[Any], order: Iterable[int], limits: Sequence[int]
) -> list[list[int]]:
    """Which parameters share a bucket: lists of their numbers.

    They are taken in the given order. A bucket holds one dtype on one device and is closed once it
    holds at least as many bytes as its limit: the first limit for the first bucket of its kind, the
    next for the next, and the last for all that follow.

    >>> from rushlight.nn.parallel.buckets import assign_buckets
    >>> assign_buckets([torch.zeros(4)] * 5, [4, 3, 2, 1, 0], [16, 32])
    [[4], [3, 2], [1, 0]]
    """
    done: list[list[int]] = []
    filling: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    closed: dict[Any, int] = {}
    for index in order:
        p = parameters[index]
        kind = (p.dtype, str(p.device))
        bucket = filling.setdefault(kind, [])
        bucket.append(index)
        sizes[kind] = sizes.get(kind, 0) + p.numel() * p.element_size()
        nth = closed.get(kind, 0)
        if sizes[kind] >= limits[min(nth, len(limits) - 1)]:
            done.append(filling.pop(kind))
            sizes[kind] = 0
            closed[kind] = nth + 1
    done += filling.values()
    return done
