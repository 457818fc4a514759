"""Losses of two classes: binary cross entropy, of probabilities and of logits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import dtypes
from rushlight.arrays.host import has_values
from rushlight.arrays.kernels import bound, expression_of, if_within
from rushlight.arrays.vocabulary import log, log1p, maximum, special
from rushlight.core.elementwise import result_dtype
from rushlight.core.families import is_complex
from rushlight.core.record import apply
from rushlight.ops.checks import not_implemented, refuse_grad
from rushlight.ops.nn.loss import MEAN, NONE, SUM, TwoSided, reduction_enum
from rushlight.ops.registry import functional, op, shared_op
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.view.expand import broadcast_shape
from rushlight.size import Size


def _weigh(y: Any, w: Any) -> Any:
    return y if w is None else y * w


def _expand_weight(weight: Any, input: Any) -> Any:
    """A weight in the shape of the input."""
    if weight is None or weight._array.shape == input._array.shape:
        return weight
    return weight.expand(broadcast_shape(weight._array.shape, input._array.shape))


@op
class BinaryCrossEntropy(TwoSided):
    """-(target * log(x) + (1 - target) * log(1 - x)), no logarithm below -100."""

    name = "binary_cross_entropy"
    saved_names = "reduction"
    shown_edges = (0, 1)
    inputs = ("self", "target", "weight")
    saves = ("self", "target", "weight")
    lies = "input"

    def mover(self, rule: str) -> Any:
        kernel = expression_of(self, rule)
        if kernel is None or rule != "forward":
            return kernel
        return bound(if_within, kernel, 0.0, 1.0)  # where it is not, `forward` tells of it

    def forward(self, x: Any, t: Any, w: Any) -> Any:
        if has_values(x) and not bool(((x >= 0) & (x <= 1)).all()):
            raise RuntimeError(
                "all elements of input should be between 0 and 1\n"
                "It takes probabilities: apply `sigmoid`, or give scores to "
                "`binary_cross_entropy_with_logits`."
            )
        return super().forward(x, t, w)

    def each(self, x: Any, t: Any, w: Any) -> Any:
        yes, no = maximum(log(x), -100), maximum(log1p(-x), -100)
        return _weigh((t - 1) * no - t * yes, w)

    def partial(self, i: int, x: Any, t: Any, w: Any) -> Any:
        if i == 0:
            return _weigh((x - t) / maximum(x * (1 - x), 1e-12), w)
        if i == 1:
            return _weigh(maximum(log1p(-x), -100) - maximum(log(x), -100), w)
        return self.each(x, t, None)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for reduction in (NONE, MEAN, SUM):
            p = draw.probability
            yield BinaryCrossEntropy(reduction, 2), p(2, 3), p(2, 3), None
            yield BinaryCrossEntropy(reduction, 2), p(2, 3), p(2, 3), draw.positive(2, 3)


@functional(settles=True)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """-(target * log(input) + (1 - target) * log(1 - input)), averaged; no logarithm counts below
    -100.

    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.]))
    tensor(0.6931)
    """
    how = reduction_enum(reduction, size_average, reduce)
    x, t = input._array, target._array
    if x.shape != t.shape:
        raise ValueError(
            f"Using a target size ({Size(t.shape)}) that is different to the input size "
            f"({Size(x.shape)}) is deprecated. Please ensure they have the same size."
        )
    if x.dtype != t.dtype:
        have, want = dtypes.of(t.dtype).scalar_type, dtypes.of(x.dtype).scalar_type
        raise RuntimeError(
            f"Found dtype {have} but expected {want}\n"
            "The target must be of the input's dtype: `target.to(input.dtype)`."
        )
    kind = dtypes.of(x.dtype)
    if not kind.is_floating_point:
        raise not_implemented("binary_cross_entropy", kind)
    refuse_grad("binary_cross_entropy", weight=weight)
    return apply(
        shared_op(BinaryCrossEntropy, how, x.ndim), input, target, _expand_weight(weight, input)
    )


@op
class BinaryCrossEntropyWithLogits(TwoSided):
    """Binary cross entropy of sigmoid(x), from x; `pos_weight` multiplies the share of target 1."""

    name = "binary_cross_entropy_with_logits"
    saved_names = "reduction"
    shown_edges = (0, 1)
    inputs = ("self", "target", "weight", "pos_weight")
    saves = ("self", "target", "weight", "pos_weight")
    leads = (1,)

    def each(self, x: Any, t: Any, w: Any, p: Any) -> Any:
        yes = special(x, "log_expit")
        if p is not None:
            yes = yes * ((p - 1) * t + 1)
        return _weigh((1 - t) * x - yes, w)

    def partial(self, i: int, x: Any, t: Any, w: Any, p: Any) -> Any:
        if i == 0:
            s = special(x, "expit")
            return _weigh(s - t if p is None else (p * t + 1 - t) * s - p * t, w)
        if i == 1:
            return _weigh(-x if p is None else -x - (p - 1) * special(x, "log_expit"), w)
        if i == 2:
            return self.each(x, t, None, p)
        return _weigh(-t * special(x, "log_expit"), w)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        cls = BinaryCrossEntropyWithLogits
        for reduction in (NONE, MEAN, SUM):
            x, t = draw.real(2, 3), draw.probability(2, 3)
            yield cls(reduction, 2), x, t, None, None
            yield cls(reduction, 2), x, t, draw.positive(2, 3), draw.positive(2, 3)


@functional(settles=True)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """`binary_cross_entropy` of sigmoid(input), computed from the input itself.

    >>> F = torch.nn.functional
    >>> F.binary_cross_entropy_with_logits(torch.tensor([0., 1000.]), torch.tensor([1., 1.]))
    tensor(0.3466)
    """
    how = reduction_enum(reduction, size_average, reduce)
    x, t = input._array, target._array
    if x.shape != t.shape:
        raise ValueError(
            f"Target size ({Size(t.shape)}) must be the same as input size ({Size(x.shape)})\n"
            "If one has a dimension of size 1 more: `x.squeeze(1)`, or `target.unsqueeze(1)`."
        )
    if is_complex(input):
        raise not_implemented("log_sigmoid_cpu", dtypes.of(x.dtype))
    for each in (input, target):
        kind = dtypes.of(each._array.dtype)
        if not kind.is_floating_point:
            raise RuntimeError(
                f"result type Float can't be cast to the desired output type {kind.scalar_type}"
            )
    if x.dtype != t.dtype:
        common = result_dtype((input, target))
        input, target = input.to(common), target.to(common)
    refuse_grad("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    what = shared_op(BinaryCrossEntropyWithLogits, how, x.ndim)
    return apply(
        what, input, target, _expand_weight(weight, input), _expand_weight(pos_weight, input)
    )
