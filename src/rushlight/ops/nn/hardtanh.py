"""Activations of straight pieces with bounds or gaps: `hardtanh`, `hardsigmoid`, the shrinks."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays.vocabulary import cast, low_precision, maximum, minimum, where
from rushlight.core.elementwise import number_in
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import raw_dtype
from rushlight.ops.nn.activation import Piecewise, act, export_activation, fit_bounds
from rushlight.ops.numbers import Number
from rushlight.ops.registry import function, functional, op, shared_op


# --- held between bounds --------------------------------------------------------------------------
@op
class Hardtanh(Piecewise):
    """Clamp to [min_val, max_val]; the gradient is 0 at the ends too."""

    name = "hardtanh"
    saves = ("self",)
    params = ("min_val", "max_val")
    min_val: Any = -1.0
    max_val: Any = 1.0

    def check(self, common: Any) -> None:
        if common is dtypes.bool_:
            raise RuntimeError("Bool inputs not supported for hardtanh")
        if common.is_complex:
            raise NotImplementedError("clamp is not supported for complex types")
        if common.numpy.kind == "u" and (self.min_val < 0 or self.max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")

    def forward(self, x: Any) -> Any:
        return minimum(maximum(x, self.min_val), self.max_val)

    def through(self, g: Any, x: Any) -> Any:
        if low_precision(raw_dtype(x)):  # unlike `clamp`, PyTorch does not round the ends here
            x = cast(x, dtypes.float32.numpy)
        return where((x <= self.min_val) | (x >= self.max_val), 0, g)


@functional(settles=True)
def hardtanh(
    input: Any, min_val: Number = -1.0, max_val: Number = 1.0, inplace: bool = False
) -> Any:
    """x held between two values.

    >>> torch.nn.functional.hardtanh(torch.tensor([-2., 0.5]))
    tensor([-1.0000,  0.5000])
    """
    low, high = fit_bounds(input, min_val, max_val)
    if isinstance(input, TensorBase) and input._array.dtype.kind == "u" and (low < 0 or high < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return act("hardtanh", shared_op(Hardtanh, low, high), input, inplace)


@functional()
def hardtanh_(input: Any, min_val: Number = -1.0, max_val: Number = 1.0) -> Any:
    """In-place version of `hardtanh`."""
    return hardtanh(input, min_val, max_val, True)


@functional(settles="rank")
def relu6(input: Any, inplace: bool = False) -> Any:
    """min(max(0, x), 6), element by element.

    >>> torch.nn.functional.relu6(torch.tensor([-1., 2., 9.]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


@op
class Hardsigmoid(Piecewise):
    """x / 6 + 1/2, between 0 and 1."""

    name = "hardsigmoid"
    kernel = "hardsigmoid_cpu"
    saves = ("self",)

    def forward(self, x: Any) -> Any:
        return minimum(maximum(x + 3, 0), 6) / 6

    def through(self, g: Any, x: Any) -> Any:
        return where((x > -3) & (x < 3), g / 6, 0)


export_activation(
    Hardsigmoid, "x / 6 + 1/2, held between 0 and 1.", "-4., 0., 1.5",
    "tensor([0.0000, 0.5000, 0.7500])",
)  # fmt: skip


@op
class Hardswish(Piecewise):
    """x * hardsigmoid(x)."""

    name = "hardswish"
    kernel = "hardswish_cpu"
    saves = ("self",)

    def forward(self, x: Any) -> Any:
        return x * minimum(maximum(x + 3, 0), 6) / 6

    def through(self, g: Any, x: Any) -> Any:
        return where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g))


export_activation(
    Hardswish, "x * hardsigmoid(x).", "0., 1.5, 4.", "tensor([0.0000, 1.1250, 4.0000])"
)


@op
class Threshold(Piecewise):
    """x above the threshold, `value` elsewhere."""

    name = "threshold"
    saves = ("self",)
    params = ("threshold", "value")
    threshold: Any = 0.0
    value: Any = 0.0

    def check(self, common: Any) -> None:
        if common is dtypes.bool_ or common.is_complex:
            kind = common.scalar_type
            raise NotImplementedError(f"\"threshold_cpu\" not implemented for '{kind}'")

    def forward(self, x: Any) -> Any:
        return where(x <= self.threshold, self.value, x)

    def through(self, g: Any, x: Any) -> Any:
        return where(x <= self.threshold, 0, g)


@function(method=False, namespace="nn.functional")
def threshold(input: Any, threshold: Number, value: Number, inplace: bool = False) -> Any:
    """x above the threshold, `value` elsewhere.

    Args:
        threshold: what is not above it becomes `value`.
        value: what it becomes.

    >>> torch.nn.functional.threshold(torch.tensor([-1., 2.]), 0, -9)
    tensor([-9.,  2.])
    """
    return act(
        "threshold", shared_op(Threshold, *fit_bounds(input, threshold, value)), input, inplace
    )


@function(method=False, namespace="nn.functional")
def threshold_(input: Any, threshold: Number, value: Number) -> Any:
    """In-place version of `threshold`."""
    return act(
        "threshold_", shared_op(Threshold, *fit_bounds(input, threshold, value)), input, True
    )


# --- towards 0 ------------------------------------------------------------------------------------
class Shrink(Piecewise):
    """An activation that is 0 within `lambd` of 0, and of slope 1 elsewhere."""

    saves = ("self",)
    params = ("lambd",)
    lambd: Any = 0.5

    def through(self, g: Any, x: Any) -> Any:
        return where((x >= -self.lambd) & (x <= self.lambd), 0, g)


def _round_bound(input: Any, lambd: Any) -> Any:
    """`lambd` as an input of low precision holds it: that is what PyTorch compares with."""
    if isinstance(input, TensorBase) and low_precision(input._array.dtype):
        return number_in(lambd, dtypes.of(input._array.dtype))
    return lambd


@op
class Softshrink(Shrink):
    """x moved towards 0 by `lambd`, 0 if it would pass it."""

    name = "softshrink"
    kernel = "softshrink_check"

    def forward(self, x: Any) -> Any:
        inside = where(x < -self.lambd, x + self.lambd, x * 0)
        return where(x > self.lambd, x - self.lambd, inside)


@functional()
def softshrink(input: Any, lambd: Number = 0.5) -> Any:
    """x moved towards 0 by `lambd`, 0 if it would pass it.

    >>> torch.nn.functional.softshrink(torch.tensor([-1., 0.2, 2.]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if type(lambd) is complex:
        fit_bounds(input, lambd)
    if lambd < 0:
        kind = dtypes.of(input._array.dtype)
        top = dtypes.finfo(kind).max
        raise RuntimeError(
            f"lambda must be in range [0, {top:g}] for input dtype {kind.scalar_type}, but found "
            f"{lambd:g}"
        )
    return act(
        "softshrink", shared_op(Softshrink, *fit_bounds(input, _round_bound(input, lambd))), input
    )


@op
class Hardshrink(Shrink):
    """x, but 0 within `lambd` of 0."""

    name = "hardshrink"
    kernel = "hardshrink_cpu"

    def forward(self, x: Any) -> Any:
        return where((x >= -self.lambd) & (x <= self.lambd), 0, x)


@function(namespace="nn.functional")
def hardshrink(input: Any, lambd: Number = 0.5) -> Any:
    """x, but 0 within `lambd` of 0.

    >>> torch.nn.functional.hardshrink(torch.tensor([-1., 0.2, 2.]))
    tensor([-1.,  0.,  2.])
    """
    return act(
        "hardshrink", shared_op(Hardshrink, *fit_bounds(input, _round_bound(input, lambd))), input
    )


@functional(settles="rank")
def tanhshrink(input: Any) -> Any:
    """x - tanh(x).

    >>> torch.nn.functional.tanhshrink(torch.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()
