"""Losses with margins: signs, rankings, embeddings. All but the first are made of other functions,
and their nodes are those of the parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.arrays.vocabulary import special
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, check_tensors, refuse_grad
from rushlight.ops.nn.loss import (
    TwoSided,
    broadcast_pair,
    reduce_loss,
    reduction_enum,
    sample_pairs,
)
from rushlight.ops.nn.softmax import pairwise_distance
from rushlight.ops.registry import functional, functions, op, shared_op
from rushlight.ops.sample_inputs import Draw
from rushlight.size import Size


@op
class SoftMarginLoss(TwoSided):
    """log(1 + exp(-target * x))."""

    name = "soft_margin_loss"
    shown_edges = (0,)
    lies = "input"

    def each(self, x: Any, t: Any) -> Any:
        return -special(x * t, "log_expit")

    def partial(self, i: int, x: Any, t: Any) -> Any:
        return -(x if i else t) * special(-(x * t), "expit")

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from sample_pairs(SoftMarginLoss, draw)


@functional()
def soft_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """log(1 + exp(-target * input)), averaged; the target holds 1 and -1.

    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.]), torch.tensor([1.]))
    tensor(0.6931)
    """
    how = reduction_enum(reduction, size_average, reduce)
    refuse_grad("soft_margin_loss", target=target)
    a, b = broadcast_pair(input, target, "soft_margin_loss")
    return apply(shared_op(SoftMarginLoss, how, a._array.ndim), a, b)


@functional()
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The input where the target is 1, max(0, margin - input) where it is -1, averaged.

    Args:
        target: 1 or -1.

    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([.5, .5]), torch.tensor([1, -1]))
    tensor(0.5000)
    """
    check_tensors("hinge_embedding_loss", input=input, target=target)
    how = reduction_enum(reduction, size_average, reduce)
    choose = functions["where"]
    short = (margin - input).clamp_min(0)
    y = choose(target != 1, short, 0.0) + choose(target != -1, input, 0.0)
    return reduce_loss(y, how)


@functional()
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, -target * (input1 - input2) + margin), averaged.

    Args:
        target: 1 where the first should be the larger, -1 where the second.

    >>> one = torch.ones(1)
    >>> torch.nn.functional.margin_ranking_loss(one, 2 * one, one)
    tensor(1.)
    """
    for name, t, position in (("input1", input1, 1), ("input2", input2, 2), ("target", target, 3)):
        check_tensor(t, "margin_ranking_loss", name, position)
    how = reduction_enum(reduction, size_average, reduce)
    shapes = [Size(t._array.shape) for t in (input1, input2, target)]
    if not len(shapes[0]) == len(shapes[1]) == len(shapes[2]):
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {shapes[0]}, input2: {shapes[1]}, target: {shapes[2]} "
        )
    return reduce_loss((-target * (input1 - input2) + margin).clamp_min(0), how)


@functional()
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1, averaged.

    Args:
        target: 1 where the two should be alike, -1 where not.

    >>> x = torch.tensor([[1., 0.]])
    >>> torch.nn.functional.cosine_embedding_loss(x, x, torch.tensor([-1]))
    tensor(1.)
    """
    for name, t, position in (("input1", input1, 1), ("input2", input2, 2), ("target", target, 3)):
        check_tensor(t, "cosine_embedding_loss", name, position)
    how = reduction_enum(reduction, size_average, reduce)
    rank = target._array.ndim
    if rank > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1._array.ndim != rank + 1 or input2._array.ndim != rank + 1:
        raise RuntimeError(
            f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with sizes "
            f"{list(input1._array.shape)} and {list(input2._array.shape)}."
        )
    dots = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cos = dots / squares.sqrt()
    choose = functions["where"]
    apart = (cos - margin).clamp_min(0)
    y = choose(target == 1, 1 - cos, 0.0) + choose(target == -1, apart, 0.0)
    return reduce_loss(y, how)


@functional()
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, distance to the positive - distance to the negative + margin), averaged.

    >>> x = torch.zeros(1, 2)
    >>> torch.nn.functional.triplet_margin_loss(x, x, x + 10)
    tensor(0.)
    """
    given = {"anchor": anchor, "positive": positive, "negative": negative}
    for position, (name, t) in enumerate(given.items(), 1):
        check_tensor(t, "triplet_margin_loss", name, position)
    how = reduction_enum(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ranks = [t._array.ndim for t in given.values()]
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
    return reduce_loss((margin + near - far).clamp_min(0), how)
