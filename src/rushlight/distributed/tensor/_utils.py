"""Which part of a tensor a process has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.distributed.tensor.placement_types import Shard

__all__: list[str] = []
__dir__ = __all__.copy


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part of a tensor, and where it begins. A process outside of the
    mesh has nothing: the shape (0,)."""
    where = mesh.get_coordinate()
    if where is None:
        return (0,), ()
    shape, offset = list(global_shape), [0] * len(global_shape)
    for n, placement in enumerate(placements):
        if isinstance(placement, Shard):
            dim = placement.dim
            size, start = Shard.local_shard_size_and_offset(shape[dim], mesh.size(n), where[n])
            shape[dim] = size
            offset[dim] += start
    return tuple(shape), tuple(offset)


def contiguous_stride(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
