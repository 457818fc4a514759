"""The public losses of differences and classes; the others stand in `loss_made`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from rushlight import dtypes
from rushlight.arrays.host import has_values
from rushlight.core.record import apply
from rushlight.ops.arguments import expect_tensor
from rushlight.ops.contract import refuse_grad, shared
from rushlight.ops.fused import LogSoftmax, along
from rushlight.ops.layers import outside
from rushlight.ops.loss import (
    MEAN,
    NONE,
    SUM,
    BinaryCrossEntropy,
    BinaryCrossEntropyWithLogits,
    HuberLoss,
    MseLoss,
    NllLoss,
    NllLoss2d,
    SmoothL1Loss,
    SoftMarginLoss,
)  # fmt: skip
from rushlight.ops.matmul import broadcast_shapes
from rushlight.ops.run import result_dtype
from rushlight.ops.table import function
from rushlight.size import Size

__all__ = ["WAYS", "cross_entropy", "mse_loss", "nll_loss", "reduced", "way"]

_F: Any = {"method": False, "free": False, "namespace": "nn.functional"}
WAYS = {"none": NONE, "mean": MEAN, "sum": SUM}


# --- arguments ------------------------------------------------------------------------------------
def way(reduction: str, size_average: bool | None, reduce: bool | None, level: int = 3) -> int:
    """The reduction as a number, from the present argument or the two it replaced."""
    if size_average is not None or reduce is not None:
        averages, reduces = size_average is not False, reduce is not False
        reduction = ("mean" if averages else "sum") if reduces else "none"
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=level,
        )
    if reduction not in WAYS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return WAYS[reduction]


def reduced(y: Any, how: int) -> Any:
    """A loss made of other functions, reduced."""
    if how == NONE:
        return y
    return y.mean() if how == MEAN else y.sum()


def pair(input: Any, target: Any, kernel: str) -> tuple[Any, Any]:
    """Input and target in one shape and dtype."""
    a, b = input.array, target.array
    if a.shape != b.shape:
        shape = broadcast_shapes(a.shape, b.shape)
        input, target = input.expand(shape), target.expand(shape)
    if a.dtype != b.dtype:
        common = result_dtype((input, target))
        input, target = input.to(common), target.to(common)
    kind = dtypes.of(input.array.dtype)
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.scalar_type}'")
    return input, target


def warn_sizes(input: Any, target: Any) -> None:
    if input.array.shape != target.array.shape:
        warnings.warn(
            f"Using a target size ({Size(target.array.shape)}) that is different to the input size "
            f"({Size(input.array.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def weighed(y: Any, weight: Any, shape: Any, how: int) -> Any:
    """Losses times weights; the mean is by the weights too."""
    if weight.array.shape != shape:
        raise ValueError("Weights and input must have the same size.")
    y = y * weight
    if how == NONE:
        return y
    return y.sum() / weight.sum() if how == MEAN else y.sum()


# --- differences ----------------------------------------------------------------------------------
@function(**_F)
def mse_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """mse_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)
    -> Tensor

    (input - target)², averaged.

    >>> import rushlight as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """
    expect_tensor(input, "mse_loss")
    expect_tensor(target, "mse_loss", "target", 2)
    warn_sizes(input, target)
    how = way(reduction, size_average, reduce)
    a, b = pair(input, target, "mse_cpu")
    if weight is not None:
        return weighed(
            apply(shared(MseLoss, NONE, a.array.ndim), a, b), weight, input.array.shape, how
        )
    return apply(shared(MseLoss, how, a.array.ndim), a, b)


@function(**_F)
def l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """l1_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)
    -> Tensor

    |input - target|, averaged.

    >>> import rushlight as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    expect_tensor(input, "l1_loss")
    expect_tensor(target, "l1_loss", "target", 2)
    warn_sizes(input, target)
    how = way(reduction, size_average, reduce)
    y = (input - target).abs()
    if weight is not None:
        return weighed(y, weight, input.array.shape, how)
    return reduced(y, how)


@function(**_F)
def smooth_l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """smooth_l1_loss(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0)
    -> Tensor

    |input - target|, but quadratic within `beta` of 0, averaged.

    >>> import rushlight as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    expect_tensor(input, "smooth_l1_loss")
    expect_tensor(target, "smooth_l1_loss", "target", 2)
    warn_sizes(input, target)
    how = way(reduction, size_average, reduce)
    a, b = pair(input, target, "smooth_l1_cpu")
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduced((a - b).abs(), how)
    return apply(shared(SmoothL1Loss, how, a.array.ndim, beta), a, b)


@function(**_F)
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """huber_loss(input, target, reduction='mean', delta=1.0, weight=None) -> Tensor

    (input - target)² / 2 within `delta` of 0, linear outside, averaged.

    >>> import rushlight as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([0., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    expect_tensor(input, "huber_loss")
    expect_tensor(target, "huber_loss", "target", 2)
    warn_sizes(input, target)
    how = way(reduction, None, None)
    a, b = pair(input, target, "huber_cpu")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    rank = a.array.ndim
    if weight is not None:
        return weighed(
            apply(shared(HuberLoss, NONE, rank, delta), a, b), weight, input.array.shape, how
        )
    return apply(shared(HuberLoss, how, rank, delta), a, b)


# --- two classes ----------------------------------------------------------------------------------
def _beside(weight: Any, input: Any) -> Any:
    """A weight in the shape of the input."""
    if weight is None or weight.array.shape == input.array.shape:
        return weight
    return weight.expand(broadcast_shapes(weight.array.shape, input.array.shape))


@function(**_F)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None,
    reduction='mean') -> Tensor

    -(target * log(input) + (1 - target) * log(1 - input)), averaged; no logarithm counts below
    -100.

    >>> import rushlight as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.]))
    tensor(0.6931)
    """
    expect_tensor(input, "binary_cross_entropy")
    expect_tensor(target, "binary_cross_entropy", "target", 2)
    how = way(reduction, size_average, reduce)
    x, t = input.array, target.array
    if x.shape != t.shape:
        raise ValueError(
            f"Using a target size ({Size(t.shape)}) that is different to the input size "
            f"({Size(x.shape)}) is deprecated. Please ensure they have the same size."
        )
    if x.dtype != t.dtype:
        have, want = dtypes.of(t.dtype).scalar_type, dtypes.of(x.dtype).scalar_type
        raise RuntimeError(f"Found dtype {have} but expected {want}")
    kind = dtypes.of(x.dtype)
    if not kind.is_floating_point:
        raise NotImplementedError(
            f"\"binary_cross_entropy\" not implemented for '{kind.scalar_type}'"
        )
    if has_values(x) and not bool(((x >= 0) & (x <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    refuse_grad("binary_cross_entropy", weight=weight)
    return apply(shared(BinaryCrossEntropy, how, x.ndim), input, target, _beside(weight, input))


@function(**_F)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None,
    reduction='mean', pos_weight=None) -> Tensor

    `binary_cross_entropy` of sigmoid(input), computed from the input itself.

    >>> import rushlight as torch
    >>> F = torch.nn.functional
    >>> F.binary_cross_entropy_with_logits(torch.tensor([0., 1000.]), torch.tensor([1., 1.]))
    tensor(0.3466)
    """
    expect_tensor(input, "binary_cross_entropy_with_logits")
    expect_tensor(target, "binary_cross_entropy_with_logits", "target", 2)
    how = way(reduction, size_average, reduce)
    x, t = input.array, target.array
    if x.shape != t.shape:
        raise ValueError(
            f"Target size ({Size(t.shape)}) must be the same as input size ({Size(x.shape)})"
        )
    for each in (input, target):
        kind = dtypes.of(each.array.dtype)
        if not kind.is_floating_point:
            raise RuntimeError(
                f"result type Float can't be cast to the desired output type {kind.scalar_type}"
            )
    if x.dtype != t.dtype:
        common = result_dtype((input, target))
        input, target = input.to(common), target.to(common)
    refuse_grad("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    what = shared(BinaryCrossEntropyWithLogits, how, x.ndim)
    return apply(what, input, target, _beside(weight, input), _beside(pos_weight, input))


@function(**_F)
def soft_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """soft_margin_loss(input, target, size_average=None, reduce=None, reduction='mean') -> Tensor

    log(1 + exp(-target * input)), averaged; the target holds 1 and -1.

    >>> import rushlight as torch
    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.]), torch.tensor([1.]))
    tensor(0.6931)
    """
    expect_tensor(input, "soft_margin_loss")
    expect_tensor(target, "soft_margin_loss", "target", 2)
    how = way(reduction, size_average, reduce)
    refuse_grad("soft_margin_loss", target=target)
    a, b = pair(input, target, "soft_margin_loss")
    return apply(shared(SoftMarginLoss, how, a.array.ndim), a, b)


# --- many classes ---------------------------------------------------------------------------------
def _nll(input: Any, target: Any, weight: Any, how: int, ignore: int) -> Any:
    x, t = input.array, target.array
    if x.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if x.ndim != 1 and (t.ndim == 0 or x.shape[0] != t.shape[0]):
        have = t.shape[0] if t.ndim else 0
        raise ValueError(
            f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({have})."
        )
    if x.ndim <= 2 and t.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    kind = dtypes.of(t.dtype)
    if kind not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {kind.scalar_type}")
    if x.ndim == 3 and t.shape != (x.shape[0], x.shape[2]):
        want = [x.shape[0], x.shape[2]]
        raise RuntimeError(f"Expected target size {want}, got {list(t.shape)}")
    if x.ndim > 3 and t.shape != (x.shape[0], *x.shape[2:]):
        raise RuntimeError(f"size mismatch (got input: {list(x.shape)} , target: {list(t.shape)}")
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if weight is not None:
        w = weight.array
        if w.shape != (classes,):
            raise RuntimeError(
                f"weight tensor should be defined either for all {classes} classes or no classes "
                f"but got weight tensor of shape: {list(w.shape)}"
            )
        if w.dtype != x.dtype:
            have, got = dtypes.of(x.dtype).scalar_type, dtypes.of(w.dtype).scalar_type
            raise RuntimeError(f"expected scalar type {have} but found {got}")
    if not dtypes.of(x.dtype).is_floating_point:
        kind = dtypes.of(x.dtype)
        frame = "nll_loss_out_frame" if x.ndim < 3 else "nll_loss2d_forward_out_frame"
        raise NotImplementedError(f"\"{frame}\" not implemented for '{kind.scalar_type}'")
    refuse_grad("nll_loss_forward" if x.ndim < 3 else "nll_loss2d_forward", weight=weight)
    if kind is dtypes.uint8:
        target = target.to(dtypes.int64)
    masked = _some_ignored(target.array, classes, ignore)
    if x.ndim == 1 and t.ndim == 1:  # one sample, its target in a list
        target = target.reshape(())
        if how == NONE:
            return _nll(input, target, weight, how, ignore).reshape(1)
    cls = NllLoss if x.ndim <= 2 else NllLoss2d
    axis = -1 if x.ndim == 1 else 1 - x.ndim
    return apply(shared(cls, how, target.array.ndim, axis, ignore, masked), input, target, weight)


def _some_ignored(t: Any, classes: int, ignore: int) -> bool:
    """Whether some targets are to be ignored; raises if one is no class. Values that cannot be
    read here (they are on another device, or only recorded) are taken to hold ignored ones."""
    if not has_values(t):
        return True
    inside = not outside(t, classes)
    if inside and not 0 <= ignore < classes:
        return False
    here = t == ignore
    if not inside:
        wrong = t[((t < 0) | (t >= classes)) & ~here]
        if wrong.size:
            raise IndexError(f"Target {int(wrong[0])} is out of bounds.")
    return bool(here.any())


@function(**_F)
def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction='mean') -> Tensor

    The negative of each sample's log-probability of its target class, averaged.

    >>> import rushlight as torch
    >>> logs = torch.tensor([[-1., -2.], [-3., -4.]])
    >>> torch.nn.functional.nll_loss(logs, torch.tensor([0, 1]))
    tensor(2.5000)
    """
    expect_tensor(input, "nll_loss")
    expect_tensor(target, "nll_loss", "target", 2)
    return _nll(input, target, weight, way(reduction, size_average, reduce), ignore_index)


@function(**_F)
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction='mean', label_smoothing=0.0) -> Tensor

    The cross entropy of softmax(input) and the target: class indices, or probabilities.

    >>> import rushlight as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    expect_tensor(input, "cross_entropy")
    expect_tensor(target, "cross_entropy", "target", 2)
    how = way(reduction, size_average, reduce)
    kind = dtypes.of(target.array.dtype)
    if target.array.shape == input.array.shape:
        if not kind.is_floating_point:
            raise RuntimeError(
                "Expected floating point type for target with class probabilities, got "
                f"{kind.scalar_type}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_targets(input, target, weight, how, label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    dim = 0 if input.array.ndim == 1 else 1
    logs = along(LogSoftmax, "log_softmax", input, dim, None)
    if label_smoothing:
        return _smoothed(logs, target, weight, how, ignore_index, label_smoothing, dim)
    return _nll(logs, target, weight, how, ignore_index)


def _per_class(weight: Any, rank: int) -> Any:
    """Class weights in the shape that broadcasts against an input of `rank` dimensions."""
    if rank == 1:
        return weight
    return weight.reshape(1, -1, *(1,) * (rank - 2))


def _soft_targets(input: Any, target: Any, weight: Any, how: int, smoothing: float) -> Any:
    rank = input.array.ndim
    dim = 0 if rank == 1 else 1
    classes = input.array.shape[dim]
    if weight is not None and weight.array.shape != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or "
            f"no classes but got weight tensor of shape: {list(weight.array.shape)}"
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    y = along(LogSoftmax, "log_softmax", input, dim, None) * target
    if weight is not None:
        y = y * _per_class(weight, rank)
    if how == NONE:
        return -y.sum(dim)
    y = -y.sum()
    return y / (input.array.size // classes if classes else 0) if how == MEAN else y


def _smoothed(
    logs: Any, target: Any, weight: Any, how: int, ignore: int, smoothing: float, dim: int
) -> Any:
    """A share of `smoothing` of each target spread evenly over all classes."""
    hard = _nll(logs, target, weight, how, ignore)
    rank = logs.array.ndim
    even = -(logs if weight is None else logs * _per_class(weight, rank)).sum(dim)
    gone = target == ignore
    even = even.masked_fill(gone, 0.0)
    if how == SUM:
        even = even.sum()
    elif how == MEAN:
        if weight is None:
            count = target.array.size - int(gone.array.sum())
            even = even.sum() / float(count) if count else even.sum() * math.nan
        else:
            chosen = weight[target.masked_fill(gone, 0)].masked_fill(gone, 0.0)
            even = even.sum() / chosen.sum()
    return hard * (1 - smoothing) + even * (smoothing / logs.array.shape[dim])
