"""Activation functions, element by element: the ops. Their public names stand in `activation_api`.

Where a derivative is a choice between cases, the rule chooses with `where` and does not multiply by
0 or 1: an infinite gradient is then let through or stopped, as in PyTorch, and never becomes NaN.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays.vocabulary import exp, expm1, maximum, minimum, special, tanh, where
from rushlight.core.families import Elementwise, is_complex
from rushlight.core.graph import Node
from rushlight.ops.special import by_name
from rushlight.ops.table import op

__all__ = [
    "Activation", "Celu", "Elu", "Gelu", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyRelu", "LogSigmoid", "Mish", "Piecewise", "PreluKernel", "Relu", "RreluEval",
    "RreluWithNoise", "Silu", "Softplus", "Softshrink", "Threshold",
]  # fmt: skip


class Activation(Elementwise):
    """An activation; `kernel` is what PyTorch calls it when it refuses a dtype ("" takes all)."""

    kernel: ClassVar[str] = ""

    def check(self, common: Any) -> None:
        if self.kernel and not common.is_floating_point:
            if common.is_complex and self.complex_too:
                return
            kind = common.scalar_type
            raise NotImplementedError(f"\"{self.kernel}\" not implemented for '{kind}'")


class Piecewise(Activation):
    """An activation whose derivative is a choice: `through(g, *saved)` is what it makes of a
    gradient, and of a tangent alike."""

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        rule: Any = self
        return (rule.through(g, *saved),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        saved = [xs[s] if s >= 0 else y for s in self.plan.sources]
        return rule.through(ts[0], *saved)


@op
class Relu(Piecewise):
    name = "relu"
    saves = ("result",)

    def check(self, common: Any) -> None:
        if common is dtypes.bool_:
            raise RuntimeError("Boolean inputs not supported for relu")

    def forward(self, x: Any) -> Any:
        return maximum(x, 0)

    def through(self, g: Any, y: Any) -> Any:
        return where(y <= 0, 0, g)


@op
class Hardtanh(Piecewise):
    """Clamp to [min_val, max_val]; the gradient is 0 at the ends too."""

    name = "hardtanh"
    saves = ("self",)
    params = ("min_val", "max_val")

    def __init__(self, min_val: Any = -1.0, max_val: Any = 1.0) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val

    def check(self, common: Any) -> None:
        if common is dtypes.bool_:
            raise RuntimeError("Bool inputs not supported for hardtanh")

    def forward(self, x: Any) -> Any:
        return minimum(maximum(x, self.min_val), self.max_val)

    def through(self, g: Any, x: Any) -> Any:
        return where((x <= self.min_val) | (x >= self.max_val), 0, g)


@op
class LeakyRelu(Piecewise):
    name = "leaky_relu"
    kernel = "leaky_relu_cpu"
    saves = ("self",)
    params = ("negative_slope",)

    def __init__(self, negative_slope: Any = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        return where(x > 0, x, x * self.negative_slope)

    def through(self, g: Any, x: Any) -> Any:
        return where(x > 0, g, g * self.negative_slope)


@op
class Elu(Piecewise):
    """scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below."""

    name = "elu"
    kernel = "elu_cpu"
    saves = ("self",)
    params = ("alpha", "scale", "input_scale")

    def __init__(self, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> None:
        super().__init__()
        self.alpha = alpha
        self.scale = scale
        self.input_scale = input_scale

    def forward(self, x: Any) -> Any:
        below = expm1(minimum(x, 0) * self.input_scale) * (self.alpha * self.scale)
        return where(x <= 0, below, x * self.scale)

    def through(self, g: Any, x: Any) -> Any:
        # exp of the negative part only: above 0 it could overflow, and 0 times infinity is NaN
        steep = exp(minimum(x, 0) * self.input_scale)
        below = g * steep * (self.alpha * self.scale * self.input_scale)
        return where(x <= 0, below, g * self.scale)


@op
class Celu(Piecewise):
    """x above 0, alpha * (exp(x / alpha) - 1) below."""

    name = "celu"
    kernel = "elu_cpu"
    saves = ("self",)
    params = ("alpha",)

    def __init__(self, alpha: Any = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return where(x <= 0, expm1(minimum(x, 0) / self.alpha) * self.alpha, x)

    def through(self, g: Any, x: Any) -> Any:
        return where(x <= 0, g * exp(minimum(x, 0) / self.alpha), g)


@op
class Gelu(Activation):
    """x times the normal distribution function of x (or its tanh approximation)."""

    name = "gelu"
    kernel = "GeluKernelImpl"
    saves = ("self",)
    params = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Any) -> Any:
        if self.approximate == "tanh":
            return 0.5 * x * (1 + tanh(self.inner(x)))
        return x * (0.5 + 0.5 * special(x * math.sqrt(0.5), "erf"))

    def inner(self, x: Any) -> Any:
        return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)

    def partials(self, x: Any) -> Any:
        if self.approximate == "tanh":
            t = tanh(self.inner(x))
            slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
            return (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope,)
        density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return (0.5 + 0.5 * special(x * math.sqrt(0.5), "erf") + x * density,)


@op
class Silu(Activation):
    """x * sigmoid(x)."""

    name = "silu"
    kernel = "silu_cpu"
    saves = ("self",)
    complex_too = True

    def forward(self, x: Any) -> Any:
        return x * self.sigmoid(x)

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + exp(-x)) if is_complex(x) else special(x, "expit")

    def partials(self, x: Any) -> Any:
        s = self.sigmoid(x)
        return (s * (1 + x * (1 - s)),)


@op
class Mish(Activation):
    """x * tanh(softplus(x))."""

    name = "mish"
    kernel = "mish_cpu"
    saves = ("self",)

    def forward(self, x: Any) -> Any:
        return x * tanh(-special(-x, "log_expit"))

    def partials(self, x: Any) -> Any:
        t = tanh(-special(-x, "log_expit"))
        return (t + x * special(x, "expit") * (1 - t * t),)


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


@op
class Softplus(Piecewise):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""

    name = "softplus"
    kernel = "softplus_cpu"
    saves = ("self",)
    params = ("beta", "threshold")

    def __init__(self, beta: Any = 1.0, threshold: Any = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Any) -> Any:
        z = x * self.beta
        return where(z > self.threshold, x, special(-z, "log_expit") / -self.beta)

    def through(self, g: Any, x: Any) -> Any:
        z = x * self.beta
        return where(z > self.threshold, g, g * special(z, "expit"))


@op
class LogSigmoid(Activation):
    """log(sigmoid(x))."""

    name = "log_sigmoid"
    kernel = "log_sigmoid_cpu"
    saves = ("self",)

    def forward(self, x: Any) -> Any:
        return special(x, "log_expit")

    def partials(self, x: Any) -> Any:
        return (special(-x, "expit"),)


by_name["log_expit"] = LogSigmoid()  # what rules write as special(x, "log_expit")


@op
class Softshrink(Piecewise):
    """x moved towards 0 by `lambd`, 0 if it would pass it."""

    name = "softshrink"
    kernel = "softshrink_check"
    saves = ("self",)
    params = ("lambd",)

    def __init__(self, lambd: Any = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, x: Any) -> Any:
        inside = where(x < -self.lambd, x + self.lambd, x * 0)
        return where(x > self.lambd, x - self.lambd, inside)

    def through(self, g: Any, x: Any) -> Any:
        return where((x >= -self.lambd) & (x <= self.lambd), 0, g)


@op
class Hardshrink(Piecewise):
    """x, but 0 within `lambd` of 0."""

    name = "hardshrink"
    kernel = "hardshrink_cpu"
    saves = ("self",)
    params = ("lambd",)

    def __init__(self, lambd: Any = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, x: Any) -> Any:
        return where((x >= -self.lambd) & (x <= self.lambd), 0, x)

    def through(self, g: Any, x: Any) -> Any:
        return where((x >= -self.lambd) & (x <= self.lambd), 0, g)


@op
class Threshold(Piecewise):
    """x above the threshold, `value` elsewhere."""

    name = "threshold"
    saves = ("self",)
    params = ("threshold", "value")

    def __init__(self, threshold: Any = 0.0, value: Any = 0.0) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value

    def check(self, common: Any) -> None:
        if common is dtypes.bool_:
            raise NotImplementedError("\"threshold_cpu\" not implemented for 'Bool'")

    def forward(self, x: Any) -> Any:
        return where(x <= self.threshold, self.value, x)

    def through(self, g: Any, x: Any) -> Any:
        return where(x <= self.threshold, 0, g)


@op
class PreluKernel(Activation):
    """x above 0, weight * x below; the weight is learned."""

    name = "prelu_kernel"
    kernel = "prelu_cpu"
    inputs = ("self", "weight")
    saves = ("self", "weight")
    reads: ClassVar = {0: ("self", "weight"), 1: ("self",)}

    def forward(self, x: Any, w: Any) -> Any:
        return where(x > 0, x, w * x)

    def vjp(self, node: Node, g: Any, x: Any, w: Any) -> Any:
        return (
            where(x > 0, g, w * g) if node.needs(0) else None,
            where(x > 0, 0, x * g) if node.needs(1) else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        (t, u), (x, w) = ts, xs
        if u is None:
            return where(x > 0, t, w * t)
        if t is None:
            return where(x > 0, 0, u * x)
        return where(x > 0, t, w * t + u * x)


@op
class RreluWithNoise(Activation):
    """x times `noise`, which was drawn: a random slope below 0, 1 above."""

    name = "rrelu_with_noise"
    kernel = "rrelu_with_noise_out_cpu"
    inputs = ("self", "noise")
    saves = ("self", "noise")
    reads: ClassVar = {0: ("noise",), 1: ("self",)}

    def forward(self, x: Any, noise: Any) -> Any:
        return x * noise

    def partials(self, x: Any, noise: Any) -> Any:
        return noise, x


@op
class RreluEval(LeakyRelu):
    """`rrelu` outside training: the slope below 0 is the mean of those it draws."""

    name = "rrelu_eval"
    node = "RreluWithNoiseBackward0"
