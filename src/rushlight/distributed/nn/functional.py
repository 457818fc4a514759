"""Collectives with derivatives: a loss in one process has gradients in others.

Seen from outside, a collective is one linear function of the inputs of all processes together, and
the loss is the sum of the losses of all of them. So the backward pass is the transpose of that
function, which is a collective again:

    ============== ==================
    forward         backward
    ============== ==================
    broadcast       reduce
    gather          scatter
    all_gather      reduce_scatter
    all_reduce      all_reduce
    all_to_all      all_to_all
    ============== ==================

and the other way round. Every process must call `backward`, as all take part in it.
"""

from __future__ import annotations

from typing import Any

from rushlight import distributed as dist
from rushlight.autograd.function import Function
from rushlight.dtypes import contiguous_format
from rushlight.ops.registry import functions

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip
__dir__ = __all__.copy


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, x: Any) -> Any:
        ctx.src, ctx.group = src, group
        y = x.detach().clone(memory_format=contiguous_format)
        dist.broadcast(y, src, group=group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        total = _Reduce.apply(ctx.src, dist.ReduceOp.SUM, ctx.group, g)
        if dist.get_rank() != ctx.src:
            total.zero_()  # in place: it stays connected, and takes part in second derivatives
        return None, None, total


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, x: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        y = x.detach().clone(memory_format=contiguous_format)
        dist.reduce(y, dst, op=op, group=group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, g)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, x: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        x = x.detach().contiguous()
        parts = [functions["zeros_like"](x) for _ in range(dist.get_world_size(group))]
        dist.gather(x, parts if dist.get_rank() == dst else None, dst, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *g: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *g)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *parts: Any) -> Any:
        if not all(t.shape == parts[0].shape for t in parts):
            raise AssertionError("scatter: all tensors must have the same shape")
        ctx.src, ctx.group = src, group
        y = functions["zeros_like"](parts[0].detach().contiguous())
        given = [t.detach().contiguous() for t in parts] if dist.get_rank() == src else None
        dist.scatter(y, given, src, group=group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, g)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, x: Any) -> Any:
        ctx.group = group
        x = x.detach().contiguous()
        parts = [functions["empty_like"](x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, x, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *g: Any) -> Any:
        return None, _ReduceScatter.apply(dist.ReduceOp.SUM, ctx.group, *g)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, *parts: Any) -> Any:
        ctx.group = group
        given = [t.detach().contiguous() for t in parts]
        y = functions["empty_like"](given[dist.get_rank(group)])
        dist.reduce_scatter(y, given, op=op, group=group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, *_AllGather.apply(ctx.group, g)


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, x: Any) -> Any:
        ctx.group = group
        x = x.detach().contiguous()
        size = dist.get_world_size(group) * x.shape[0]
        y = x.new_empty((size, *x.shape[1:]))
        dist.all_gather_into_tensor(y, x, group=group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, _ReduceScatterBase.apply(ctx.group, g)


class _ReduceScatterBase(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, x: Any) -> Any:
        ctx.group = group
        size = dist.get_world_size(group)
        if x.shape[0] % size != 0:
            raise RuntimeError(
                f"Tensor with dimensions: {x.shape} does not have first dimension divisible by "
                f"world size: {size}"
            )
        y = x.new_empty((x.shape[0] // size, *x.shape[1:]))
        dist.reduce_scatter_tensor(y, x.detach().contiguous(), group=group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, _AllGatherBase.apply(ctx.group, g)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Any, *parts: Any) -> Any:
        ctx.group = group
        # The gradients travel back in the shapes that the inputs came in.
        ctx.inputs = [(t.shape, t.dtype, t.device) for t in parts]
        received = [functions["empty"](shape, dtype=d, device=at) for shape, d, at in outputs]
        dist.all_to_all(received, [t.detach().contiguous() for t in parts], group=group)
        return tuple(received)

    @staticmethod
    def backward(ctx: Any, *g: Any) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.inputs, *g)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shape: Any, received: Any, sent: Any, x: Any) -> Any:
        ctx.group, ctx.shape, ctx.received, ctx.sent = group, x.shape, received, sent
        y = x.new_empty(shape)
        dist.all_to_all_single(
            y, x.detach().contiguous(), output_split_sizes=received, input_split_sizes=sent,
            group=group,
        )  # fmt: skip
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        back = _AllToAllSingle.apply(ctx.group, ctx.shape, ctx.sent, ctx.received, g)
        return None, None, None, None, back


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, x: Any) -> Any:
        ctx.op, ctx.group = op, group
        y = x.detach().clone(memory_format=contiguous_format)
        dist.all_reduce(y, op=op, group=group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """broadcast(tensor, src, group=None) -> Tensor: the tensor of process `src`, in all.

    Args:
        tensor: what to send; elsewhere a tensor of that shape.
        src: the process that sends.
        group: the processes; None: all.
    """
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> Any:
    """gather(tensor, dst=0, group=None) -> tuple of Tensors: those of all processes, in process
    `dst`; zeros elsewhere.
    """
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """scatter(tensors, src=0, group=None) -> Tensor: process i gets the i-th tensor of `src`."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Any, dst: int, op: Any = dist.ReduceOp.SUM, group: Any = None) -> Any:
    """reduce(tensor, dst, op=ReduceOp.SUM, group=None) -> Tensor: the sum over all processes, in
    process `dst`."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = dist.ReduceOp.SUM, group: Any = None
) -> Any:
    """reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None) -> Tensor: process i gets
    the sum of the i-th tensors of all. It is also written to `output`."""
    y = _ReduceScatter.apply(op, group, *input_list)
    output.data.copy_(y.detach())
    return y


def all_gather(tensor: Any, group: Any = None) -> Any:
    """all_gather(tensor, group=None) -> tuple of Tensors: those of all processes, in each.

    >>> from rushlight.distributed.nn import functional
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> functional.all_gather(torch.ones(2))
    (tensor([1., 1.]),)
    >>> torch.distributed.destroy_process_group()
    """
    return _AllGather.apply(group, tensor)


def _all_gather_base(output_tensor: Any, input_tensor: Any, group: Any = None) -> Any:
    """The tensors of all processes, one below the other. They are also written to the output."""
    y = _AllGatherBase.apply(group, input_tensor)
    output_tensor.data.copy_(y.detach().view(output_tensor.shape))
    return y.view(output_tensor.shape)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> Any:
    """all_to_all(output_tensor_list, input_tensor_list, group=None) -> tuple of Tensors: process i
    gets the i-th tensors of all. They are also written to `output_tensor_list`."""
    kinds = [(t.shape, t.dtype, t.device) for t in output_tensor_list]
    received = _AllToAll.apply(group, kinds, *input_tensor_list)
    for out, t in zip(output_tensor_list, received):
        out.data.copy_(t.detach())
    return received


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: Any = None,
) -> Any:  # fmt: skip
    """all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None,
    group=None) -> Tensor: the i-th part of the rows of `input` goes to process i.

    Args:
        output: gets the result too.
        output_split_sizes: how many rows come from each process; None: equally many.
        input_split_sizes: how many rows go to each process; None: equally many.
    """
    y = _AllToAllSingle.apply(group, output.shape, output_split_sizes, input_split_sizes, input)
    output.data.copy_(y.detach())
    return y


def all_reduce(tensor: Any, op: Any = dist.ReduceOp.SUM, group: Any = None) -> Any:
    """all_reduce(tensor, op=ReduceOp.SUM, group=None) -> Tensor: the sum over all processes, in
    each. Its gradient is the sum of the gradients of all.

    >>> from rushlight.distributed.nn import functional
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> functional.all_reduce(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> torch.distributed.destroy_process_group()
    """
    return _AllReduce.apply(op, group, tensor)
