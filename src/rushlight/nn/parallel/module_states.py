"""Making the modules of several processes equal: compare the shapes, then copy the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.ops.registry import functions

__all__ = ["broadcast_coalesced", "verify_parameters"]
__dir__ = __all__.copy


def verify_parameters(group: Any, parameters: Sequence[Any], names: Sequence[str]) -> None:
    """Raise, in every process, if the parameters of two processes differ in number or shape."""
    from rushlight import distributed as dist

    mine = [list(p.shape) for p in parameters]
    rank = dist.get_rank(group)
    everyones: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyones, (mine, list(names)), group=group)
    for other, (theirs, _) in enumerate(everyones):
        if len(theirs) != len(mine):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {rank} has {len(mine)} params, "
                f"while rank {other} has inconsistent {len(theirs)} params."
            )
    for other, (theirs, their_names) in enumerate(everyones):
        for at, (shape, their_shape) in enumerate(zip(mine, theirs)):
            if shape != their_shape:
                raise RuntimeError(
                    f"[{rank}]: params[{at}] in this process with sizes {shape} appears not to "
                    f"match sizes of the same param in process {other}.\nIt is "
                    f"{names[at]} here, and {their_names[at]} with sizes {their_shape} there."
                )


def broadcast_coalesced(group: Any, tensors: Sequence[Any], size: int, source: int) -> None:
    """Overwrite tensors with those of one process (its number in the group), many in one message.

    They are sent in pieces of about `size` bytes. Versions of the tensors do not change: a buffer
    may be overwritten between two forward passes whose backward passes are still to come.
    """
    from rushlight import distributed as dist
    from rushlight.nn.parallel.buckets import Bucket, assign_buckets

    if not tensors:
        return
    owner = dist.get_global_rank(group, source)
    mine = dist.get_rank(group) == source
    with no_grad():
        for numbers in assign_buckets(tensors, range(len(tensors)), [size]):
            some = [tensors[i].data for i in numbers]
            if len(some) == 1 and some[0].is_contiguous():
                dist.broadcast(some[0], owner, group=group)
                continue
            flat = functions["cat"]([t.reshape(-1) for t in some])
            dist.broadcast(flat, owner, group=group)
            if not mine:
                for t, sent in zip(some, Bucket(numbers, some, flat).views):
                    t.copy_(sent)
