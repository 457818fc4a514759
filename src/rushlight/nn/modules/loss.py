"""Losses as modules: each calls the function of its name in `nn.functional`."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any

from rushlight.nn import functional as F
from rushlight.nn.modules.distance import PairwiseDistance
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss",
    "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip
__dir__ = __all__.copy


class Loss(Module):
    """A loss: how the elements' losses become one number (`reduction`).

    `size_average` and `reduce` are what `reduction` was before.
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = "none"
            if reduce is not False:
                reduction = "mean" if size_average is not False else "sum"
            warnings.warn(
                "size_average and reduce args will be deprecated, please use "
                f"reduction='{reduction}' instead.",
                stacklevel=3,
            )
        self.reduction = reduction


class WeightedLoss(Loss):
    """A loss with weights, kept as a buffer."""

    weight: Any

    def __init__(
        self, weight: Any = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(Loss):
    """L1Loss(size_average=None, reduce=None, reduction='mean'): |input - target|."""

    def forward(self, input: Any, target: Any) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(Loss):
    """MSELoss(size_average=None, reduce=None, reduction='mean'): (input - target)².

    >>> torch.nn.MSELoss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """SmoothL1Loss(..., reduction='mean', beta=1.0): |input - target|, quadratic near 0."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """HuberLoss(reduction='mean', delta=1.0): quadratic within `delta` of 0, linear outside."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(WeightedLoss):
    """NLLLoss(weight=None, ..., ignore_index=-100, reduction='mean'): minus the log-probability
    of the target class.

    >>> torch.nn.NLLLoss()(torch.tensor([[-1., -2.]]), torch.tensor([1]))
    tensor(2.)
    """

    def __init__(
        self, weight: Any = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        return F.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index,
            reduction=self.reduction,
        )  # fmt: skip


class NLLLoss2d(NLLLoss):
    """NLLLoss2d(weight=None, ...): `NLLLoss`, by its name of old.

    >>> torch.nn.NLLLoss2d()(torch.tensor([[[[-1.]], [[-2.]]]]), torch.tensor([[[1]]]))
    tensor(2.)
    """


class CrossEntropyLoss(WeightedLoss):
    """CrossEntropyLoss(weight=None, ..., ignore_index=-100, reduction='mean',
    label_smoothing=0.0): of class indices or class probabilities.

    Takes scores [batch, classes, ...], before any softmax, and for each a class, or its
    probabilities in the shape of the scores.

    Args:
        weight: how much each class counts.
        ignore_index: a target that is passed over.
        reduction: 'mean', 'sum', or 'none' for the loss of each sample.
        label_smoothing: the share of a target that is spread over all classes.
        size_average, reduce: older forms of `reduction`.

    >>> torch.nn.CrossEntropyLoss()(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """

    def __init__(
        self, weight: Any = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index,
            reduction=self.reduction, label_smoothing=self.label_smoothing,
        )  # fmt: skip


class PoissonNLLLoss(Loss):
    """PoissonNLLLoss(log_input=True, full=False, ..., eps=1e-08, reduction='mean')."""

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: bool | None = None,
        eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Any, target: Any) -> Any:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
            reduction=self.reduction,
        )  # fmt: skip


class GaussianNLLLoss(Loss):
    """GaussianNLLLoss(*, full=False, eps=1e-06, reduction='mean')."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class KLDivLoss(Loss):
    """KLDivLoss(..., reduction='mean', log_target=False): target (log target - input)."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
        log_target: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(WeightedLoss):
    """BCELoss(weight=None, ..., reduction='mean'): cross entropy of two classes."""

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """BCEWithLogitsLoss(weight=None, ..., reduction='mean', pos_weight=None): BCELoss of the
    input's sigmoid.

    >>> torch.nn.BCEWithLogitsLoss()(torch.zeros(2), torch.ones(2))
    tensor(0.6931)
    """

    weight: Any
    pos_weight: Any

    def __init__(
        self, weight: Any = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", pos_weight: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(Loss):
    """HingeEmbeddingLoss(margin=1.0, ..., reduction='mean')."""

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginLoss(Loss):
    """A loss that is 0 where the inputs are further apart than `margin`."""

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(MarginLoss):
    """CosineEmbeddingLoss(margin=0.0, ..., reduction='mean')."""

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(MarginLoss):
    """MarginRankingLoss(margin=0.0, ..., reduction='mean')."""

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class SoftMarginLoss(Loss):
    """SoftMarginLoss(..., reduction='mean'): log(1 + exp(-target input))."""

    def forward(self, input: Any, target: Any) -> Any:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class TripletMarginLoss(Loss):
    """TripletMarginLoss(margin=1.0, p=2.0, eps=1e-06, swap=False, ..., reduction='mean')."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(Loss):
    """TripletMarginWithDistanceLoss(*, distance_function=None, margin=1.0, swap=False,
    reduction='mean'): `TripletMarginLoss` by a distance of one's own.

    >>> x = torch.zeros(1, 2)
    >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=torch.nn.L1Loss())
    >>> loss(x, x, x)
    tensor(1.)
    """

    def __init__(
        self, *, distance_function: Callable[..., Any] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got "
                f"{margin} instead"
            )
        self.distance_function: Any = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip


class MultiMarginLoss(WeightedLoss):
    """MultiMarginLoss(p=1, margin=1.0, weight=None, ..., reduction='mean'): each class at least
    `margin` below the target's.

    >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.5, 0.]]), torch.tensor([0]))
    tensor(0.2500)
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.ndim != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.ndim}D "
                "instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight,
            reduction=self.reduction,
        )  # fmt: skip


class MultiLabelMarginLoss(Loss):
    """MultiLabelMarginLoss(..., reduction='mean'): each other class at least 1 below the targets.

    >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([[0.5, 0.]]), torch.tensor([[0, -1]]))
    tensor(0.2500)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """MultiLabelSoftMarginLoss(weight=None, ..., reduction='mean'): binary cross entropy of each
    class, from logits.

    >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.tensor([[1., 0.]]))
    tensor(0.6931)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class CTCLoss(Loss):
    """CTCLoss(blank=0, reduction='mean', zero_infinity=False): of labellings without times.

    Called with log-probabilities [steps, batch, classes], targets [batch, length], and the lengths
    of both.

    Args:
        blank: the class that stands for no label.
        reduction: 'mean' (each divided by its target's length), 'sum' or 'none'.
        zero_infinity: whether a target too long for its input counts 0, instead of infinity.

    >>> even = torch.full((2, 1, 2), 0.5).log()
    >>> torch.nn.CTCLoss()(even, torch.tensor([[1]]), [2], [1])  # three ways of four
    tensor(0.2877)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip


@dataclasses.dataclass
class LinearCrossEntropyOptions:
    """LinearCrossEntropyOptions(...): how PyTorch computes `linear_cross_entropy` by pieces. Taken,
    and changes nothing.

    >>> torch.nn.LinearCrossEntropyOptions().chunking_method
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(WeightedLoss):
    """LinearCrossEntropyLoss(in_features, num_classes, *, out_features=(), bias=False, ...): a
    linear layer, and the cross entropy of what it gives.

    >>> loss = torch.nn.LinearCrossEntropyLoss(5, 10)
    >>> loss(torch.ones(2, 5), torch.tensor([1, 3])).shape
    torch.Size([])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (),
        bias: bool = False, device: Any = None, dtype: Any = None, reduction: str = "mean",
        weight: Any = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weight, None, None, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = out_features
        self.options = options
        size = num_classes * math.prod(out_features)
        self.linear = Linear(in_features, size, bias=bias, device=device, dtype=dtype)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )

    def forward(self, input: Any, target: Any) -> Any:
        inner = (self.num_classes, *self.out_features)
        weight, bias = self.linear.weight, self.linear.bias
        return F.linear_cross_entropy(
            input, weight.reshape(*inner, weight.shape[-1]), target,
            linear_bias=None if bias is None else bias.reshape(inner), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip


_Loss, _WeightedLoss = Loss, WeightedLoss  # PyTorch's names, which libraries build on
