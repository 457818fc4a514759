"""The collectives: every process of a group calls them, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.initialization import warn_outsider
from rushlight.distributed.process_group import ProcessGroup, is_outsider, rank_in, resolve
from rushlight.distributed.reduce_op import ReduceOp
from rushlight.distributed.work import Work, together

__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier",
    "broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter",
    "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
]  # fmt: skip
__dir__ = __all__.copy


# --- checks ---------------------------------------------------------------------------------------
def check_tensor(value: Any, name: str) -> None:
    """That an argument is a tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_tensor_list(value: Any, name: str) -> None:
    """That an argument is a list of tensors."""
    if not isinstance(value, list) or not all(isinstance(t, TensorBase) for t in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(value)} with elements of type "
            f"{[type(x) for x in value] if isinstance(value, (list, tuple)) else None}."
        )


def _check_dtypes(*tensors: Any) -> None:
    found = list(dict.fromkeys(t.dtype for t in tensors))
    if len(found) > 1:
        raise ValueError(
            f"Invalid usage of tensors with different dtypesFound {found[1]} and  {found[0]}"
        )


def check_complex(op: ReduceOp, tensor: Any, name: str) -> None:
    """That complex numbers are only summed."""
    if tensor.is_complex() and op not in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM):
        raise ValueError(f"{name} does not support RedOpType.{op.name} on complex tensors")


def _check_sizes(name: str, tensors: Sequence[Any], like: Any, size: int) -> None:
    """That there is a tensor for each rank, of the size of what comes."""
    if len(tensors) != size:
        raise RuntimeError(
            f"ProcessGroup::{name}: invalid output list: the group has {size} processes, so "
            f"{size} tensors are needed, not {len(tensors)}"
        )
    for i, t in enumerate(tensors):
        if tuple(t.shape) != tuple(like.shape):
            raise RuntimeError(
                f"ProcessGroup::{name}: invalid tensor size at index {i} (expected "
                f"{_size(like)}, got {_size(t)})"
            )


def _size(t: Any) -> str:
    return "(" + ", ".join(map(str, t.shape)) + ")"


def root_of(group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """The rank in the group of `src` or `group_src`, or of `dst` or `group_dst`."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is not None:
        root = group_rank
    elif rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    else:
        root = rank_in(group, rank)
    if not 0 <= root < group.size():
        raise RuntimeError(f"invalid root rank: {root}: the group has {group.size()} processes")
    return root


def run(start: Callable[[bool], Work], async_op: bool) -> Work | None:
    """Start work, and wait for it unless the caller will."""
    work = start(async_op)
    if async_op:
        return work
    work.wait()
    return None


# --- reductions -----------------------------------------------------------------------------------
def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all processes; each has the result in it."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("all_reduce")
        return None
    check_complex(op, tensor, "all_reduce")
    members = resolve(group)
    return run(lambda alone: members.transport(tensor).all_reduce(tensor, op, alone), async_op)


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors."""
    given = [tensors] if isinstance(tensors, TensorBase) else list(tensors)
    check_tensor_list(given, "tensor")
    _check_dtypes(*given)
    if is_outsider(group):
        warn_outsider("all_reduce_coalesced")
        return None
    members = resolve(group)
    works = [members.transport(t).all_reduce(t, op, async_op) for t in given]
    return run(lambda alone: together(works, given), async_op)


def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Reduce a tensor over all processes; the one with rank `dst` has the result."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("reduce")
        return None
    check_complex(op, tensor, "reduce")
    members = resolve(group)
    root = root_of(members, dst, group_dst)
    return run(lambda alone: members.transport(tensor).reduce(tensor, root, op, alone), async_op)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a list of tensors over all processes; the one with rank i has the i-th result."""
    check_tensor(output, "output")
    check_tensor_list(input_list, "input_list")
    _check_dtypes(output, *input_list)
    if is_outsider(group):
        warn_outsider("reduce_scatter")
        return None
    members = resolve(group)
    if len(input_list) != members.size():
        raise RuntimeError(
            f"reduce_scatter needs a tensor for each of the {members.size()} processes, not "
            f"{len(input_list)}"
        )
    return run(
        lambda alone: members.transport(output).reduce_scatter(output, input_list, op, alone),
        async_op,
    )


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all processes; the one with rank i has the i-th part of the result."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    _check_dtypes(output, input)
    if is_outsider(group):
        warn_outsider("reduce_scatter_tensor")
        return None
    members = resolve(group)
    if input.numel() != output.numel() * members.size():
        raise RuntimeError(
            "input tensor must be the same size as output size times world size: "
            f"{_size(input)} is not {members.size()} times {_size(output)}"
        )
    return run(
        lambda alone: members.transport(output).reduce_scatter(output, [input], op, alone),
        async_op,
    )


# --- moves ----------------------------------------------------------------------------------------
def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give the tensor of the process with rank `src` to all."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("broadcast")
        return None
    members = resolve(group)
    root = root_of(members, src, group_src)
    return run(lambda alone: members.transport(tensor).broadcast(tensor, root, alone), async_op)


def all_gather(
    tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give the tensors of all processes to all, in a list by rank."""
    check_tensor_list(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    _check_dtypes(tensor, *tensor_list)
    if is_outsider(group):
        warn_outsider("all_gather")
        return None
    members = resolve(group)
    _check_own(tensor_list, tensor, members, "allgather")
    return run(
        lambda alone: members.transport(tensor).all_gather(tensor_list, tensor, alone), async_op
    )


def _check_own(outputs: list[Any], tensor: Any, members: ProcessGroup, name: str) -> None:
    """That there is an output for each rank, and the own one fits. Others may differ in size."""
    if len(outputs) != members.size():
        _check_sizes(name, outputs, tensor, members.size())
    if outputs[members.rank()].numel() != tensor.numel():
        _check_sizes(name, outputs, tensor, members.size())


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give the tensors of all processes to all, one behind the other or stacked."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    _check_dtypes(output_tensor, input_tensor)
    if is_outsider(group):
        warn_outsider("all_gather_into_tensor")
        return None
    members = resolve(group)
    if output_tensor.numel() != input_tensor.numel() * members.size():
        raise RuntimeError(
            "output tensor size must be equal to world_size times input tensor size: "
            f"{_size(output_tensor)} is not {members.size()} times {_size(input_tensor)}"
        )
    return run(
        lambda alone: members.transport(input_tensor).all_gather(
            [output_tensor], input_tensor, alone
        ),
        async_op,
    )


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather` of several tensors: `output_tensor_lists[i][j]` is the j-th of rank i."""
    if is_outsider(group):
        warn_outsider("all_gather_coalesced")
        return None
    check_tensor_list(input_tensor_list, "tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    members = resolve(group)
    works = []
    for j, tensor in enumerate(input_tensor_list):
        outputs = [row[j] for row in output_tensor_lists]
        _check_own(outputs, tensor, members, "allgather_coalesced")
        works.append(members.transport(tensor).all_gather(outputs, tensor, async_op))
    return run(lambda alone: together(works), async_op)


def gather(
    tensor: Any, gather_list: Any = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Give the tensors of all processes to the one with rank `dst`, in a list by rank."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("gather")
        return None
    members = resolve(group)
    root = root_of(members, 0 if dst is None and group_dst is None else dst, group_dst)
    outputs = gather_list or []
    if members.rank() == root:
        if not outputs:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        check_tensor_list(outputs, "gather_list")
        _check_dtypes(tensor, *outputs)
        _check_own(outputs, tensor, members, "gather")
    elif outputs:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return run(
        lambda alone: members.transport(tensor).gather(outputs, tensor, root, alone), async_op
    )


def scatter(
    tensor: Any, scatter_list: Any = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give the i-th of a list of tensors of the process with rank `src` to the one with rank i."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("scatter")
        return None
    members = resolve(group)
    root = root_of(members, 0 if src is None and group_src is None else src, group_src)
    inputs = scatter_list or []
    if members.rank() == root:
        if not inputs:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        check_tensor_list(inputs, "scatter_list")
        _check_dtypes(tensor, *inputs)
        _check_sizes("scatter", inputs, tensor, members.size())
    elif inputs:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return run(
        lambda alone: members.transport(tensor).scatter(tensor, inputs, root, alone), async_op
    )


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give the j-th input of the process with rank i to the one with rank j, as its i-th output."""
    check_tensor_list(output_tensor_list, "output_tensor_list")
    check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_dtypes(*output_tensor_list, *input_tensor_list)
    if is_outsider(group):
        warn_outsider("all_to_all")
        return None
    members = resolve(group)
    for tensors in (output_tensor_list, input_tensor_list):
        if len(tensors) != members.size():
            raise RuntimeError(
                f"all_to_all needs a tensor for each of the {members.size()} processes, not "
                f"{len(tensors)}"
            )
    transport = members.transport(input_tensor_list[0])
    return run(
        lambda alone: transport.all_to_all(output_tensor_list, input_tensor_list, alone), async_op
    )


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Give the j-th part of the input of the process with rank i to the one with rank j."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    _check_dtypes(output, input)
    if is_outsider(group):
        warn_outsider("all_to_all_single")
        return None
    members = resolve(group)
    # Written through views of its own rows, or of a copy where they are no rows of memory.
    outputs = _parts(output.detach(), output_split_sizes, members.size(), "output")
    inputs = _parts(input.detach(), input_split_sizes, members.size(), "input")
    transport = members.transport(input)
    return run(lambda alone: transport.all_to_all(outputs, inputs, alone), async_op)


def _parts(tensor: Any, sizes: Any, count: int, name: str) -> list[Any]:
    """The rows of a tensor for each rank."""
    rows = int(tensor.shape[0]) if tensor.ndim else 0
    if not sizes:
        if rows % count:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size: {rows} rows of "
                f"{name}, {count} processes"
            )
        sizes = [rows // count] * count
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(tensor.split(list(sizes)))


# --- meeting --------------------------------------------------------------------------------------
def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:  # fmt: skip
    """Wait until all processes of the group have come here."""
    if is_outsider(group):
        warn_outsider("barrier")
        return None
    members = resolve(group)
    seconds = None if timeout is None else timeout.total_seconds()
    return run(lambda alone: members.transport().barrier(alone, seconds), async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """A barrier that says which process did not come in time."""
    if is_outsider(group):
        warn_outsider("monitored_barrier")
        return None
    members = resolve(group)
    limit = members.timeout if timeout is None else timeout
    key = f"monitored/{next(members.barriers)}"
    members.store.set(f"{key}/{members.rank()}", b"1")
    if members.rank() == 0:
        late = []
        for rank in range(1, members.size()):
            try:
                members.store.wait([f"{key}/{rank}"], limit)
            except RuntimeError:
                late.append(members.ranks[rank])
                if not wait_all_ranks:
                    break
        if late:
            text = (
                f"Ranks {', '.join(map(str, late))} failed to pass monitoredBarrier in "
                f"{limit.total_seconds() * 1000:.0f} ms"
            )
            members.store.set(f"{key}/over", text)
            raise DistBackendError(text)
        members.store.set(f"{key}/over", b"")
        return
    members.store.wait([f"{key}/over"], limit * 2 + timedelta(seconds=5))
    if text := members.store.get(f"{key}/over").decode():
        raise DistBackendError(f"Rank {members.ranks[members.rank()]}: {text}")


all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor
