"""Losses with margins between classes; and those of margins and distances that the user chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented, refuse_grad
from rushlight.ops.nn.gelu import logsigmoid
from rushlight.ops.nn.loss import MEAN, NONE, REDUCTIONS, SUM, reduce_loss, reduction_enum
from rushlight.ops.numbers import Number
from rushlight.ops.registry import functional, functions, op, shared_op
from rushlight.ops.sample_inputs import Draw

_INT64: Final = dtypes.int64.numpy


class ClassMargin(Op):
    """A loss of rows of scores (..., classes): give `slopes`, the derivative of each row's loss by
    each score, and `rows`, the losses themselves. `rank` is that of the rows (0 or 1)."""

    params: ClassVar[tuple[str, ...]] = ("reduction", "rank")
    reduction: int
    rank: int

    def combine(self, y: Any) -> Any:
        """The losses of all rows, reduced."""
        if self.reduction == NONE or (self.rank == 0 and self.reduction):
            return y
        out = v.reduce_sum(y, (-1,), False)
        return out / y.shape[-1] if self.reduction == MEAN else out

    def spread(self, g: Any, x: Any) -> Any:
        """The gradient of each row's loss, with an axis for the classes."""
        if self.reduction == NONE or self.rank == 0:
            return v.window(g, (..., None))
        if self.reduction == MEAN:
            g = g / x.shape[-2]
        return v.window(g, (..., None, None))

    def forward(self, x: Any, t: Any, *others: Any) -> Any:
        rule: Any = self
        return self.combine(rule.rows(x, t, *others))

    def vjp(self, node: Node, g: Any, x: Any, t: Any, *others: Any) -> Any:
        rule: Any = self
        gx = self.spread(g, x) * rule.slopes(x, t, *others)
        return (gx, None, *[None for _ in others])

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        return self.combine(v.reduce_sum(rule.slopes(*xs) * ts[0], (-1,), False))


@op
class MultiMarginLoss(ClassMargin):
    """The mean over classes j, the target's y left out, of max(0, margin - x[y] + x[j])**p, times
    the target's weight."""

    name = "multi_margin_loss"
    shown_edges = (0,)
    inputs = ("self", "target", "weight")
    saves = ("self", "target", "weight")
    saved_names = "reduction p margin"
    params = ("reduction", "rank", "p", "margin")
    p: int
    margin: float

    def hits(self, x: Any, t: Any) -> Any:
        return v.equal(v.window(t, (..., None)), v.iota(t, x.shape[-1], _INT64))

    def gaps(self, x: Any, t: Any) -> Any:
        """By how much each other class is too near to the target's, or above it."""
        own = v.gather(x, -1, v.window(t, (..., None)))
        return v.where(self.hits(x, t), 0, v.maximum(self.margin - own + x, 0))

    def scale(self, y: Any, t: Any, w: Any, n: int) -> Any:
        return y / n if w is None else y * (v.pick(w, (v.SLOT,), t) / n)

    def rows(self, x: Any, t: Any, w: Any) -> Any:
        z = self.gaps(x, t)
        y = v.reduce_sum(z if self.p == 1 else z * z, (-1,), False)
        return self.scale(y, t, w, x.shape[-1])

    def slopes(self, x: Any, t: Any, w: Any) -> Any:
        z = self.gaps(x, t)
        s = v.where(z > 0, 1, z * 0) if self.p == 1 else 2 * z
        s = v.where(self.hits(x, t), -v.reduce_sum(s, (-1,), True), s)
        column = None if w is None else v.window(t, (..., None))
        return self.scale(s, column, w, x.shape[-1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for how in (NONE, MEAN, SUM):
            x, t = draw.real(4, 3), draw.ints(0, 3, 4)
            yield MultiMarginLoss(how, 1, 1, 1.0), x, t, None
            yield MultiMarginLoss(how, 1, 2, 0.7), x, t, None
            yield MultiMarginLoss(how, 0, 2, 1.0), draw.real(3), draw.ints(0, 3), None


@functional()
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, margin - score of the target + score)**p, averaged over the other classes, and then
    over the examples.

    Args:
        target: the class of each example.
        p: 1 or 2.
        weight: what each class counts.

    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.5, 0.]]), torch.tensor([0]))
    tensor(0.2500)
    """
    how = reduction_enum(reduction, size_average, reduce)
    x = check_tensor(input, "multi_margin_loss")
    t = check_tensor(target, "multi_margin_loss", "target", 2)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight._array.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if x.ndim > 2 or 0 in x.shape[-1:]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(x.shape)}"
        )
    rows, classes = x.shape if x.ndim == 2 else (1, x.size)
    if t.ndim > 1 or t.size != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{rows}], but got {list(t.shape)}. Input "
            f"has shape {list(x.shape)}."
        )
    if weight is not None and weight._array.size != classes:
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight._array.shape)}"
        )
    _check_kinds("multi_margin_loss_cpu_kernel", x, t)
    refuse_grad("multi_margin_loss", weight=weight)
    if _outside(t, 0, classes):
        raise RuntimeError("target out of range")
    if x.ndim == 0:
        input = input.reshape(1)
    rank = 0 if x.ndim < 2 and t.ndim == 0 else 1
    if x.ndim < 2 and t.ndim == 1:  # one example, its class in a list
        if how == NONE:
            input = input.unsqueeze(0)
        else:
            rank, target = 0, target.reshape(())
    return apply(shared_op(MultiMarginLoss, how, rank, p, margin), input, target, weight)


def _check_kinds(kernel: str, x: Any, t: Any) -> None:
    kind = dtypes.of(x.dtype)
    if not kind.is_floating_point or v.low_precision(x.dtype):
        raise not_implemented(kernel, kind)
    if t.dtype != _INT64:
        found = dtypes.of(t.dtype).scalar_type
        raise RuntimeError(f"expected scalar type Long but found {found}")


def _outside(t: Any, low: int, high: int) -> bool:
    """Whether some target is no class; False where values cannot be read."""
    known = bottom(t)
    return has_values(known) and known.size > 0 and bool(((known < low) | (known >= high)).any())


@op
class MultilabelMarginLoss(ClassMargin):
    """The sum over each target y and each class i that is none, of max(0, 1 - x[y] + x[i]), divided
    by the number of classes. The targets of a row end at the first -1."""

    name = "multilabel_margin_loss"
    shown_edges = (0,)
    inputs = ("self", "target")
    saves = ("self", "target")
    saved_names = "reduction"

    def gaps(self, x: Any, t: Any) -> Any:
        """(..., target, class): by how much a class is too near to a target, or above it."""
        real = v.cumprod(v.cast(t >= 0, _INT64), -1) > 0
        t = v.where(real, t, 0)
        hits = v.equal(v.window(t, (..., None)), v.iota(t, x.shape[-1], _INT64))
        hits = v.logical_and(hits, v.window(real, (..., None)))
        counts = v.logical_and(
            v.window(real, (..., None)),
            v.logical_not(v.reduce_any(hits, (-2,), True)),
        )
        own = v.window(v.gather(x, -1, t), (..., None))
        others = v.window(x, (..., None, slice(None)))
        return v.where(counts, v.maximum(1 - own + others, 0), 0), t

    def rows(self, x: Any, t: Any) -> Any:
        return v.reduce_sum(self.gaps(x, t)[0], (-2, -1), False) / x.shape[-1]

    def slopes(self, x: Any, t: Any) -> Any:
        z, t = self.gaps(x, t)
        s = v.where(z > 0, 1, z * 0) / x.shape[-1]
        back = v.ungather(v.reduce_sum(s, (-1,), False), x.shape, -1, t)
        return v.reduce_sum(s, (-2,), False) - back

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for how in (NONE, MEAN, SUM):
            yield MultilabelMarginLoss(how, 1), draw.real(4, 3), draw.ints(-1, 3, 4, 3)
            yield MultilabelMarginLoss(how, 0), draw.real(3), draw.ints(-1, 3, 3)


@functional()
def multilabel_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, 1 - score of a target + score of another class), summed over all pairs of these,
    divided by the number of classes, averaged over the examples.

    Args:
        target: the classes of each example, as many as there are; then -1, and anything.

    >>> x, y = torch.tensor([[0.5, 0.]]), torch.tensor([[0, -1]])
    >>> torch.nn.functional.multilabel_margin_loss(x, y)
    tensor(0.2500)
    """
    how = reduction_enum(reduction, size_average, reduce)
    x = check_tensor(input, "multilabel_margin_loss")
    t = check_tensor(target, "multilabel_margin_loss", "target", 2)
    if x.ndim > 2 or 0 in x.shape[-1:]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(x.shape)}"
        )
    if x.shape != t.shape and not (x.size == t.size == 1 and x.ndim < 2 and t.ndim < 2):
        raise RuntimeError(
            f"inconsistent target size: {list(t.shape)} for input of size: {list(x.shape)}"
        )
    _check_kinds("multilabel_margin_loss_forward_out_frame", x, t)
    classes = x.shape[-1] if x.ndim else 1
    if _outside(t, -1, classes):
        raise RuntimeError("argument #2 'target' is out of range")
    if x.ndim == 0 or t.ndim == 0:
        input, target = input.reshape(1), target.reshape(1)
    rank = 1 if x.ndim == 2 else 0
    return apply(shared_op(MultilabelMarginLoss, how, rank), input, target)


@functional()
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Binary cross entropy of sigmoid(input) and target, averaged over the classes, and then over
    the examples.

    Args:
        target: 1 for each class that an example is of, else 0.

    >>> F = torch.nn.functional
    >>> F.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.tensor([[1., 0.]]))
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = ("none", "mean", "sum")[reduction_enum(reduction, size_average, reduce)]
    check_tensor(input, "multilabel_soft_margin_loss")
    check_tensor(target, "multilabel_soft_margin_loss", "target", 2)
    y = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        y = y * weight
    y = y.sum(-1) / input._array.shape[-1]
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    return reduce_loss(y, REDUCTIONS[reduction])


@functional()
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *,
    distance_function: Callable[..., Any] | None = None, margin: Number = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, distance to the positive - distance to the negative + margin), averaged; the distance
    is given by a function of two tensors.

    Args:
        distance_function: a function of two tensors; by default `pairwise_distance`.
        swap: take the distance from positive to negative where that is the smaller.

    >>> x = torch.zeros(1, 2)
    >>> far = lambda a, b: (a - b).abs().sum(1)
    >>> torch.nn.functional.triplet_margin_with_distance_loss(x, x, x, distance_function=far)
    tensor(1.)
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ranks = [t._array.ndim for t in (anchor, positive, negative)]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {ranks[0]}D, positive {ranks[1]}D, and negative "
            f"{ranks[2]}D inputs"
        )
    distance = functions["pairwise_distance"] if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = functions["minimum"](far, distance(positive, negative))
    return reduce_loss((margin + near - far).clamp_min(0), REDUCTIONS[reduction])
