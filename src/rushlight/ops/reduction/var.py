"""Variance and standard deviation, alone or with the mean.

Built on the same parts as `reduce`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, mismatch, raw_dtype
from rushlight.ops.numbers import Number
from rushlight.ops.reduction.family import (
    Fold,
    axes_from_end,
    declare,
    dims_of,
    narrow,
    reduced_count,
    widen,
)
from rushlight.ops.reduction.sum import Sum
from rushlight.ops.registry import implements, op
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.warned import warn_caller

_PARTS: Final = {
    dtypes.complex32.numpy: dtypes.float16.numpy,
    dtypes.complex64.numpy: dtypes.float32.numpy,
    dtypes.complex128.numpy: dtypes.float64.numpy,
}


class Spread(Fold):
    """What the four share: the variance over `dims`, divided by their number - `correction`."""

    saves: ClassVar[tuple[str, ...]] = ("self",)
    params = ("dims", "keepdim", "correction")
    saved_names = "dim=dims* keepdim correction"

    def __init__(self, dims: tuple[int, ...] | None, keepdim: bool, correction: Any) -> None:
        super().__init__(dims, keepdim)
        self.correction = correction

    def average(self, x: Any, keep: bool) -> Any:
        n = reduced_count(x.shape, self.dims)
        y = v.reduce_sum(x, self.dims, keep)
        return y / n if n else y * math.nan

    def freedom(self, x: Any) -> Any:
        return reduced_count(x.shape, self.dims) - self.correction

    def variance(self, x: Any, root: bool) -> Any:
        """The variance or its root; a root may be in range where its square is not."""
        n = self.freedom(x)
        y = v.deviations(x, self.dims, self.keepdim)
        if n > 0:
            y = y / n
        else:
            # PyTorch divides by zero then; adding what comes out of that warns of nothing
            y = y + v.cast(v.where(v.equal(y, 0), math.nan, math.inf), raw_dtype(y))
        return v.cast(v.sqrt(y) if root else y, _PARTS.get(raw_dtype(x), raw_dtype(x)))

    def slope(self, x: Any) -> Any:
        """The derivative of the variance by each element."""
        n = self.freedom(x)
        d = x - self.average(x, True)
        if n > 0:
            return d * (2 / n)
        if self.dims is not None and not is_complex(d):  # as PyTorch has it, where dims are given
            if n:
                return d * (2 / n)
            side = v.cast(v.where(d > 0, math.inf, -math.inf), raw_dtype(d))
            return v.where(v.equal(d, 0), math.nan, side)
        # real: what a complex infinity is multiplied with becomes NaN in both parts
        d = v.real(d * conj(d)) if is_complex(d) else d
        return v.cast(v.where(v.equal(d, 0), math.nan, math.inf), raw_dtype(d))

    def variance_tangent(self, t: Any, x: Any) -> Any:
        """How the variance moves when `x` moves along `t`."""
        p = conj(self.slope(x)) * t
        return v.reduce_sum(v.real(p) if is_complex(p) else p, self.dims, self.keepdim)

    samples = drawn(
        real=[((-1,), False, 1, (2, 3)), (None, False, 0, (2, 3)), ((-2,), True, 1, (3, 2))],
        complex=[((-1,), False, 1, (2, 3)), ((-1,), True, 1, (2, 3))],
    )


def _root_slope(y: Any) -> Any:
    """The derivative of the square root at its value `y`; 0 at 0, by convention."""
    none = v.equal(y, 0)
    return v.where(none, 0, 0.5 / v.where(none, 1, y))


@op
class Var(Spread):
    """The variance over `dims`."""

    name = "var"
    aten = "var.correction"

    def forward(self, x: Any) -> Any:
        return self.variance(x, False)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (self.back(g, x.shape) * self.slope(x),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.variance_tangent(ts[0], xs[0])


@op
class Std(Spread):
    """The standard deviation over `dims`."""

    name, saves = "std", ("self", "result")
    aten = "std.correction"

    def forward(self, x: Any) -> Any:
        return self.variance(x, True)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        return (self.back(g * _root_slope(y), x.shape) * self.slope(x),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.variance_tangent(ts[0], xs[0]) * _root_slope(y)


@op
class VarMean(Spread):
    """Variance and mean over `dims`."""

    name, outputs = "var_mean", ("result0", "result1")
    aten = "var_mean.correction"

    def forward(self, x: Any) -> Any:
        return self.variance(x, False), narrow(self.average(widen(x), self.keepdim), x)

    def from_mean(self, g: Any, x: Any) -> Any:
        return self.back(g, x.shape) / max(reduced_count(x.shape, self.dims), 1)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (self.back(g[0], x.shape) * self.slope(x) + self.from_mean(g[1], x),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.variance_tangent(ts[0], xs[0]), self.average(ts[0], self.keepdim)


@op
class StdMean(VarMean):
    """Standard deviation and mean over `dims`."""

    name, saves = "std_mean", ("self", "result0")
    aten = "std_mean.correction"

    def forward(self, x: Any) -> Any:
        return self.variance(x, True), narrow(self.average(widen(x), self.keepdim), x)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:  # type: ignore[override]  # it saves more
        first = self.back(g[0] * _root_slope(y), x.shape) * self.slope(x)
        return (first + self.from_mean(g[1], x),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.variance_tangent(ts[0], xs[0]) * _root_slope(y[0]), self.average(
            ts[0], self.keepdim
        )


@implements("deviations")
def _deviations(x: Any, axes: Any, keep: bool) -> Any:
    what = Var(axes_from_end(axes, x._array.ndim), keep, 0)
    n = reduced_count(x._array.shape, what.dims)
    wide = x.to(dtypes.complex128 if x._array.dtype.kind == "c" else dtypes.float64)
    return apply(what, wide) * float(n) if n else apply(Sum(what.dims, keep), wide.real)


def _declare_spread(cls: Any, text: str, example: str, gives: str) -> None:
    """The function of `var` and its like, in PyTorch's three forms: `(unbiased)`, `(dim, unbiased,
    keepdim)`, and by name."""
    name = cls.name
    two = len(cls.outputs) == 2

    def fn(
        input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: Number | None = None,
    ) -> Any:  # fmt: skip
        array = check_tensor(input, name)
        have = dtypes.of(array.dtype)
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is not None and unbiased is not None:
            raise mismatch(name, input, correction=correction, unbiased=unbiased)
        if not (have.is_floating_point or have.is_complex):
            what = name if two else "std and var"
            raise RuntimeError(f"{what} only support floating point and complex dtypes")
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        made = cls(dims_of(name, dim, array.ndim), keepdim, correction)
        out_size = reduced_count(array.shape, None) // max(reduced_count(array.shape, made.dims), 1)
        if out_size and made.freedom(array) <= 0:
            warn_caller(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than "
                "the reduction factor (input numel divided by output numel).",
            )
        return apply(made, input) if two else (made, (input,))

    result = "tuple[Tensor, Tensor]" if two else "Tensor"
    declare(fn, name, text, example, gives, out=not two, method=not two, returns=result)


_declare_spread(
    Var, "The variance; the sum of squares is divided by the number of elements less `correction`.",
    "torch.var(torch.tensor([1., 2., 3., 4.]))", "tensor(1.6667)",
)  # fmt: skip
_declare_spread(
    Std, "The standard deviation, the square root of `var`.",
    "torch.std(torch.tensor([1., 2., 3., 4.]), correction=0)", "tensor(1.1180)",
)  # fmt: skip
_declare_spread(
    VarMean, "The variance and the mean.",
    "torch.var_mean(torch.tensor([1., 2., 3.]))", "(tensor(1.), tensor(2.))",
)  # fmt: skip
_declare_spread(
    StdMean, "The standard deviation and the mean.",
    "torch.std_mean(torch.tensor([1., 2., 3.]))", "(tensor(1.), tensor(2.))",
)  # fmt: skip
