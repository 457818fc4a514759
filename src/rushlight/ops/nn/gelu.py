"""Activations made of exponentials: `elu` and its kin, `gelu`, `silu`, `softplus`, `logsigmoid`."""

from __future__ import annotations

import math
from typing import Any

from rushlight.arrays import fused
from rushlight.arrays.vocabulary import exp, expm1, minimum, special, tanh, where
from rushlight.core.families import is_complex
from rushlight.core.graph import Node
from rushlight.ops.nn.activation import Activation, Piecewise, act, export_activation, fit_bounds
from rushlight.ops.numbers import Number
from rushlight.ops.pointwise.special import by_name
from rushlight.ops.registry import function, functional, op, shared_op


# --- elu and its kin ------------------------------------------------------------------------------
@op
class Elu(Piecewise):
    """scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below."""

    name = "elu"
    kernel = "elu_cpu"
    saves = ("self",)
    params = ("alpha", "scale", "input_scale")
    alpha: Any = 1.0
    scale: Any = 1.0
    input_scale: Any = 1.0

    def forward(self, x: Any) -> Any:
        below = expm1(minimum(x, 0) * self.input_scale) * (self.alpha * self.scale)
        return where(x <= 0, below, x * self.scale)

    def through(self, g: Any, x: Any) -> Any:
        # exp of the negative part only: above 0 it could overflow, and 0 times infinity is NaN
        steep = exp(where(x < 0, x, 0) * self.input_scale)
        below = g * steep * (self.alpha * self.scale * self.input_scale)
        return where(x <= 0, below, g * self.scale)


SELU = Elu(1.6732632423543772, 1.0507009873554805, 1.0)


@functional(settles=True)
def elu(input: Any, alpha: Number = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha * (exp(x) - 1) below.

    >>> torch.nn.functional.elu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return act("elu", shared_op(Elu, *fit_bounds(input, alpha), 1.0, 1.0), input, inplace)


@functional()
def elu_(input: Any, alpha: Number = 1.0) -> Any:
    """In-place version of `elu`."""
    return act("elu_", shared_op(Elu, *fit_bounds(input, alpha), 1.0, 1.0), input, True)


@function(method=False, namespace="nn.functional")
def selu(input: Any, inplace: bool = False) -> Any:
    """`elu` scaled so that it keeps mean 0 and variance 1.

    >>> torch.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return act("selu", SELU, input, inplace)


@function(method=False, namespace="nn.functional")
def selu_(input: Any) -> Any:
    """In-place version of `selu`."""
    return act("selu_", SELU, input, True)


@op
class Celu(Piecewise):
    """x above 0, alpha * (exp(x / alpha) - 1) below."""

    name = "celu"
    kernel = "elu_cpu"
    saves = ("self",)
    params = ("alpha",)
    alpha: Any = 1.0

    def forward(self, x: Any) -> Any:
        return where(x <= 0, expm1(minimum(x, 0) / self.alpha) * self.alpha, x)

    def through(self, g: Any, x: Any) -> Any:
        return where(x <= 0, g * exp(where(x < 0, x, 0) / self.alpha), g)


@functional()
def celu(input: Any, alpha: Number = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> torch.nn.functional.celu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return act("celu", shared_op(Celu, *fit_bounds(input, alpha)), input, inplace)


@function(name="celu", method=False)
def _celu(input: Any, alpha: Number = 1.0) -> Any:
    """x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> torch.celu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return celu(input, alpha)


@function(method=False, namespace="nn.functional")
def celu_(input: Any, alpha: Number = 1.0) -> Any:
    """In-place version of `celu`."""
    return celu(input, alpha, True)


# --- x times a share of it ------------------------------------------------------------------------
@op
class Gelu(Activation):
    """x times the normal distribution function of x (or its tanh approximation)."""

    name = "gelu"
    kernel = "GeluKernelImpl"
    saves = ("self",)
    params = ("approximate",)
    approximate: str = "none"

    def forward(self, x: Any) -> Any:
        if self.approximate == "tanh":
            return 0.5 * x * (1 + tanh(self.inner(x)))
        quick = fused.gelu(x)
        if quick is not None:
            return quick
        return x * (0.5 + 0.5 * special(x * math.sqrt(0.5), "erf"))

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        if self.approximate == "none":
            quick = fused.gelu_back(g, x)
            if quick is not None:
                return (quick,)
        return super().vjp(node, g, x)

    def inner(self, x: Any) -> Any:
        return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)

    def partials(self, x: Any) -> Any:
        if self.approximate == "tanh":
            t = tanh(self.inner(x))
            slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
            return (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope,)
        density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return (0.5 + 0.5 * special(x * math.sqrt(0.5), "erf") + x * density,)


@functional(settles="rank")
def gelu(input: Any, *, approximate: str = "none") -> Any:
    """x times the probability that a standard normal variable is below x; with 'tanh', a near
    formula.

    >>> torch.nn.functional.gelu(torch.tensor([-1., 1.]))
    tensor([-0.1587,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return act("gelu", shared_op(Gelu, approximate), input)


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


export_activation(Silu, "x * sigmoid(x).", "-1., 1.", "tensor([-0.2689,  0.7311])")


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


export_activation(Mish, "x * tanh(softplus(x)).", "-1., 1.", "tensor([-0.3034,  0.8651])")


# --- sigmoids and their integrals -----------------------------------------------------------------
@op
class Softplus(Piecewise):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""

    name = "softplus"
    kernel = "softplus_cpu"
    saves = ("self",)
    params = ("beta", "threshold")
    beta: Any = 1.0
    threshold: Any = 20.0

    def forward(self, x: Any) -> Any:
        z = x * self.beta
        return where(z > self.threshold, x, -special(-z, "log_expit") / self.beta)

    def through(self, g: Any, x: Any) -> Any:
        z = x * self.beta
        return where(z > self.threshold, g, g * special(z, "expit"))


@functional(settles=True)
def softplus(input: Any, beta: Number = 1, threshold: Number = 20) -> Any:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    Args:
        beta: how sharp the bend is.
        threshold: where `input * beta` exceeds it the result is `input` itself.

    >>> torch.nn.functional.softplus(torch.tensor([-1., 0., 100.]))
    tensor([  0.3133,   0.6931, 100.0000])
    """
    return act("softplus", shared_op(Softplus, *fit_bounds(input, beta, threshold)), input)


@op
class LogSigmoid(Activation):
    """log(sigmoid(x))."""

    name = "log_sigmoid"
    aten = "log_sigmoid_forward.default"
    profile_name = "log_sigmoid"
    kernel = "log_sigmoid_cpu"
    saves = ("self",)
    lies = "rows"

    def forward(self, x: Any) -> Any:
        return special(x, "log_expit")

    def partials(self, x: Any) -> Any:
        return (special(-x, "expit"),)


by_name["log_expit"] = LogSigmoid()  # what rules write as special(x, "log_expit")


@functional(settles="rank")
def logsigmoid(input: Any) -> Any:
    """log(sigmoid(x)), exact where sigmoid(x) would round to 0.

    >>> torch.nn.functional.logsigmoid(torch.tensor([0., -1000.]))
    tensor([-6.9315e-01, -1.0000e+03])
    """
    return act("logsigmoid", shared_op(LogSigmoid), input)


@functional(settles="rank")
def softsign(input: Any) -> Any:
    """x / (1 + |x|).

    >>> torch.nn.functional.softsign(torch.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


@functional(name="sigmoid")
def _sigmoid(input: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> torch.nn.functional.sigmoid(torch.tensor([0.]))
    tensor([0.5000])
    """
    return input.sigmoid()


@functional(name="tanh")
def _tanh(input: Any) -> Any:
    """Hyperbolic tangent, element by element.

    >>> torch.nn.functional.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return input.tanh()
