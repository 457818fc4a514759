"""Losses that are one node each; those made of other functions stand in `loss_api`.

Every loss reduces as its last step: by 0 not at all, by 1 to the mean, by 2 to the sum (PyTorch's
numbers, which its nodes show).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays.vocabulary import (
    SLOT,
    absolute,
    cast,
    full,
    gather,
    iota,
    log,
    log1p,
    low_precision,
    maximum,
    pick,
    place,
    reshape,
    scatter,
    sign,
    special,
    total,
    where,
)  # fmt: skip
from rushlight.core.graph import Node, Op
from rushlight.ops.samples import Draw
from rushlight.ops.table import op

__all__ = [
    "MEAN", "NONE", "SUM", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits", "HuberLoss",
    "Loss", "MseLoss", "NllLoss", "NllLoss2d", "SmoothL1Loss", "SoftMarginLoss",
]  # fmt: skip

NONE, MEAN, SUM = 0, 1, 2
_FLOAT32: Final = dtypes.float32.numpy
_INT64: Final = dtypes.int64.numpy


class Loss(Op):
    """A loss of inputs of one shape with `rank` dimensions: `each` gives it element by element."""

    inputs: ClassVar[tuple[str, ...]] = ("self", "target")
    saves: ClassVar[tuple[str, ...]] = ("self", "target")
    params: ClassVar[tuple[str, ...]] = ("reduction", "rank")

    def __init__(self, reduction: int, rank: int) -> None:
        super().__init__()
        self.reduction = reduction
        self.rank = rank

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(-self.rank, 0))

    def count(self, x: Any) -> int:
        n = 1
        for d in self.axes:
            n *= x.shape[d]
        return n

    def reduced(self, y: Any) -> Any:
        if self.reduction == NONE:
            return y
        out = total(y, self.axes, False)
        return out / self.count(y) if self.reduction == MEAN else out

    def spread(self, g: Any, x: Any) -> Any:
        """The gradient of each element, from that of what they were reduced to."""
        if self.reduction == NONE:
            return g
        if self.reduction == MEAN:
            g = g / self.count(x)
        return reshape(g, (*g.shape, *(1,) * self.rank)) if g.ndim else g

    def forward(self, *xs: Any) -> Any:
        rule: Any = self
        dtype = xs[0].dtype
        if low_precision(dtype):
            wide = [None if x is None else cast(x, _FLOAT32) for x in xs]
            return cast(self.reduced(rule.each(*wide)), dtype)
        return self.reduced(rule.each(*xs))


class DifferenceLoss(Loss):
    """A loss of d = self - target: give `each` of d, and its derivative `slope`."""

    def forward(self, x: Any, target: Any) -> Any:
        rule: Any = self
        dtype = x.dtype
        if low_precision(dtype):
            d = cast(x, _FLOAT32) - cast(target, _FLOAT32)
            return cast(self.reduced(rule.each(d)), dtype)
        return self.reduced(rule.each(x - target))

    def vjp(self, node: Node, g: Any, x: Any, target: Any) -> Any:
        rule: Any = self
        s = self.spread(g, x) * rule.slope(x - target)
        return (s if node.needs(0) else None), (-s if node.needs(1) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        if ts[1] is None:
            t = ts[0]
        elif ts[0] is None:
            t = -ts[1]
        else:
            t = ts[0] - ts[1]
        return self.reduced(rule.slope(xs[0] - xs[1]) * t)


def _pairs(cls: Any, draw: Draw, *more: Any) -> Iterator[tuple[Any, ...]]:
    for reduction in (NONE, MEAN, SUM):
        yield cls(reduction, 2, *more), draw.real(2, 3), draw.real(2, 3)
    yield cls(MEAN, 0, *more), draw.real(), draw.real()
    yield cls(SUM, 2, *more), draw.real(0, 2), draw.real(0, 2)


@op
class MseLoss(DifferenceLoss):
    name = "mse_loss"

    def each(self, d: Any) -> Any:
        return d * d

    def slope(self, d: Any) -> Any:
        return 2 * d

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from _pairs(MseLoss, draw)


@op
class SmoothL1Loss(DifferenceLoss):
    """d² / (2 beta) within beta of 0, |d| - beta / 2 outside."""

    name = "smooth_l1_loss"
    params = ("reduction", "rank", "beta")

    def __init__(self, reduction: int, rank: int, beta: float) -> None:
        super().__init__(reduction, rank)
        self.beta = beta

    def each(self, d: Any) -> Any:
        size = absolute(d)
        return where(size < self.beta, d * d * 0.5 / self.beta, size - 0.5 * self.beta)

    def slope(self, d: Any) -> Any:
        return where(absolute(d) <= self.beta, d / self.beta, sign(d))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from _pairs(SmoothL1Loss, draw, 0.7)


@op
class HuberLoss(DifferenceLoss):
    """d² / 2 within delta of 0, delta * (|d| - delta / 2) outside."""

    name = "huber_loss"
    params = ("reduction", "rank", "delta")

    def __init__(self, reduction: int, rank: int, delta: float) -> None:
        super().__init__(reduction, rank)
        self.delta = delta

    def each(self, d: Any) -> Any:
        size = absolute(d)
        return where(size <= self.delta, d * d * 0.5, self.delta * (size - 0.5 * self.delta))

    def slope(self, d: Any) -> Any:
        return where(absolute(d) <= self.delta, d, self.delta * sign(d))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from _pairs(HuberLoss, draw, 0.7)


class TwoSided(Loss):
    """A loss of inputs that do not come as a difference: give `each`, and `partial(i, ...)`, its
    derivative by input i."""

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        rule: Any = self
        h = self.spread(g, saved[0])
        return tuple(
            h * rule.partial(i, *saved) if node.needs(i) else None for i in range(len(saved))
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        out = xs[0] * 0
        for i in range(len(ts)):
            if ts[i] is not None:
                out = out + ts[i] * rule.partial(i, *xs)
        return self.reduced(out)


@op
class SoftMarginLoss(TwoSided):
    """log(1 + exp(-target * x))."""

    name = "soft_margin_loss"

    def each(self, x: Any, t: Any) -> Any:
        return -special(x * t, "log_expit")

    def partial(self, i: int, x: Any, t: Any) -> Any:
        return -(x if i else t) * special(-(x * t), "expit")

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield from _pairs(SoftMarginLoss, draw)


def _weighed(y: Any, w: Any) -> Any:
    return y if w is None else y * w


@op
class BinaryCrossEntropy(TwoSided):
    """-(target * log(x) + (1 - target) * log(1 - x)), no logarithm below -100."""

    name = "binary_cross_entropy"
    inputs = ("self", "target", "weight")
    saves = ("self", "target", "weight")

    def each(self, x: Any, t: Any, w: Any) -> Any:
        yes, no = maximum(log(x), -100), maximum(log1p(-x), -100)
        return _weighed((t - 1) * no - t * yes, w)

    def partial(self, i: int, x: Any, t: Any, w: Any) -> Any:
        if i == 0:
            return _weighed((x - t) / maximum(x * (1 - x), 1e-12), w)
        if i == 1:
            return _weighed(maximum(log1p(-x), -100) - maximum(log(x), -100), w)
        return self.each(x, t, None)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduction in (NONE, MEAN, SUM):
            p = draw.probability
            yield BinaryCrossEntropy(reduction, 2), p(2, 3), p(2, 3), None
            yield BinaryCrossEntropy(reduction, 2), p(2, 3), p(2, 3), draw.positive(2, 3)


@op
class BinaryCrossEntropyWithLogits(TwoSided):
    """Binary cross entropy of sigmoid(x), from x; `pos_weight` multiplies the share of target 1."""

    name = "binary_cross_entropy_with_logits"
    inputs = ("self", "target", "weight", "pos_weight")
    saves = ("self", "target", "weight", "pos_weight")

    def each(self, x: Any, t: Any, w: Any, p: Any) -> Any:
        yes = special(x, "log_expit")
        if p is not None:
            yes = yes * ((p - 1) * t + 1)
        return _weighed((1 - t) * x - yes, w)

    def partial(self, i: int, x: Any, t: Any, w: Any, p: Any) -> Any:
        if i == 0:
            s = special(x, "expit")
            return _weighed(s - t if p is None else (p * t + 1 - t) * s - p * t, w)
        if i == 1:
            return _weighed(-x if p is None else -x - (p - 1) * special(x, "log_expit"), w)
        if i == 2:
            return self.each(x, t, None, p)
        return _weighed(-t * special(x, "log_expit"), w)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        cls = BinaryCrossEntropyWithLogits
        for reduction in (NONE, MEAN, SUM):
            x, t = draw.real(2, 3), draw.probability(2, 3)
            yield cls(reduction, 2), x, t, None, None
            yield cls(reduction, 2), x, t, draw.positive(2, 3), draw.positive(2, 3)


@op
class NllLoss(Op):
    """-weight[target] * x[target] along the class axis; the mean is by the weights.

    `masked` says that some targets are `ignore_index` and do not count. `rank` is the target's. The
    weight gets no gradient: the public functions refuse one that asks.
    """

    name = "nll_loss"
    inputs = ("self", "target", "weight")
    saves = ("target", "weight")
    params = ("reduction", "rank", "axis", "ignore_index", "masked")
    reads: ClassVar = {0: ("target", "weight")}

    def __init__(
        self, reduction: int, rank: int, axis: int, ignore_index: int, masked: bool
    ) -> None:
        super().__init__()
        self.reduction = reduction
        self.rank = rank
        self.axis = axis
        self.ignore_index = ignore_index
        self.masked = masked

    def targets(self, t: Any) -> Any:
        """The classes, with any class at all where the target is ignored."""
        return where(t == self.ignore_index, 0, t) if self.masked else t

    def weights(self, t: Any, w: Any, like: Any) -> Any:
        """What each target counts; None if all count 1."""
        if w is not None:
            w = pick(w, (SLOT,), self.targets(t))
        if self.masked:
            w = where(t == self.ignore_index, 0, like * 0 + 1 if w is None else w)
        return w

    def axes(self) -> tuple[int, ...]:
        return tuple(range(-self.rank, 0))

    def divisor(self, t: Any, w: Any) -> Any:
        if w is not None:
            return total(w, self.axes(), False)
        n = 1
        for d in self.axes():
            n *= t.shape[d]
        return n

    def column(self, t: Any) -> Any:
        """The targets, with the class axis as size 1."""
        cut = t.ndim + 1 + self.axis
        return reshape(t, (*t.shape[:cut], 1, *t.shape[cut:]))

    def chosen(self, x: Any, t: Any) -> Any:
        i = self.targets(t)
        if x.ndim == 2 and self.rank == 1:  # the common case, by the quicker way
            return pick(x, (SLOT, SLOT), iota(t, x.shape[0], _INT64), i)
        return reshape(gather(x, self.axis, self.column(i)), t.shape)

    def forward(self, x: Any, t: Any, w: Any) -> Any:
        y = -self.chosen(x, t)
        w = self.weights(t, w, y)
        if self.masked:
            y = where(t == self.ignore_index, 0, y)
        if w is not None:
            y = y * w
        if self.reduction == NONE:
            return y
        out = total(y, self.axes(), False)
        return out / self.divisor(t, w) if self.reduction == MEAN else out

    def vjp(self, node: Node, g: Any, t: Any, w: Any) -> Any:
        shapes, kinds = node.shapes, node.dtypes
        assert shapes is not None and kinds is not None
        shape = shapes[0]
        like = full(g, t.shape, 1, kinds[0])
        w = self.weights(t, w, like)
        if self.reduction == MEAN:
            g = g / self.divisor(t, w)
        if self.reduction != NONE:
            g = reshape(g, (*g.shape, *(1,) * self.rank))
        h = -g * (like if w is None else w)
        zeros = full(g, shape, 0, kinds[0])
        i = self.targets(t)
        if len(shape) == 2 and self.rank == 1:
            rows = iota(t, shape[0], _INT64)
            return place(zeros, h, (SLOT, SLOT), rows, i), None, None
        return scatter(zeros, self.axis, self.column(i), self.column(h)), None, None

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
    node = "NllLoss2DBackward0"

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduction in (NONE, MEAN, SUM):
            x, t = draw.real(2, 3, 4), draw.ints(0, 3, 2, 4)
            yield NllLoss2d(reduction, 2, -2, -100, False), x, t, None
            yield NllLoss2d(reduction, 2, -2, 1, True), x, t, None
