"""How a tensor lies on the processes of one dimension of a mesh.

Shard(0)      each has some rows         [0 1 | 2 3]     ->   rank 0: [0 1]    rank 1: [2 3]
Replicate()   each has all of it                              rank 0: [0 1 2 3]    rank 1: same
Partial()     each has a summand                              their sum is the tensor
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
__dir__ = __all__.copy


class Placement:
    """How a tensor lies on the processes of one dimension of a mesh; a base class.

    >>> from rushlight.distributed.tensor import Replicate, Shard
    >>> Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_replicate()
    (True, False, True)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, cut along `dim` if that is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is the sum (or another reduction) of what the processes have."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Shard(dim): each process has a part, cut along `dim` as `torch.chunk` cuts: if the size is no
    multiple of the number of processes, the last ones have less, or nothing.

    >>> from rushlight.distributed.tensor import Shard
    >>> Shard(0)
    Shard(dim=0)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(size: int, chunks: int, rank: int) -> tuple[int, int]:
        """How much of `size` the process `rank` of `chunks` has, and where that begins.

        >>> from rushlight.distributed.tensor import Shard
        >>> [Shard.local_shard_size_and_offset(5, 4, rank) for rank in range(4)]
        [(2, 0), (2, 2), (1, 4), (0, 5)]
        """
        full = -(-size // chunks)
        start = min(full * rank, size)
        return min(full, size - start), start


@dataclass(frozen=True)
class Replicate(Placement):
    """Replicate(): each process has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """Partial(reduce_op="sum"): the tensor is the sum of what the processes have; or the "avg",
    "min", "max" or "product".

    >>> from rushlight.distributed.tensor import Partial
    >>> Partial()
    Partial(sum)
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


def normalize(placements: Any, mesh: Any, dims: int) -> tuple[Placement, ...]:
    """Placements for each dimension of a mesh, of a tensor with so many dimensions."""
    found = [Replicate()] * mesh.ndim if placements is None else list(placements)
    if len(found) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements "
            f"length: {len(found)}, and device_mesh.ndim: {mesh.ndim}."
        )
    for n, placement in enumerate(found):
        if not isinstance(placement, Placement):
            raise RuntimeError(f"{placement!r} is no placement of a tensor")
        if isinstance(placement, Shard):
            dim = placement.dim + dims if placement.dim < 0 else placement.dim
            if not 0 <= dim < dims:
                raise IndexError(f"{placement} of a tensor with {dims} dimensions")
            found[n] = Shard(dim)
    return tuple(found)
