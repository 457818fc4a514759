"""`GradBucket`: gradients on their way to other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.nn.parallel.buckets import Bucket

__all__ = ["GradBucket"]
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
