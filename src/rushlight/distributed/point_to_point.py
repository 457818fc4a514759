"""Messages from one process to another: `send`, `recv` and those that do not wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.distributed.collectives import check_tensor, root_of
from rushlight.distributed.initialization import warn_outsider
from rushlight.distributed.process_group import is_outsider, rank_in, resolve
from rushlight.distributed.work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]
__dir__ = __all__.copy


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Start sending a tensor to the process with rank `dst`. Leave it as it is until `wait()`."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("isend")
        return None
    return _send(tensor, dst, group, tag, group_dst, True)


def send(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Send a tensor to the process with rank `dst`."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("send")
        return None
    _send(tensor, dst, group, tag, group_dst, False).wait()


def _send(
    tensor: Any, dst: int | None, group: Any, tag: int, group_dst: int | None, alone: bool
) -> Work:
    members = resolve(group)
    to = root_of(members, dst, group_dst)
    if to == members.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the "
            "current process."
        )
    work: Work = members.transport(tensor).send(tensor, to, tag, alone)
    return work


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Start receiving a tensor from the process with rank `src`; from any, if None."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("irecv")
        return None
    return _receive(tensor, src, group, tag, group_src, True)


def recv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0,
    group_src: int | None = None,
) -> int:  # fmt: skip
    """Receive a tensor from the process with rank `src`, or from any; the result is which."""
    check_tensor(tensor, "tensor")
    if is_outsider(group):
        warn_outsider("recv")
        return -1
    work = _receive(tensor, src, group, tag, group_src, False)
    work.wait()
    if src is not None:
        return src
    if group_src is not None:
        return resolve(group).ranks[group_src]
    return resolve(group).ranks[work.source_rank()]


def _receive(
    tensor: Any, src: int | None, group: Any, tag: int, group_src: int | None, alone: bool
) -> Work:
    members = resolve(group)
    source = None
    if group_src is not None:
        source = group_src
    elif src is not None:
        source = rank_in(members, src)
    if source == members.rank():
        raise ValueError(
            "Invalid source rank: source rank should not be the same as the rank of the current "
            "process."
        )
    work: Work = members.transport(tensor).receive(tensor, source, tag, alone)
    return work


class P2POp:
    """P2POp(op, tensor, peer=None, group=None, tag=0, group_peer=None): a message to be started by
    `batch_isend_irecv`; `op` is `isend` or `irecv`."""

    def __init__(
        self, op: Callable[..., Any], tensor: Any, peer: int | None = None, group: Any = None,
        tag: int = 0, group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = resolve(group)
        self.group_peer = root_of(self.group, peer, group_peer)
        self.peer = self.group.ranks[self.group_peer]
        self.tag = tag

    def __repr__(self) -> str:
        here = self.group.ranks[self.group.rank()]
        ends = f"{here} -> {self.peer}" if self.op is isend else f"{self.peer} -> {here}"
        return f"P2POp({self.op.__name__} {ends}, {tuple(self.tensor.shape)}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages at once."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    if len({id(p.group) for p in p2p_op_list}) > 1:
        raise ValueError("All ops need to use the same group.")
    return [p.op(p.tensor, group=p.group, tag=p.tag, **_peer(p)) for p in p2p_op_list]


def _peer(p: P2POp) -> dict[str, int]:
    return {"group_dst" if p.op is isend else "group_src": p.group_peer}
