"""Losses by the names at the top of the package, with the reduction as a number: 0 for none, 1 for
the mean, 2 for the sum. They are those of `nn.functional`.
"""

from __future__ import annotations

from typing import Any

from rushlight.ops.nn import loss_binary, loss_classes, loss_margin, loss_regression
from rushlight.ops.nn.loss import REDUCTIONS, reduce_loss
from rushlight.ops.registry import function


def _name(reduction: int) -> str:
    names = {number: name for name, number in REDUCTIONS.items()}
    return names.get(reduction, str(reduction))


@function(method=False)
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0
) -> Any:
    """`nn.functional.cosine_embedding_loss`.

    Args:
        target: 1 where the two should be alike, -1 where not.
        reduction: 0 for none (the default, as in PyTorch), 1 for the mean, 2 for the sum.

    >>> x = torch.tensor([[1., 0.]])
    >>> torch.cosine_embedding_loss(x, x, torch.tensor([-1]))
    tensor([1.])
    """
    how = _name(reduction)
    return loss_margin.cosine_embedding_loss(input1, input2, target, margin, reduction=how)


@function(method=False)
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = 0) -> Any:
    """`nn.functional.hinge_embedding_loss`.

    Args:
        target: 1 or -1.
        reduction: 0 for none (the default, as in PyTorch), 1 for the mean, 2 for the sum.

    >>> torch.hinge_embedding_loss(torch.tensor([.5, .5]), torch.tensor([1, -1]), 1., 1)
    tensor(0.5000)
    """
    return loss_margin.hinge_embedding_loss(input, target, margin, reduction=_name(reduction))


@function(method=False)
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0
) -> Any:
    """`nn.functional.margin_ranking_loss`.

    Args:
        target: 1 where the first should be the larger, -1 where the second.
        reduction: 0 for none (the default, as in PyTorch), 1 for the mean, 2 for the sum.

    >>> one = torch.ones(1)
    >>> torch.margin_ranking_loss(one, 2 * one, one)
    tensor([1.])
    """
    how = _name(reduction)
    return loss_margin.margin_ranking_loss(input1, input2, target, margin, reduction=how)


@function(method=False)
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, reduction: int = 0,
) -> Any:  # fmt: skip
    """`nn.functional.triplet_margin_loss`.

    Args:
        reduction: 0 for none (the default, as in PyTorch), 1 for the mean, 2 for the sum.

    >>> x = torch.zeros(1, 2)
    >>> torch.triplet_margin_loss(x, x, x + 10)
    tensor([0.])
    """
    how = _name(reduction)
    return loss_margin.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=how
    )


@function(method=False)
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int
) -> Any:
    """`nn.functional.poisson_nll_loss`.

    Args:
        reduction: 0 for none, 1 for the mean, 2 for the sum.

    >>> torch.poisson_nll_loss(torch.tensor([0.]), torch.tensor([2.]), True, False, 1e-8, 1)
    tensor(1.)
    """
    return loss_regression.poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_name(reduction)
    )


@function(method=False)
def kl_div(input: Any, target: Any, reduction: int = 0, *, log_target: bool = False) -> Any:
    """`nn.functional.kl_div`.

    Args:
        reduction: 0 for none (the default, as in PyTorch), 1 for the mean, 2 for the sum.
        log_target: whether the target holds logarithms too.

    >>> p = torch.tensor([0.5, 0.5])
    >>> torch.kl_div(p.log(), p)
    tensor([0., 0.])
    """
    y = loss_classes.kl_div(input, target, reduction="none", log_target=log_target)
    return reduce_loss(y, reduction)


@function(method=False)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 0
) -> Any:
    """`nn.functional.binary_cross_entropy_with_logits`.

    Args:
        weight: what each element counts.
        pos_weight: what a target of 1 counts.
        reduction: 0 for none (the default, as in PyTorch), 1 for the mean, 2 for the sum.

    >>> torch.binary_cross_entropy_with_logits(torch.zeros(1), torch.ones(1))
    tensor([0.6931])
    """
    return loss_binary.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_name(reduction), pos_weight=pos_weight
    )
