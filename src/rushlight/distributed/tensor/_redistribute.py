"""From one placement to another: what the processes send each other. Plain local tensors here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.autograd.function import Function
from rushlight.distributed.tensor._utils import compute_local_shape_and_global_offset
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from rushlight.ops.registry import functions

__all__: list[str] = []
__dir__ = __all__.copy


def _op(placement: Partial) -> Any:
    from rushlight import distributed as dist

    return getattr(dist.ReduceOp, placement.reduce_op.upper())


def _padded(local: Any, dim: int, size: int) -> Any:
    """A part with rows added until it has `size` of them: all processes send equally much."""
    lacking = size - local.size(dim)
    if not lacking:
        return local.contiguous()
    shape = list(local.shape)
    shape[dim] = lacking
    return functions["cat"]([local, local.new_zeros(shape)], dim)


def all_gather_dim(local: Any, dim: int, size: int, group: Any) -> Any:
    """The parts of all processes of a group, one behind the other along `dim`, `size` in all."""
    from rushlight import distributed as dist

    ranks = int(dist.get_world_size(group))
    if ranks == 1:
        return local
    mine = _padded(local.detach(), dim, -(-size // ranks))
    parts = [functions["empty_like"](mine) for _ in range(ranks)]
    dist.all_gather(parts, mine, group=group)
    return functions["cat"](parts, dim).narrow(dim, 0, size).contiguous()


def reduce_scatter_dim(whole: Any, dim: int, op: Any, group: Any) -> Any:
    """The sum (or another reduction) of what the processes of a group have, of which each gets its
    part along `dim`."""
    from rushlight import distributed as dist

    ranks, rank = int(dist.get_world_size(group)), int(dist.get_rank(group))
    if ranks == 1:
        return whole.clone()
    size = int(whole.size(dim))
    full = -(-size // ranks)
    parts = list(_padded(whole.detach(), dim, full * ranks).chunk(ranks, dim))
    mine = functions["empty_like"](parts[0].contiguous())
    dist.reduce_scatter(mine, [part.contiguous() for part in parts], op=op, group=group)
    count, _ = Shard.local_shard_size_and_offset(size, ranks, rank)
    return mine.narrow(dim, 0, count).contiguous()


def all_reduce(local: Any, op: Any, group: Any) -> Any:
    """The sum (or another reduction) of what the processes of a group have."""
    from rushlight import distributed as dist

    found = local.detach().clone()
    dist.all_reduce(found, op=op, group=group)
    return found


def my_part(whole: Any, dim: int, chunks: int, rank: int) -> Any:
    """The part along `dim` that a process has of a tensor."""
    size, start = Shard.local_shard_size_and_offset(int(whole.size(dim)), chunks, rank)
    return whole.narrow(dim, start, size).contiguous()


def redistribute_local(
    local: Any, mesh: Any, shape: Sequence[int], source: Sequence[Placement],
    target: Sequence[Placement],
) -> Any:  # fmt: skip
    """What a process has of a tensor of this shape, after its placements became other ones."""
    if tuple(source) == tuple(target):
        return local
    if mesh.ndim == 1 and isinstance(source[0], Partial) and isinstance(target[0], Shard):
        return reduce_scatter_dim(local, target[0].dim, _op(source[0]), mesh.get_group(0))
    # the innermost cuts are undone first, and the outermost made first
    placed = list(source)
    first = next(n for n in range(mesh.ndim) if source[n] != target[n])
    for n in reversed(range(first, mesh.ndim)):
        here = placed[n]
        placed[n] = Replicate()
        if isinstance(here, Partial):
            if here == target[n]:
                placed[n] = here
            else:
                local = all_reduce(local, _op(here), mesh.get_group(n))
        elif isinstance(here, Shard):
            sizes, _ = compute_local_shape_and_global_offset(shape, mesh, placed[:n])
            local = all_gather_dim(local, here.dim, sizes[here.dim], mesh.get_group(n))
    where = mesh.get_coordinate()
    for n in range(first, mesh.ndim):
        wanted = target[n]
        if isinstance(wanted, Shard):
            local = my_part(local, wanted.dim, mesh.size(n), where[n])
        elif isinstance(wanted, Partial) and not isinstance(placed[n], Partial):
            if wanted.reduce_op != "sum":
                raise RuntimeError(f"rushlight makes no {wanted} of a whole tensor")
            local = local / mesh.size(n)
    return local


class Redistribute(Function):
    """`redistribute_local`, with a gradient: that comes back the other way."""

    @staticmethod
    def forward(
        ctx: Any, local: Any, mesh: Any, shape: tuple[int, ...], source: Any, target: Any
    ) -> Any:
        ctx.facts = mesh, shape, source, target
        found = redistribute_local(local, mesh, shape, source, target)
        return local.view_as(local) if found is local else found

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        mesh, shape, source, target = ctx.facts
        # the gradient of a summand is that of the sum: it is whole where the tensor was partial
        came = [Replicate() if isinstance(p, Partial) else p for p in target]
        goes = [Replicate() if isinstance(p, Partial) else p for p in source]
        (g,) = grads
        return redistribute_local(g, mesh, shape, came, goes), None, None, None, None
