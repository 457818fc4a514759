"""`pdist`: the distance between each two rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import asarray
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented
from rushlight.ops.reduction.vector_norm import CDist
from rushlight.ops.registry import function, op, shared_op
from rushlight.ops.sample_inputs import Draw

_BOOL: Final = dtypes.bool_.numpy
_INT64: Final = dtypes.int64.numpy


@op
class Pdist(Op):
    """The distances of order `p` between rows i < j, in the order of the pairs (i, j)."""

    name = "pdist"
    aten = "_pdist_forward.default"
    saves = ("self", "result")
    saved_names = "p"
    params = ("p",)
    lies = "rows"

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.distance = CDist(p)

    def pairs(self, x: Any) -> tuple[Any, Any]:
        """The first and the second row of each pair."""
        n = x.shape[-2]
        i, j = v.nonzero(v.triangle(v.full(asarray(0), (n, n), True, _BOOL), 1, False))
        return v.constant(x, i, _INT64), v.constant(x, j, _INT64)

    def differences(self, x: Any) -> Any:
        """The first row less the second, of each pair."""
        i, j = self.pairs(x)
        rows = (v.SLOT, slice(None))
        return v.pick(x, rows, i) - v.pick(x, rows, j)

    def forward(self, x: Any) -> Any:
        return self.distance.size(self.differences(x))

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        slope = self.distance.slope(self.differences(x), y)
        if slope is None:
            return (x * 0,)
        step = v.window(g, (..., None)) * slope
        i, j = self.pairs(x)
        rows = (v.SLOT, slice(None))
        shape = tuple(x.shape)
        return (v.unpick(step, shape, rows, i) - v.unpick(step, shape, rows, j),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        slope = self.distance.slope(self.differences(xs[0]), y)
        if slope is None:
            return y * 0
        return v.reduce_sum(self.differences(ts[0]) * slope, (-1,), False)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for p in (2.0, 1.0, 3.0, 0.5, math.inf):
            yield Pdist(p), draw.real(4, 2)
        yield Pdist(2.0), draw.real(1, 2)


@function(method=False, namespace="nn.functional")
def pdist(input: Any, p: float = 2) -> Any:
    """The distance between each two rows of a matrix: (0, 1), (0, 2), …, (1, 2), …

    Args:
        p: the order of the norm, 0 to infinity.

    >>> torch.pdist(torch.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    x = check_tensor(input, "pdist")
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    kind = dtypes.of(x.dtype)
    if not kind.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if v.low_precision(x.dtype):
        raise not_implemented("pdist", kind)
    return apply(shared_op(Pdist, float(p)), input)
