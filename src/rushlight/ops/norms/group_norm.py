"""`group_norm` and `instance_norm`: each example normalised by itself, by groups of channels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rushlight import dtypes
from rushlight.arrays import norms
from rushlight.arrays import vocabulary as v
from rushlight.arrays.kernels import bound
from rushlight.core.graph import Node
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented, one_dim, raw_dtype
from rushlight.ops.nn.normalization import Normalise, normalise_batch
from rushlight.ops.registry import function, functional, op, shared_op
from rushlight.ops.sample_inputs import Draw
from rushlight.size import Size


# --- by groups of channels ------------------------------------------------------------------------
@op
class GroupNorm(Normalise):
    """Normalise each example over each of `groups` groups of channels and all positions.

    The rules see the input with four axes: example, group, channel of the group, position.
    """

    name = "native_group_norm"
    params = ("groups", "eps")
    lies = "channels"
    axes = (-2, -1)
    summed = (-4, -1)

    def __init__(self, groups: int, eps: float) -> None:
        super().__init__()
        self.groups = groups
        self.eps = eps

    def mover(self, rule: str) -> Any:
        if rule == "forward":
            return bound(norms.group_norm, self.groups, norms.row_norm(self.eps))
        return bound(norms.group_norm_back, self.groups)

    def split(self, x: Any) -> Any:
        """The input with those four axes."""
        n, channels, *rest = x.shape
        each = channels // self.groups
        return v.reshape(x, (n, self.groups, each, math.prod(rest)))

    def align_weight(self, w: Any) -> Any:
        each = w.shape[-1] // self.groups
        return v.reshape(w, (*w.shape[:-1], 1, self.groups, each, 1))

    def forward(self, x: Any, w: Any, b: Any) -> Any:
        if v.low_precision(x.dtype):
            return self.forward_in_float32(x, w, b)
        quick = norms.group_norm(self.groups, norms.row_norm(self.eps), x, w, b)
        if quick is not None:
            return quick
        y, mean, rstd = super().forward(self.split(x), w, b)
        flat = mean.shape[:2]
        return v.reshape(y, x.shape), v.reshape(mean, flat), v.reshape(rstd, flat)

    def broadcastable(self, statistic: Any) -> Any:
        """A statistic (one value per example and group) in a shape that broadcasts with `split`."""
        return v.reshape(statistic, (*statistic.shape, 1, 1))

    def vjp(self, node: Node, g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
        if v.low_precision(raw_dtype(x)):
            return self.vjp_in_float32(node, g, x, w, mean, rstd)
        quick = norms.group_norm_back(self.groups, node._needs_grad_mask, g, x, w, mean, rstd)
        if quick is not None:
            return quick
        parts = (self.split(g[0]), self.broadcastable(g[1]), self.broadcastable(g[2]))
        mean, rstd = self.broadcastable(mean), self.broadcastable(rstd)
        gx, gw, gb = super().vjp(node, parts, self.split(x), w, mean, rstd)
        return (None if gx is None else v.reshape(gx, x.shape)), gw, gb

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        inside = None if ts[0] is None else self.split(ts[0])
        results = (y[0], self.broadcastable(y[1]), self.broadcastable(y[2]))
        t, tmean, trstd = super().jvp((inside, *ts[1:]), (self.split(xs[0]), *xs[1:]), results)
        flat = y[1].shape
        return v.reshape(t, xs[0].shape), v.reshape(tmean, flat), v.reshape(trstd, flat)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield GroupNorm(2, 1e-5), draw.real(2, 4, 3), draw.real(4), draw.real(4)
        yield GroupNorm(1, 1e-3), draw.real(2, 3, 2, 2), draw.real(3), None
        yield GroupNorm(2, 1e-3), draw.real(3, 4), None, None
        yield GroupNorm(2, 1e-5), draw.real(0, 4, 3), draw.real(4), draw.real(4)


def _group_norm(input: Any, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    x = check_tensor(input, "group_norm")
    channels = x.shape[one_dim(1, x.ndim)]
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(x.shape)} and num_groups={groups}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t._array.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(t._array.shape)} and input of shape "
                f"{list(x.shape)}"
            )
    kind = dtypes.of(x.dtype)
    if not kind.is_floating_point:
        raise not_implemented("GroupNormKernelImpl", kind)
    low = v.low_precision(x.dtype)
    for t in (weight, bias):
        if t is None or t._array.dtype == x.dtype:
            continue
        if not (low and t._array.dtype == dtypes.float32.numpy):
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    return apply(shared_op(GroupNorm, groups, eps), input, weight, bias)


@functional(settles=True)
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Each example, normalised over groups of its channels to mean 0 and variance 1, then times
    `weight` plus `bias`, one of each a channel.

    Args:
        num_groups: into how many groups the channels (dimension 1) are divided.

    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 10., 30.]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    x = check_tensor(input, "group_norm")
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    if x.shape[0] * x.shape[1] // num_groups * math.prod(x.shape[2:]) == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{[x.shape[0] * x.shape[1] // num_groups, num_groups, *x.shape[2:]]}"
        )
    return _group_norm(input, num_groups, weight, bias, eps)[0]


@function(name="group_norm", method=False)
def _free_group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """`nn.functional.group_norm`.

    Args:
        num_groups: into how many groups the channels (dimension 1) are divided.

    >>> torch.group_norm(torch.tensor([[1., 3., 10., 30.]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    return _group_norm(input, num_groups, weight, bias, eps)[0]


@function(method=False, returns="tuple[Tensor, Tensor, Tensor]")
def native_group_norm(
    input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> Any:
    """`group_norm`, with the mean and the inverse of the deviation of each group.

    Args:
        N: how many examples there are.
        C: how many channels.
        HxW: how many positions.
        group: into how many groups the channels are divided.

    >>> x = torch.tensor([[1., 3., 10., 30.]])
    >>> torch.native_group_norm(x, None, None, 1, 4, 1, 2, 0.)[1]
    tensor([[ 2., 20.]])
    """
    y, mean, rstd = _group_norm(input, group, weight, bias, eps)
    kind = dtypes.of((input if weight is None else weight)._array.dtype)
    return y, mean.to(kind), rstd.to(kind)


# --- by channels of one example -------------------------------------------------------------------
def _instance_norm(
    input: Any, mean: Any, var: Any, weight: Any, bias: Any, by_input: bool, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    """Batch normalisation in which each channel of each example is a channel of its own."""
    x = check_tensor(input, "instance_norm")
    if (mean is None) != (var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if mean is None and not by_input:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    channels = x.shape[one_dim(1, x.ndim)]
    n = x.shape[0]
    w, b, each_mean, each_var = (
        None if t is None else t.repeat(n) for t in (weight, bias, mean, var)
    )
    shape = (1, n * channels, *x.shape[2:])
    flat = input.contiguous().view(shape)
    y = normalise_batch(flat, each_mean, each_var, w, b, by_input, momentum, eps)[0]
    if by_input:
        for t, each in ((mean, each_mean), (var, each_var)):
            if t is not None and each is not None:
                t.detach().copy_(each.view(n, channels).mean(0))
    return y.view(x.shape)


@functional()
def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel of each example, normalised over its positions, then times `weight` plus
    `bias`.

    Args:
        use_input_stats: normalise by the input's own mean and variance, not by the running ones.

    >>> torch.nn.functional.instance_norm(torch.tensor([[[1., 3.], [10., 30.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    shape = check_tensor(input, "instance_norm").shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {Size(shape)}"
        )
    return _instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@function(name="instance_norm", method=False)
def _free_instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """`nn.functional.instance_norm`, with its arguments in another order.

    Args:
        use_input_stats: normalise by the input's own mean and variance, not by the running ones.

    >>> x = torch.tensor([[[1., 3.]]])
    >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 0., False)
    tensor([[[-1.,  1.]]])
    """
    return _instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )
