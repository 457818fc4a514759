"""`linear_cross_entropy`: the last layer of a classifier and its loss, in one call."""

from __future__ import annotations

import math
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.ops.checks import check_tensor
from rushlight.ops.nn.linear import linear
from rushlight.ops.nn.loss_classes import cross_entropy
from rushlight.ops.registry import functional


@functional()
def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:  # fmt: skip
    """cross_entropy(linear(input, linear_weight, linear_bias), target). `options` say how
    PyTorch works by pieces; here they say only that low precision is rounded once, at the end.

    Args:
        linear_weight: (classes, features), or (classes, …, features) for a class at each position.
        target: the class of each example, or the probabilities of all classes.
        linear_bias: added to the scores.
        weight: what each class counts.
        ignore_index: a target that does not count; by default -100.

    >>> x, w = torch.ones(1, 2), torch.zeros(4, 2)
    >>> torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([2]))
    tensor(1.3863)
    """
    check_tensor(input, "linear_cross_entropy")
    check_tensor(linear_weight, "linear_cross_entropy", "linear_weight", 2)
    kind = input.dtype
    once = options is not None and v.low_precision(input._array.dtype)
    if once:  # PyTorch's pieces are added up in float32
        input, linear_weight, target, linear_bias, weight = (
            x.to(dtypes.float32) if x is not None and x.dtype is kind else x
            for x in (input, linear_weight, target, linear_bias, weight)
        )
    w = linear_weight._array
    inner = w.shape[:-1]
    _check(input._array.shape, w.shape, linear_bias)
    if target.dtype.is_floating_point and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(inner) > 1:
        linear_weight = linear_weight.reshape(math.prod(inner), w.shape[-1])
    logits = linear(input, linear_weight, None if linear_bias is None else linear_bias.reshape(-1))
    lead = logits._array.shape[:-1]
    logits = logits.view((*lead, *inner))
    if ignore_index is None:
        ignore_index = -100
    loss = cross_entropy(
        logits, target, weight=weight, ignore_index=ignore_index, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip
    return loss.to(kind) if once else loss


def _check(x: tuple[int, ...], w: tuple[int, ...], bias: Any) -> None:
    """PyTorch's errors for a layer that does not fit."""
    if len(x) not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {len(x)}")
    if len(w) < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {len(w)}")
    if x[-1] != w[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{x[-1]} and {w[-1]}, respectively"
        )
    if len(x) == 1 and len(w) > 2:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {w} requires batched input, "
            f"(N, {x[-1]}), got unbatched input with shape {x}"
        )
    if bias is not None and bias._array.shape != w[:-1]:
        raise RuntimeError(f"expected linear_bias shape {w[:-1]}, got {bias._array.shape}")
