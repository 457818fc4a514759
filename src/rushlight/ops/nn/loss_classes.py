"""Losses of many classes: `nll_loss`, `cross_entropy`; and `kl_div` of two distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values, is_array
from rushlight.core.families import is_complex
from rushlight.core.graph import Op
from rushlight.core.observer import observer
from rushlight.core.record import apply
from rushlight.errors import sentence
from rushlight.ops.checks import check_tensors, is_batched, not_implemented, refuse_grad
from rushlight.ops.nn.embedding import outside
from rushlight.ops.nn.loss import MEAN, NONE, SUM, reduce_loss, reduction_enum
from rushlight.ops.nn.softmax import LogSoftmax, apply_along
from rushlight.ops.operands import integral
from rushlight.ops.registry import functional, functions, op, shared_op
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.warned import warn_caller

_INT64: Final = dtypes.int64.numpy


# --- the log-probability of a class ---------------------------------------------------------------
@op
class NllLoss(Op):
    """-weight[target] * x[target] along the class axis; the mean is by the weights.

    `masked` says that some targets are `ignore_index` and do not count; None: it looks for itself.
    `rank` is the target's. The weight gets no gradient: the public functions refuse one that
    requires it.
    """

    name = "nll_loss"
    aten = "nll_loss_forward.default"
    profile_name = "nll_loss"
    shown_edges = (0,)
    inputs = ("self", "target", "weight")
    saves = ("target", "weight")
    params = ("reduction", "rank", "axis", "ignore_index", "masked")
    reduction: int
    rank: int
    axis: int
    ignore_index: int
    masked: bool | None
    reads: ClassVar = {0: ("target", "weight")}

    def mover(self, rule: str) -> Any:
        if rule != "forward" or self.masked is not None:
            return None
        return kernels.bound(kernels.nll, self.reduction, self.ignore_index)

    def looked(self, t: Any, classes: int) -> Any:
        """The op that knows whether some targets are ignored; raises if one is no class."""
        masked = _some_ignored(t, classes, self.ignore_index)
        return type(self)(self.reduction, self.rank, self.axis, self.ignore_index, masked)

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return (self, xs) if flags[0] and flags[1] and xs[2] is None else None

    def targets(self, t: Any) -> Any:
        """The classes, with any class at all where the target is ignored."""
        return v.where(t == self.ignore_index, 0, t) if self.masked else t

    def weights(self, t: Any, w: Any, like: Any) -> Any:
        """What each target counts; None if all count 1."""
        if w is not None:
            w = v.pick(w, (v.SLOT,), self.targets(t))
        if self.masked:
            w = v.where(t == self.ignore_index, 0, like * 0 + 1 if w is None else w)
        return w

    def axes(self) -> tuple[int, ...]:
        return tuple(range(-self.rank, 0))

    def divisor(self, t: Any, w: Any) -> Any:
        if w is not None:
            return v.reduce_sum(w, self.axes(), False)
        n = 1
        for d in self.axes():
            n *= t.shape[d]
        return n

    def column(self, t: Any) -> Any:
        """The targets, with the class axis as size 1."""
        cut = t.ndim + 1 + self.axis
        return v.reshape(t, (*t.shape[:cut], 1, *t.shape[cut:]))

    def chosen(self, x: Any, t: Any) -> Any:
        i = self.targets(t)
        if x.ndim == 2 and self.rank == 1:  # the common case, by the quicker way
            return v.pick(x, (v.SLOT, v.SLOT), v.iota(t, x.shape[0], _INT64), i)
        return v.reshape(v.gather(x, self.axis, self.column(i)), t.shape)

    def forward(self, x: Any, t: Any, w: Any) -> Any:
        if self.masked is None:
            return self.looked(t, x.shape[1]).forward(x, t, w)
        y = -self.chosen(x, t)
        w = self.weights(t, w, y)
        if self.masked:
            y = v.where(t == self.ignore_index, 0, y)
        if w is not None:
            y = y * w
        if self.reduction == NONE:
            return y
        out = v.reduce_sum(y, self.axes(), False)
        return out / self.divisor(t, w) if self.reduction == MEAN else out

    def vjp(self, node: Any, g: Any, t: Any, w: Any) -> Any:
        shapes, kinds = node._input_shapes, node._input_dtypes
        shape = shapes[0]
        if self.masked is None:
            how = self.reduction, self.ignore_index, shape[1]
            made = kernels.nll_back(*how, g, t, w)
            if made is not None:
                return made, None, None
            return self.looked(t, shape[1]).vjp(node, g, t, w)
        like = v.full(g, t.shape, 1, kinds[0])
        w = self.weights(t, w, like)
        if self.reduction == MEAN:
            g = g / self.divisor(t, w)
        if self.reduction != NONE:
            g = v.reshape(g, (*g.shape, *(1,) * self.rank))
        h = -g * (like if w is None else w)
        zeros = v.full(g, shape, 0, kinds[0])
        i = self.targets(t)
        if len(shape) == 2 and self.rank == 1:
            rows = v.iota(t, shape[0], _INT64)
            return v.place(zeros, h, (v.SLOT, v.SLOT), rows, i), None, None
        return v.scatter(zeros, self.axis, self.column(i), self.column(h)), None, None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0], xs[1], xs[2])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduction in (NONE, MEAN, SUM):
            x, t = draw.real(4, 3), draw.ints(0, 3, 4)
            yield NllLoss(reduction, 1, -1, -100, False), x, t, None
            yield NllLoss(reduction, 1, -1, 1, True), x, t, None
            yield NllLoss(reduction, 0, -1, -100, False), draw.real(3), draw.ints(0, 3), None


@op
class NllLoss2d(NllLoss):
    """`NllLoss` of a class at each position."""

    name = "nll_loss2d"
    aten = "nll_loss2d_forward.default"
    profile_name = "nll_loss2d"
    node = "NllLoss2DBackward0"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduction in (NONE, MEAN, SUM):
            x, t = draw.real(2, 3, 4), draw.ints(0, 3, 2, 4)
            yield NllLoss2d(reduction, 2, -2, -100, False), x, t, None
            yield NllLoss2d(reduction, 2, -2, 1, True), x, t, None


def _nll(input: Any, target: Any, weight: Any, how: int, ignore: int) -> Any:
    x, t = input._array, target._array
    if x.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if x.ndim != 1 and (t.ndim == 0 or x.shape[0] != t.shape[0]):
        have = t.shape[0] if t.ndim else 0
        raise ValueError(
            f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({have})."
        )
    if x.ndim <= 2 and t.ndim > 1:
        raise RuntimeError(
            sentence(
                "0D or 1D target tensor expected, multi-target not supported",
                f"the input has the shape {list(x.shape)}, the target {list(t.shape)}",
                "Give one class a sample: the target without its dimensions of size 1 "
                "(`target.squeeze(1)`), or of one-hot rows `target.argmax(1)`.",
            )
        )
    kind = dtypes.of(t.dtype)
    if kind not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(
            sentence(
                f"expected target dtype to be Long or Byte, but got {kind.scalar_type}",
                "",
                "The target holds the number of a class for each sample: `target.long()`. "
                "Probabilities of classes have the shape of the input, and its dtype, and go to "
                "`cross_entropy`.",
            )
        )
    if x.ndim == 3 and t.shape != (x.shape[0], x.shape[2]):
        want = [x.shape[0], x.shape[2]]
        raise RuntimeError(f"Expected target size {want}, got {list(t.shape)}")
    if x.ndim > 3 and t.shape != (x.shape[0], *x.shape[2:]):
        raise RuntimeError(f"size mismatch (got input: {list(x.shape)} , target: {list(t.shape)}")
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if weight is not None:
        w = weight._array
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
        raise not_implemented(frame, kind)
    refuse_grad("nll_loss_forward" if x.ndim < 3 else "nll_loss2d_forward", weight=weight)
    if kind is dtypes.uint8:
        target = target.to(dtypes.int64)
    masked = None
    if x.ndim != 2 or t.ndim != 1 or not is_array(t):
        observer.keep_nothing()
        masked = _some_ignored(target._array, classes, ignore)
    if x.ndim == 1 and t.ndim == 1:  # one sample, its target in a list
        target = target.reshape(())
        if how == NONE:
            return _nll(input, target, weight, how, ignore).reshape(1)
    cls = NllLoss if x.ndim <= 2 else NllLoss2d
    axis = -1 if x.ndim == 1 else 1 - x.ndim
    return apply(
        shared_op(cls, how, target._array.ndim, axis, ignore, masked), input, target, weight
    )


def _some_ignored(t: Any, classes: int, ignore: int) -> bool:
    """Whether some targets are to be ignored; raises if one is no class. Values that cannot be
    read here (they are on another device, or only recorded) are taken to hold ignored ones."""
    t = bottom(t)
    if not has_values(t):
        return True
    inside = not outside(t, classes)
    if inside and not 0 <= ignore < classes:
        return False
    here = t == ignore
    if not inside:
        wrong = t[((t < 0) | (t >= classes)) & ~here]
        if wrong.size:
            raise IndexError(
                sentence(
                    f"Target {int(wrong[0])} is out of bounds.",
                    f"the input has {classes} classes, so targets are 0 to {classes - 1}",
                    f"A target of {ignore} (`ignore_index`) would be passed over. Do the classes "
                    "start at 1, or has the last layer too few outputs?",
                )
            )
    return bool(here.any())


@functional(settles=True)
def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative of each sample's log-probability of its target class, averaged.

    Args:
        target: the class of each example.

    >>> logs = torch.tensor([[-1., -2.], [-3., -4.]])
    >>> torch.nn.functional.nll_loss(logs, torch.tensor([0, 1]))
    tensor(2.5000)
    """
    return _nll(
        input, target, weight, reduction_enum(reduction, size_average, reduce), ignore_index
    )


# --- cross entropy --------------------------------------------------------------------------------
@functional(settles=True)
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """The cross entropy of softmax(input) and the target: class indices, or probabilities.

    Args:
        target: the class of each example, or the probabilities of all classes.

    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    how = reduction_enum(reduction, size_average, reduce)
    kind = dtypes.of(target._array.dtype)
    if target._array.shape == input._array.shape:
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
    dim = 0 if input._array.ndim == 1 else 1
    logs = apply_along(LogSoftmax, "log_softmax", input, dim, None)
    if label_smoothing:
        return _smooth_targets(logs, target, weight, how, ignore_index, label_smoothing, dim)
    return _nll(logs, target, weight, how, ignore_index)


def _per_class(weight: Any, rank: int) -> Any:
    """Class weights in the shape that broadcasts against an input of `rank` dimensions."""
    if rank == 1:
        return weight
    return weight.reshape(1, -1, *(1,) * (rank - 2))


def _soft_targets(input: Any, target: Any, weight: Any, how: int, smoothing: float) -> Any:
    rank = input._array.ndim
    dim = 0 if rank == 1 else 1
    classes = input._array.shape[dim]
    if weight is not None and weight._array.shape != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or "
            f"no classes but got weight tensor of shape: {list(weight._array.shape)}"
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    y = apply_along(LogSoftmax, "log_softmax", input, dim, None) * target
    if weight is not None:
        y = y * _per_class(weight, rank)
    if how == NONE:
        return -y.sum(dim)
    y = -y.sum()
    return y / (input._array.size // classes if classes else 0) if how == MEAN else y


def _smooth_targets(
    logs: Any, target: Any, weight: Any, how: int, ignore: int, smoothing: float, dim: int
) -> Any:
    """A share of `smoothing` of each target spread evenly over all classes."""
    observer.keep_nothing()
    hard = _nll(logs, target, weight, how, ignore)
    rank = logs._array.ndim
    even = -(logs if weight is None else logs * _per_class(weight, rank)).sum(dim)
    gone = target == ignore
    even = even.masked_fill(gone, 0.0)
    if how == SUM:
        even = even.sum()
    elif how == MEAN:
        if weight is None and is_batched(gone):
            even = even.sum() / (~gone).sum()
        elif weight is None:
            count = target._array.size - int(gone._array.sum())
            even = even.sum() / float(count) if count else even.sum() * math.nan
        else:
            chosen = weight[target.masked_fill(gone, 0)].masked_fill(gone, 0.0)
            even = even.sum() / chosen.sum()
    return hard * (1 - smoothing) + even * (smoothing / logs._array.shape[dim])


@functional(settles=True)
def kl_div(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """target * (log(target) - input), averaged: the input holds log-probabilities. 'batchmean'
    divides the sum by the batch size, as the mathematical divergence does.

    >>> p = torch.tensor([[0.5, 0.5]])
    >>> torch.nn.functional.kl_div(p.log(), p, reduction="batchmean")
    tensor(0.)
    """
    check_tensors("kl_div", input=input, target=target)
    if is_complex(input) or is_complex(target):
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if integral(input) or integral(target):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    batchmean = reduction == "batchmean" and size_average is None and reduce is None
    if reduction == "mean" and size_average is None and reduce is None:
        warn_caller(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
        )
    how = SUM if batchmean else reduction_enum(reduction, size_average, reduce)
    if log_target:
        y = target.exp() * (target - input)
    else:
        y = functions["xlogy"](target, target) - target * input
    y = reduce_loss(y, how)
    return y / input._array.shape[0] if batchmean and input._array.ndim else y
