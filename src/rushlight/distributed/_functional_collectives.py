"""`torch.distributed._functional_collectives`: collectives that return new tensors, and have
derivatives.

A group is a process group, a mesh of devices of one dimension, or a mesh and the number of one of
its dimensions. Results are there when a function returns: `wait_tensor` has nothing to wait for.
"""

from __future__ import annotations

from typing import Any

from rushlight import distributed as dist
from rushlight.distributed.nn import functional as F
from rushlight.ops.registry import functions

__all__ = [
    "all_gather_single", "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce",
    "all_reduce_coalesced", "all_to_all_single", "all_to_all_single_autograd", "broadcast",
    "permute_tensor", "reduce_scatter_single", "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd", "wait_tensor",
]  # fmt: skip
__dir__ = __all__.copy


def _group(group: Any) -> Any:
    """The process group that is meant."""
    if isinstance(group, tuple):
        mesh, dim = group
        return mesh.get_group(mesh_dim=dim)
    if hasattr(group, "get_group"):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together")
        return group.get_group(mesh_dim=0)
    if isinstance(group, list | str):
        raise TypeError("rushlight: give a process group in place of ranks or a name")
    return group


def _reduce(reduce_op: str, x: Any, group: Any, collective: Any) -> Any:
    """A sum by a collective that has a derivative; an average is a sum divided."""
    name = reduce_op.lower()
    if name == "sum":
        return collective(x)
    if name == "avg":
        return collective(x) / dist.get_world_size(group)
    raise ValueError(f"rushlight: {reduce_op!r} is neither 'sum' nor 'avg'")


def wait_tensor(tensor: Any) -> Any:
    """wait_tensor(tensor) -> Tensor: the tensor itself."""
    return tensor


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """broadcast(self, src, group, tag="") -> Tensor: the tensor of process `src`, in all."""
    return F.broadcast(self, src, _group(group))


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:
    """all_reduce(self, reduceOp, group, tag="") -> Tensor: the sum over all processes ("sum"), or
    another reduction: "avg", "min", "max", "product".

    >>> from rushlight.distributed import _functional_collectives as fc
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> fc.all_reduce(torch.ones(2), "avg", torch.distributed.group.WORLD)
    tensor([1., 1.])
    >>> torch.distributed.destroy_process_group()
    """
    where = _group(group)
    if reduceOp.lower() in ("sum", "avg"):
        return _reduce(reduceOp, self, where, lambda x: F.all_reduce(x, group=where))
    y = self.detach().clone()  # no derivative is defined for the others
    dist.all_reduce(y, op=getattr(dist.ReduceOp, reduceOp.upper()), group=where)
    return y


def all_reduce_coalesced(self: list[Any], reduceOp: str, group: Any, tag: str = "") -> list[Any]:
    """all_reduce_coalesced(self, reduceOp, group, tag="") -> list of Tensors: each reduced."""
    return [all_reduce(t, reduceOp, group, tag) for t in self]


def all_gather_tensor(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """all_gather_tensor(self, gather_dim, group, tag="") -> Tensor: those of all processes, joined
    along a dimension."""
    return functions["cat"](F.all_gather(self, _group(group)), gather_dim)


def reduce_scatter_tensor(
    self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Any:
    """reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag="") -> Tensor: the sum over all
    processes, of which process i gets the i-th part along a dimension."""
    where = _group(group)
    size = dist.get_world_size(where)
    if self.shape[scatter_dim] % size != 0:
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of "
            f"group_size {size}"
        )
    parts = self.chunk(size, scatter_dim)
    return _reduce(
        reduceOp, parts, where,
        lambda x: F._ReduceScatter.apply(dist.ReduceOp.SUM, where, *x),
    )  # fmt: skip


def all_to_all_single(
    self: Any, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None,
    group: Any, tag: str = "",
) -> Any:  # fmt: skip
    """all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag="") -> Tensor: the
    i-th part of the rows goes to process i."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty((rows, *self.shape[1:]))
    return F.all_to_all_single(out, self, output_split_sizes, input_split_sizes, _group(group))


def permute_tensor(self: Any, src_dst: list[int], group: Any, tag: str = "") -> Any:
    """permute_tensor(self, src_dst, group, tag="") -> Tensor: process i sends its tensor to process
    `src_dst[i]`."""
    where = _group(group)
    rank, count = dist.get_rank(where), len(self)
    sent = [count if to == src_dst[rank] else 0 for to in range(len(src_dst))]
    received = [count if to == rank else 0 for to in src_dst]
    return all_to_all_single(self, received, sent, where, tag)


all_gather_single = all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
