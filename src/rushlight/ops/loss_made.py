"""Losses made of other functions: distributions and margins. Their nodes are those of the parts."""

from __future__ import annotations

import math
import warnings
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import has_values
from rushlight.ops.arguments import expect_tensor
from rushlight.ops.fused import pairwise_distance
from rushlight.ops.loss import SUM
from rushlight.ops.loss_api import WAYS, reduced, way
from rushlight.ops.table import function, functions
from rushlight.size import Size

__all__ = ["kl_div", "triplet_margin_loss"]

_F: Any = {"method": False, "free": False, "namespace": "nn.functional"}


# --- distributions --------------------------------------------------------------------------------
@function(**_F)
def kl_div(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """kl_div(input, target, size_average=None, reduce=None, reduction='mean', log_target=False)
    -> Tensor

    target * (log(target) - input), averaged: the input holds log-probabilities. 'batchmean' divides
    the sum by the batch size, as the mathematical divergence does.

    >>> import rushlight as torch
    >>> p = torch.tensor([[0.5, 0.5]])
    >>> torch.nn.functional.kl_div(p.log(), p, reduction="batchmean")
    tensor(0.)
    """
    expect_tensor(input, "kl_div")
    expect_tensor(target, "kl_div", "target", 2)
    batchmean = reduction == "batchmean" and size_average is None and reduce is None
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    how = SUM if batchmean else way(reduction, size_average, reduce)
    if log_target:
        y = target.exp() * (target - input)
    else:
        y = functions["xlogy"](target, target) - target * input
    y = reduced(y, how)
    return y / input.array.shape[0] if batchmean and input.array.ndim else y


@function(**_F)
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08,
    reduce=None, reduction='mean') -> Tensor

    The negative log-likelihood of counts under a Poisson distribution; `input` is its log rate.

    >>> import rushlight as torch
    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.]), torch.tensor([2.]))
    tensor(1.)
    """
    expect_tensor(input, "poisson_nll_loss")
    expect_tensor(target, "poisson_nll_loss", "target", 2)
    how = way(reduction, size_average, reduce)
    y = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        y = y + stirling.masked_fill(target <= 1, 0)
    return reduced(y, how)


@function(**_F)
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """gaussian_nll_loss(input, target, var, full=False, eps=1e-06, reduction='mean') -> Tensor

    The negative log-likelihood of targets under normal distributions of mean `input` and variance
    `var`, which counts as at least `eps`.

    >>> import rushlight as torch
    >>> one = torch.ones(1)
    >>> torch.nn.functional.gaussian_nll_loss(one, 2 * one, one)
    tensor(0.5000)
    """
    expect_tensor(input, "gaussian_nll_loss")
    expect_tensor(target, "gaussian_nll_loss", "target", 2)
    x = input.array
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = functions["full_like"](input, var)
    elif has_values(var.array) and bool((var.array < 0).any()):
        raise ValueError("var has negative entry/entries")
    shape = var.array.shape
    if shape != x.shape:
        if shape == x.shape[:-1]:
            var = var.unsqueeze(-1)
        elif shape[:-1] != x.shape[:-1] or shape[-1:] != (1,):
            raise ValueError("var is of incorrect size")
    if reduction not in WAYS:
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    v.overwrite(var.array, v.maximum(var.array, eps))  # the gradient passes as if unchanged
    y = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        y = y + 0.5 * math.log(2 * math.pi)
    return reduced(y, WAYS[reduction])


# --- margins --------------------------------------------------------------------------------------
@function(**_F)
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None,
    reduction='mean') -> Tensor

    The input where the target is 1, max(0, margin - input) where it is -1, averaged.

    >>> import rushlight as torch
    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([.5, .5]), torch.tensor([1, -1]))
    tensor(0.5000)
    """
    expect_tensor(input, "hinge_embedding_loss")
    expect_tensor(target, "hinge_embedding_loss", "target", 2)
    how = way(reduction, size_average, reduce)
    choose = functions["where"]
    short = (margin - input).clamp_min(0)
    y = choose(target != 1, short, 0.0) + choose(target != -1, input, 0.0)
    return reduced(y, how)


@function(**_F)
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None,
    reduction='mean') -> Tensor

    max(0, -target * (input1 - input2) + margin), averaged.

    >>> import rushlight as torch
    >>> one = torch.ones(1)
    >>> torch.nn.functional.margin_ranking_loss(one, 2 * one, one)
    tensor(1.)
    """
    for name, t, position in (("input1", input1, 1), ("input2", input2, 2), ("target", target, 3)):
        expect_tensor(t, "margin_ranking_loss", name, position)
    how = way(reduction, size_average, reduce)
    shapes = [Size(t.array.shape) for t in (input1, input2, target)]
    if not len(shapes[0]) == len(shapes[1]) == len(shapes[2]):
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {shapes[0]}, input2: {shapes[1]}, target: {shapes[2]} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), how)


@function(**_F)
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None,
    reduction='mean') -> Tensor

    1 - cos where the target is 1, max(0, cos - margin) where it is -1, averaged.

    >>> import rushlight as torch
    >>> x = torch.tensor([[1., 0.]])
    >>> torch.nn.functional.cosine_embedding_loss(x, x, torch.tensor([-1]))
    tensor(1.)
    """
    for name, t, position in (("input1", input1, 1), ("input2", input2, 2), ("target", target, 3)):
        expect_tensor(t, "cosine_embedding_loss", name, position)
    how = way(reduction, size_average, reduce)
    rank = target.array.ndim
    if rank > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.array.ndim != rank + 1 or input2.array.ndim != rank + 1:
        raise RuntimeError(
            f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.array.shape)} and {list(input2.array.shape)}."
        )
    dots = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cos = dots / squares.sqrt()
    choose = functions["where"]
    apart = (cos - margin).clamp_min(0)
    y = choose(target == 1, 1 - cos, 0.0) + choose(target == -1, apart, 0.0)
    return reduced(y, how)


@function(**_F)
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False,
    size_average=None, reduce=None, reduction='mean') -> Tensor

    max(0, distance to the positive - distance to the negative + margin), averaged.

    >>> import rushlight as torch
    >>> x = torch.zeros(1, 2)
    >>> torch.nn.functional.triplet_margin_loss(x, x, x + 10)
    tensor(0.)
    """
    given = {"anchor": anchor, "positive": positive, "negative": negative}
    for position, (name, t) in enumerate(given.items(), 1):
        expect_tensor(t, "triplet_margin_loss", name, position)
    how = way(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ranks = [t.array.ndim for t in given.values()]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {ranks[0]}D, positive {ranks[1]}D, and negative "
            f"{ranks[2]}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = functions["minimum"](far, pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), how)
