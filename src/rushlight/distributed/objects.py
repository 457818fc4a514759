"""Collectives of Python objects, which go pickled. Only trusted processes should be in a group."""

from __future__ import annotations

import pickle
from typing import Any

from rushlight import dtypes
from rushlight.distributed.collectives import all_gather, broadcast, gather, root_of, scatter
from rushlight.distributed.initialization import warn_outsider
from rushlight.distributed.point_to_point import recv, send
from rushlight.distributed.process_group import ProcessGroup, is_outsider, resolve
from rushlight.ops.registry import functions

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
    "scatter_object_list", "send_object_list",
]  # fmt: skip
__dir__ = __all__.copy


def _packed(obj: Any, members: ProcessGroup, device: Any = None) -> tuple[Any, Any]:
    """An object as a tensor of bytes, and the number of them."""
    where = members.token().device if device is None else device
    data = bytearray(pickle.dumps(obj))
    row = functions["frombuffer"](data, dtype=dtypes.uint8).to(where)
    return row, functions["tensor"]([row.numel()], dtype=dtypes.int64, device=where)


def _unpacked(row: Any, size: int) -> Any:
    return pickle.loads(bytes(row[:size].cpu().numpy().tobytes()))


def _blank(count: int, members: ProcessGroup, kind: Any = dtypes.uint8, device: Any = None) -> Any:
    where = members.token().device if device is None else device
    return functions["zeros"]((count,), dtype=kind, device=where)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give an object of each process to all, in a list by rank."""
    if is_outsider(group):
        warn_outsider("all_gather_object")
        return None
    members = resolve(group)
    row, size = _packed(obj, members)
    sizes = [_blank(1, members, dtypes.int64) for _ in range(members.size())]
    all_gather(sizes, size, group=members)
    counts = [int(s.item()) for s in sizes]
    rows = [_blank(count, members) for count in counts]
    all_gather(rows, row, group=members)
    for i, (got, count) in enumerate(zip(rows, counts)):
        object_list[i] = _unpacked(got, count)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
    group: Any = None, group_dst: int | None = None,
) -> None:  # fmt: skip
    """Give an object of each process to the one with rank `dst`."""
    if is_outsider(group):
        warn_outsider("gather_object")
        return None
    members = resolve(group)
    root = root_of(members, 0 if dst is None and group_dst is None else dst, group_dst)
    here = members.rank() == root
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    row, size = _packed(obj, members)
    sizes = [_blank(1, members, dtypes.int64) for _ in range(members.size())]
    all_gather(sizes, size, group=members)
    counts = [int(s.item()) for s in sizes]
    longest = max(counts)
    padded = _blank(longest, members)
    padded[: row.numel()] = row
    rows = [_blank(longest, members) for _ in counts] if here else None
    gather(padded, rows, group=members, group_dst=root)
    if here and object_gather_list is not None and rows is not None:
        for i, (got, count) in enumerate(zip(rows, counts)):
            object_gather_list[i] = _unpacked(got, count)


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Give the objects in a list of the process with rank `src` to all, in their lists."""
    if is_outsider(group):
        warn_outsider("broadcast_object_list")
        return None
    members = resolve(group)
    root = root_of(members, 0 if src is None and group_src is None else src, group_src)
    if members.rank() == root:
        row, size = _packed(list(object_list), members, device)
    else:
        row, size = None, _blank(1, members, dtypes.int64, device)
    broadcast(size, group=members, group_src=root)
    if row is None:
        row = _blank(int(size.item()), members, device=device)
    broadcast(row, group=members, group_src=root)
    if members.rank() != root:
        for i, obj in enumerate(_unpacked(row, int(size.item()))):
            object_list[i] = obj


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
    src: int | None = None, group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Give the i-th object of the process with rank `src` to the one with rank i."""
    if is_outsider(group):
        warn_outsider("scatter_object_list")
        return None
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    members = resolve(group)
    root = root_of(members, 0 if src is None and group_src is None else src, group_src)
    here = members.rank() == root
    if here:
        given = scatter_object_input_list or []
        if len(given) != members.size():
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        packed = [_packed(obj, members) for obj in given]
        counts = functions["cat"]([size for _, size in packed])
    else:
        packed, counts = [], _blank(members.size(), members, dtypes.int64)
    broadcast(counts, group=members, group_src=root)
    longest = int(counts.max().item())
    rows = []
    for row, _ in packed:
        padded = _blank(longest, members)
        padded[: row.numel()] = row
        rows.append(padded)
    mine = _blank(longest, members)
    scatter(mine, rows if here else None, group=members, group_src=root)
    scatter_object_output_list[0] = _unpacked(mine, int(counts[members.rank()].item()))


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Send the objects in a list to the process with rank `dst`."""
    if is_outsider(group):
        warn_outsider("send_object_list")
        return None
    members = resolve(group)
    to = root_of(members, dst, group_dst)
    row, size = _packed(list(object_list), members, device)
    send(size, group=members, group_dst=to)
    send(row, group=members, group_dst=to)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Receive objects into a list; the result is the rank that they came from."""
    if is_outsider(group):
        warn_outsider("recv_object_list")
        return -1
    members = resolve(group)
    size = _blank(1, members, dtypes.int64, device)
    source = recv(size, src, members, group_src=group_src)
    row = _blank(int(size.item()), members, device=device)
    recv(row, source, members)
    for i, obj in enumerate(_unpacked(row, int(size.item()))):
        object_list[i] = obj
    return source
