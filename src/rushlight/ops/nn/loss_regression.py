"""Losses of numbers: of their differences, and the likelihood of numbers under a distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom, without_histories
from rushlight.arrays.host import has_values
from rushlight.core.families import is_complex
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensors, not_implemented
from rushlight.ops.nn import loss
from rushlight.ops.nn.loss import (
    MEAN,
    NONE,
    DifferenceLoss,
    broadcast_pair,
    reduction_enum,
    sample_pairs,
)
from rushlight.ops.registry import functional, functions, op, shared_op
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.warned import warn_caller
from rushlight.size import Size


# --- differences ----------------------------------------------------------------------------------
def check_pair(input: Any, target: Any) -> None:
    """Warn of a target that would be broadcast."""
    if input._array.shape != target._array.shape:
        warn_caller(
            f"Using a target size ({Size(target._array.shape)}) that is different to the input "
            f"size ({Size(input._array.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
        )


def weighted_loss(y: Any, weight: Any, shape: Any, how: int) -> Any:
    """Losses times weights; the mean is by the weights too."""
    if weight._array.shape != shape:
        raise ValueError("Weights and input must have the same size.")
    y = y * weight
    if how == NONE:
        return y
    return y.sum() / weight.sum() if how == MEAN else y.sum()


@op
class MseLoss(DifferenceLoss):
    name = "mse_loss"
    saved_names = "reduction"

    def each(self, d: Any) -> Any:
        return d * d

    def slope(self, d: Any) -> Any:
        return 2 * d

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from sample_pairs(MseLoss, draw)


@functional(settles=True)
def mse_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """(input - target)², averaged.

    >>> torch.nn.functional.mse_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """
    check_pair(input, target)
    how = reduction_enum(reduction, size_average, reduce)
    a, b = broadcast_pair(input, target, "mse_cpu")
    if weight is not None:
        return weighted_loss(
            apply(shared_op(MseLoss, NONE, a._array.ndim), a, b), weight, input._array.shape, how
        )
    return apply(shared_op(MseLoss, how, a._array.ndim), a, b)


@functional(settles=True)
def l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """|input - target|, averaged.

    >>> torch.nn.functional.l1_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    check_pair(input, target)
    how = reduction_enum(reduction, size_average, reduce)
    y = (input - target).abs()
    if weight is not None:
        return weighted_loss(y, weight, input._array.shape, how)
    return loss.reduce_loss(y, how)


@op
class SmoothL1Loss(DifferenceLoss):
    """d² / (2 beta) within beta of 0, |d| - beta / 2 outside."""

    name = "smooth_l1_loss"
    saved_names = "reduction beta"
    params = ("reduction", "rank", "beta")
    beta: float

    def each(self, d: Any) -> Any:
        size = v.absolute(d)
        return v.where(size < self.beta, d * d * 0.5 / self.beta, size - 0.5 * self.beta)

    def slope(self, d: Any) -> Any:
        return v.where(v.absolute(d) < self.beta, d / self.beta, v.sign(d))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from sample_pairs(SmoothL1Loss, draw, 0.7)


@functional(settles=True)
def smooth_l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """|input - target|, but quadratic within `beta` of 0, averaged.

    Args:
        beta: the difference at which the loss turns from a square to a line.

    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    check_pair(input, target)
    how = reduction_enum(reduction, size_average, reduce)
    a, b = broadcast_pair(input, target, "smooth_l1_cpu")
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return loss.reduce_loss((a - b).abs(), how)
    return apply(shared_op(SmoothL1Loss, how, a._array.ndim, beta), a, b)


@op
class HuberLoss(DifferenceLoss):
    """d² / 2 within delta of 0, delta * (|d| - delta / 2) outside."""

    name = "huber_loss"
    saved_names = "reduction delta"
    params = ("reduction", "rank", "delta")
    delta: float
    lies = "input"

    def each(self, d: Any) -> Any:
        size = v.absolute(d)
        return v.where(size <= self.delta, d * d * 0.5, self.delta * (size - 0.5 * self.delta))

    def slope(self, d: Any) -> Any:
        return v.where(v.absolute(d) < self.delta, d, self.delta * v.sign(d))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from sample_pairs(HuberLoss, draw, 0.7)


@functional(settles=True)
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """(input - target)² / 2 within `delta` of 0, linear outside, averaged.

    >>> torch.nn.functional.huber_loss(torch.tensor([0., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    check_pair(input, target)
    how = reduction_enum(reduction, None, None)
    a, b = broadcast_pair(input, target, "huber_cpu")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    rank = a._array.ndim
    if weight is not None:
        return weighted_loss(
            apply(shared_op(HuberLoss, NONE, rank, delta), a, b),
            weight,
            input._array.shape,
            how,
        )
    return apply(shared_op(HuberLoss, how, rank, delta), a, b)


# --- likelihoods, made of other functions ---------------------------------------------------------
@functional()
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative log-likelihood of counts under a Poisson distribution; `input` is its log rate.

    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.]), torch.tensor([2.]))
    tensor(1.)
    """
    check_tensors("poisson_nll_loss", input=input, target=target)
    how = reduction_enum(reduction, size_average, reduce)
    y = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        y = y + stirling.masked_fill(target <= 1, 0)
    return loss.reduce_loss(y, how)


@functional()
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative log-likelihood of targets under normal distributions of mean `input` and
    variance `var`, which counts as at least `eps`.

    >>> one = torch.ones(1)
    >>> torch.nn.functional.gaussian_nll_loss(one, 2 * one, one)
    tensor(0.5000)
    """
    check_tensors("gaussian_nll_loss", input=input, target=target)
    x = input._array
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = functions["full_like"](input, var)
    elif is_complex(var):
        raise not_implemented("lt_cpu", dtypes.of(var._array.dtype))
    elif has_values(bottom(var._array)) and bool((bottom(var._array) < 0).any()):
        raise ValueError("var has negative entry/entries")
    shape = var._array.shape
    if shape != x.shape:
        if shape == x.shape[:-1]:
            var = var.unsqueeze(-1)
        elif shape[:-1] != x.shape[:-1] or shape[-1:] != (1,):
            raise ValueError("var is of incorrect size")
    if reduction not in loss.REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    raw = without_histories(var._array)
    v.overwrite(raw, v.maximum(raw, eps))  # the gradient passes as if unchanged
    y = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        y = y + 0.5 * math.log(2 * math.pi)
    return loss.reduce_loss(y, loss.REDUCTIONS[reduction])
