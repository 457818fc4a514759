"""Batch normalisation over the batches of several processes: what `SyncBatchNorm` computes.

Forward, each process sends the number, mean and variance of its own values; from these everyone
computes those of all values together. Backward, the two sums over the batch that the gradient
needs are added up over the processes. Gradients of weight and bias stay those of the own batch:
`DistributedDataParallel` averages them like all others.
"""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.autograd.function import Function, once_differentiable
from rushlight.autograd.grad_mode import no_grad
from rushlight.ops.registry import functions

__all__ = ["sync_batch_norm"]
__dir__ = __all__.copy


def _shape(x: Any) -> tuple[int, ...]:
    """The shape of one value for each channel that goes along with `x`."""
    return (1, x.shape[1], *[1] * (x.ndim - 2))


def _statistics(x: Any, group: Any) -> tuple[Any, Any, float]:
    """Mean and variance of each channel over the batches of all processes, and how many values a
    channel has there. A process may have an empty batch."""
    from rushlight import distributed as dist

    channels = x.shape[1]
    dims = [0, *range(2, x.ndim)]
    count = x.numel() // channels
    mean = x.sum(dims) / max(count, 1)
    spread = (x - mean.view(_shape(x))).square().sum(dims)
    mine = functions["cat"]([mean, spread, mean.new_full((1,), count)])
    everyones = mine.new_empty(dist.get_world_size(group), 2 * channels + 1)
    dist.all_gather_into_tensor(everyones, mine.unsqueeze(0), group=group)
    means, spreads, counts = everyones.split([channels, channels, 1], 1)
    total = float(counts.sum())
    if total <= 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {x.shape}"
        )
    mean = (means * counts).sum(0) / total
    # Around the common mean: the spread around the own mean, and that of the means themselves.
    var = (spreads + counts * (means - mean).square()).sum(0) / total
    return mean, var, total


class _SyncBatchNorm(Function):
    @staticmethod
    def forward(
        ctx: Any, x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float,
        momentum: float, group: Any,
    ) -> Any:  # fmt: skip
        wide = x.float() if x.dtype in (dtypes.float16, dtypes.bfloat16) else x
        mean, var, total = _statistics(wide, group)
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean * momentum)
        if running_var is not None:
            running_var.mul_(1 - momentum).add_(var * (momentum * total / (total - 1)))
        rstd = (var + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.total, ctx.group = total, group
        shape = _shape(x)
        y = (wide - mean.view(shape)) * rstd.view(shape)
        if weight is not None:
            y = y * weight.view(shape)
        if bias is not None:
            y = y + bias.view(shape)
        return y.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        from rushlight import distributed as dist

        x, weight, mean, rstd = ctx.saved_tensors
        shape = _shape(x)
        dims = [0, *range(2, x.ndim)]
        g = g.to(mean.dtype)
        xhat = (x.to(mean.dtype) - mean.view(shape)) * rstd.view(shape)
        sums = functions["stack"]([g.sum(dims), (g * xhat).sum(dims)])
        g_bias, g_weight = sums[0].clone(), sums[1].clone()
        g_x = None
        if ctx.needs_input_grad[0]:
            dist.all_reduce(sums, group=ctx.group)
            along, across = (sums / ctx.total).unbind(0)
            g_x = (g - along.view(shape) - xhat * across.view(shape)) * rstd.view(shape)
            if weight is not None:
                g_x = g_x * weight.view(shape)
            g_x = g_x.to(x.dtype)
        return (
            g_x,
            g_weight.to(weight.dtype) if ctx.needs_input_grad[1] else None,
            g_bias if ctx.needs_input_grad[2] else None,
            *[None] * 5,
        )


def sync_batch_norm(
    x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float,
    momentum: float, group: Any,
) -> Any:  # fmt: skip
    """`x` normalised by channel over the batches of all processes of a group; the running
    statistics are updated."""
    with no_grad():
        means = None if running_mean is None else running_mean.detach()
        variances = None if running_var is None else running_var.detach()
    return _SyncBatchNorm.apply(x, weight, bias, means, variances, eps, momentum, group)
