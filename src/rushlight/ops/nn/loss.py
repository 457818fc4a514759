"""What the files of losses share: their bases, reductions, checks of arguments.

Every loss reduces as its last step: by 0 not at all, by 1 to the mean, by 2 to the sum (PyTorch's
numbers, which its nodes show).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays.vocabulary import cast, low_precision, reduce_sum, reshape
from rushlight.core.elementwise import result_dtype
from rushlight.core.graph import Node, Op
from rushlight.ops.checks import not_implemented
from rushlight.ops.each_member import align_members
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.view.expand import broadcast_shape
from rushlight.ops.warned import warn_caller

NONE, MEAN, SUM = 0, 1, 2
REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}
_FLOAT32: Final = dtypes.float32.numpy


# --- ops ------------------------------------------------------------------------------------------
class Loss(Op):
    """A loss of inputs of one shape with `rank` dimensions: `each` gives it element by element."""

    inputs: ClassVar[tuple[str, ...]] = ("self", "target")
    saves: ClassVar[tuple[str, ...]] = ("self", "target")
    params: ClassVar[tuple[str, ...]] = ("reduction", "rank")
    reduction: int
    rank: int
    lies = "operands"

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(-self.rank, 0))

    def count(self, x: Any) -> int:
        return math.prod([x.shape[d] for d in self.axes])

    def apply_reduction(self, y: Any) -> Any:
        if self.reduction == NONE:
            return y
        out = reduce_sum(y, self.axes, False)
        return out / self.count(y) if self.reduction == MEAN else out

    def spread(self, g: Any, x: Any) -> Any:
        """The gradient of each element, from that of what they were reduced to."""
        if self.reduction == NONE:
            return g
        if self.reduction == MEAN:
            g = g / self.count(x)
        return reshape(g, (*g.shape, *(1,) * self.rank)) if g.ndim else g

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return align_members(self, xs, flags, size) if self.rank else None

    def forward(self, *xs: Any) -> Any:
        rule: Any = self
        dtype = xs[0].dtype
        if low_precision(dtype):
            wide = [None if x is None else cast(x, _FLOAT32) for x in xs]
            return cast(self.apply_reduction(rule.each(*wide)), dtype)
        return self.apply_reduction(rule.each(*xs))


class DifferenceLoss(Loss):
    """A loss of d = self - target: give `each` of d, and its derivative `slope`."""

    def forward(self, x: Any, target: Any) -> Any:
        rule: Any = self
        dtype = x.dtype
        if low_precision(dtype):
            d = cast(x, _FLOAT32) - cast(target, _FLOAT32)
            return cast(self.apply_reduction(rule.each(d)), dtype)
        return self.apply_reduction(rule.each(x - target))

    def vjp(self, node: Node, g: Any, x: Any, target: Any) -> Any:
        rule: Any = self
        s = self.spread(g, x) * rule.slope(x - target)
        return (s if node._needs_grad(0) else None), (-s if node._needs_grad(1) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        if ts[1] is None:
            t = ts[0]
        elif ts[0] is None:
            t = -ts[1]
        else:
            t = ts[0] - ts[1]
        return self.apply_reduction(rule.slope(xs[0] - xs[1]) * t)


class TwoSided(Loss):
    """A loss of inputs that do not come as a difference: give `each`, and `partial(i, ...)`, its
    derivative by input i."""

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        rule: Any = self
        h = self.spread(g, saved[0])
        return tuple(
            h * rule.partial(i, *saved) if node._needs_grad(i) else None for i in range(len(saved))
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        out = xs[0] * 0
        for i in range(len(ts)):
            if ts[i] is not None:
                out = out + ts[i] * rule.partial(i, *xs)
        return self.apply_reduction(out)


def sample_pairs(cls: Any, draw: Draw, *more: Any) -> Iterator[tuple[Any, ...]]:
    for reduction in (NONE, MEAN, SUM):
        yield cls(reduction, 2, *more), draw.real(2, 3), draw.real(2, 3)
    yield cls(MEAN, 0, *more), draw.real(), draw.real()
    yield cls(SUM, 2, *more), draw.real(0, 2), draw.real(0, 2)


# --- arguments ------------------------------------------------------------------------------------
def reduction_enum(
    reduction: str, size_average: bool | None, reduce: bool | None, level: int = 3
) -> int:
    """The reduction as a number, from the present argument or the two it replaced."""
    if size_average is not None or reduce is not None:
        averages, reduces = size_average is not False, reduce is not False
        reduction = ("mean" if averages else "sum") if reduces else "none"
        warn_caller(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
        )
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return REDUCTIONS[reduction]


def broadcast_pair(input: Any, target: Any, kernel: str) -> tuple[Any, Any]:
    """Input and target in one shape and dtype."""
    a, b = input._array, target._array
    if a.shape != b.shape:
        shape = broadcast_shape(a.shape, b.shape)
        input, target = input.expand(shape), target.expand(shape)
    if a.dtype != b.dtype:
        common = result_dtype((input, target))
        input, target = input.to(common), target.to(common)
    kind = dtypes.of(input._array.dtype)
    if not kind.is_floating_point:
        raise not_implemented(kernel, kind)
    return input, target


# --- losses made of other functions ---------------------------------------------------------------
def reduce_loss(y: Any, how: int) -> Any:
    """A loss made of other functions, reduced."""
    if how == NONE:
        return y
    return y.mean() if how == MEAN else y.sum()
