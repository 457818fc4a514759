"""Where boxes of a tensor overlap: the arithmetic of loading on another number of ranks."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.distributed.checkpoint.metadata import ChunkStorageMetadata

__all__: list[str] = []
__dir__ = __all__.copy

Region = tuple[list[int], list[int], list[int]]


def overlap(saved: ChunkStorageMetadata, wanted: ChunkStorageMetadata) -> Region | None:
    """The common part of two boxes: where it begins in the saved one, in the wanted one, and its
    lengths; None if there is none. Tensors without dimensions always overlap.

    >>> from rushlight.distributed.checkpoint.metadata import ChunkStorageMetadata
    >>> from rushlight.distributed.checkpoint.resharding import overlap
    >>> rows = lambda a, n: ChunkStorageMetadata(torch.Size([a]), torch.Size([n]))
    >>> overlap(rows(0, 3), rows(2, 4)), overlap(rows(0, 2), rows(2, 2))
    (([2], [0], [1]), None)
    """
    in_saved, in_wanted, lengths = [], [], []
    for a, n, b, m in zip(saved.offsets, saved.sizes, wanted.offsets, wanted.sizes, strict=True):
        start, end = max(a, b), min(a + n, b + m)
        if start >= end:
            return None
        in_saved.append(start - a)
        in_wanted.append(start - b)
        lengths.append(end - start)
    return in_saved, in_wanted, lengths


def is_inside(size: Sequence[int], box: ChunkStorageMetadata) -> bool:
    """Whether a box lies within a tensor of this size."""
    return all(
        a >= 0 and n >= 0 and a + n <= length
        for a, n, length in zip(box.offsets, box.sizes, size, strict=True)
    )
