"""The public names of the activation functions; their ops stand in `activation`."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight import random as generators
from rushlight.arrays.host import from_host, to_host
from rushlight.arrays.vocabulary import SLOT, cast, full, place
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.record import slots, unary
from rushlight.ops.activation import (
    Celu,
    Elu,
    Gelu,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyRelu,
    LogSigmoid,
    Mish,
    PreluKernel,
    Relu,
    RreluEval,
    RreluWithNoise,
    Silu,
    Softplus,
    Softshrink,
    Threshold,
)  # fmt: skip
from rushlight.ops.arguments import expect_tensor
from rushlight.ops.contract import shared
from rushlight.ops.run import run_inplace
from rushlight.ops.table import function

__all__ = ["act"]

RELU, SELU = Relu(), Elu(1.6732632423543772, 1.0507009873554805, 1.0)


def act(title: str, what: Any, input: Any, inplace: bool = False) -> Any:
    """Apply an activation, into the input itself if `inplace`."""
    expect_tensor(input, title)
    return run_inplace(what, (input,)) if inplace else unary(what, input)


def fitted(input: Any, *bounds: Any) -> Any:
    """Bounds as the input's dtype holds them: whole numbers for integers."""
    whole = isinstance(input, TensorBase) and input.array.dtype.kind in "iu"
    return [int(b) for b in bounds] if whole else bounds


_F: Any = {"method": False, "free": False, "namespace": "nn.functional"}


@function()
def relu(input: Any) -> Any:
    """relu(input) -> Tensor

    max(0, x), element by element.

    >>> import rushlight as torch
    >>> torch.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return act("relu", RELU, input)


@function(namespace="nn.functional")
def relu_(input: Any) -> Any:
    """relu_(input) -> Tensor

    In-place version of `relu`.
    """
    return act("relu_", RELU, input, True)


@function(name="relu", **_F)
def _relu(input: Any, inplace: bool = False) -> Any:
    """relu(input, inplace=False) -> Tensor

    max(0, x), element by element.

    >>> import rushlight as torch
    >>> torch.nn.functional.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return act("relu", RELU, input, inplace)


@function(**_F)
def relu6(input: Any, inplace: bool = False) -> Any:
    """relu6(input, inplace=False) -> Tensor

    min(max(0, x), 6), element by element.

    >>> import rushlight as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1., 2., 9.]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


@function(**_F)
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """leaky_relu(input, negative_slope=0.01, inplace=False) -> Tensor

    x above 0, negative_slope * x below.

    >>> import rushlight as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1., 2.]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return act("leaky_relu", shared(LeakyRelu, negative_slope), input, inplace)


@function(**_F)
def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Any:
    """leaky_relu_(input, negative_slope=0.01) -> Tensor

    In-place version of `leaky_relu`.
    """
    return act("leaky_relu_", shared(LeakyRelu, negative_slope), input, True)


@function(**_F)
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """elu(input, alpha=1.0, inplace=False) -> Tensor

    x above 0, alpha * (exp(x) - 1) below.

    >>> import rushlight as torch
    >>> torch.nn.functional.elu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return act("elu", shared(Elu, alpha, 1.0, 1.0), input, inplace)


@function(**_F)
def elu_(input: Any, alpha: float = 1.0) -> Any:
    """elu_(input, alpha=1.0) -> Tensor

    In-place version of `elu`.
    """
    return act("elu_", shared(Elu, alpha, 1.0, 1.0), input, True)


@function(method=False, namespace="nn.functional")
def selu(input: Any, inplace: bool = False) -> Any:
    """selu(input, inplace=False) -> Tensor

    `elu` scaled so that it keeps mean 0 and variance 1.

    >>> import rushlight as torch
    >>> torch.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return act("selu", SELU, input, inplace)


@function(method=False, namespace="nn.functional")
def selu_(input: Any) -> Any:
    """selu_(input) -> Tensor

    In-place version of `selu`.
    """
    return act("selu_", SELU, input, True)


@function(method=False, free=False, namespace="nn.functional")
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """celu(input, alpha=1.0, inplace=False) -> Tensor

    x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> import rushlight as torch
    >>> torch.nn.functional.celu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return act("celu", shared(Celu, alpha), input, inplace)


@function(name="celu", method=False)
def _celu(input: Any, alpha: float = 1.0) -> Any:
    """celu(input, alpha=1.0) -> Tensor

    x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> import rushlight as torch
    >>> torch.celu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return celu(input, alpha)


@function(method=False, namespace="nn.functional")
def celu_(input: Any, alpha: float = 1.0) -> Any:
    """celu_(input, alpha=1.0) -> Tensor

    In-place version of `celu`.
    """
    return celu(input, alpha, True)


@function(**_F)
def gelu(input: Any, *, approximate: str = "none") -> Any:
    """gelu(input, *, approximate='none') -> Tensor

    x times the probability that a standard normal variable is below x; with 'tanh', a near formula.

    >>> import rushlight as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1., 1.]))
    tensor([-0.1587,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return act("gelu", shared(Gelu, approximate), input)


@function(**_F)
def silu(input: Any, inplace: bool = False) -> Any:
    """silu(input, inplace=False) -> Tensor

    x * sigmoid(x).

    >>> import rushlight as torch
    >>> torch.nn.functional.silu(torch.tensor([-1., 1.]))
    tensor([-0.2689,  0.7311])
    """
    return act("silu", shared(Silu), input, inplace)


@function(**_F)
def mish(input: Any, inplace: bool = False) -> Any:
    """mish(input, inplace=False) -> Tensor

    x * tanh(softplus(x)).

    >>> import rushlight as torch
    >>> torch.nn.functional.mish(torch.tensor([-1., 1.]))
    tensor([-0.3034,  0.8651])
    """
    return act("mish", shared(Mish), input, inplace)


@function(**_F)
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False) -> Tensor

    x held between two values.

    >>> import rushlight as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-2., 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return act("hardtanh", shared(Hardtanh, *fitted(input, min_val, max_val)), input, inplace)


@function(**_F)
def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """hardtanh_(input, min_val=-1.0, max_val=1.0) -> Tensor

    In-place version of `hardtanh`.
    """
    return hardtanh(input, min_val, max_val, True)


@function(**_F)
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """hardsigmoid(input, inplace=False) -> Tensor

    x / 6 + 1/2, held between 0 and 1.

    >>> import rushlight as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4., 0., 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return act("hardsigmoid", shared(Hardsigmoid), input, inplace)


@function(**_F)
def hardswish(input: Any, inplace: bool = False) -> Any:
    """hardswish(input, inplace=False) -> Tensor

    x * hardsigmoid(x).

    >>> import rushlight as torch
    >>> torch.nn.functional.hardswish(torch.tensor([0., 1.5, 4.]))
    tensor([0.0000, 1.1250, 4.0000])
    """
    return act("hardswish", shared(Hardswish), input, inplace)


@function(**_F)
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """softplus(input, beta=1, threshold=20) -> Tensor

    log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    >>> import rushlight as torch
    >>> torch.nn.functional.softplus(torch.tensor([-1., 0., 100.]))
    tensor([  0.3133,   0.6931, 100.0000])
    """
    return act("softplus", shared(Softplus, beta, threshold), input)


@function(**_F)
def softsign(input: Any) -> Any:
    """softsign(input) -> Tensor

    x / (1 + |x|).

    >>> import rushlight as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


@function(**_F)
def tanhshrink(input: Any) -> Any:
    """tanhshrink(input) -> Tensor

    x - tanh(x).

    >>> import rushlight as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()


@function(**_F)
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """softshrink(input, lambd=0.5) -> Tensor

    x moved towards 0 by `lambd`, 0 if it would pass it.

    >>> import rushlight as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-1., 0.2, 2.]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if lambd < 0:
        kind = dtypes.of(input.array.dtype)
        top = dtypes.finfo(kind).max
        raise RuntimeError(
            f"lambda must be in range [0, {top:g}] for input dtype {kind.scalar_type}, but found "
            f"{lambd:g}"
        )
    return act("softshrink", shared(Softshrink, lambd), input)


@function(namespace="nn.functional")
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """hardshrink(input, lambd=0.5) -> Tensor

    x, but 0 within `lambd` of 0.

    >>> import rushlight as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([-1., 0.2, 2.]))
    tensor([-1.,  0.,  2.])
    """
    return act("hardshrink", shared(Hardshrink, lambd), input)


@function(method=False, namespace="nn.functional")
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """threshold(input, threshold, value, inplace=False) -> Tensor

    x above the threshold, `value` elsewhere.

    >>> import rushlight as torch
    >>> torch.nn.functional.threshold(torch.tensor([-1., 2.]), 0, -9)
    tensor([-9.,  2.])
    """
    return act("threshold", shared(Threshold, *fitted(input, threshold, value)), input, inplace)


@function(method=False, namespace="nn.functional")
def threshold_(input: Any, threshold: float, value: float) -> Any:
    """threshold_(input, threshold, value) -> Tensor

    In-place version of `threshold`.
    """
    return act("threshold_", shared(Threshold, *fitted(input, threshold, value)), input, True)


@function(**_F)
def logsigmoid(input: Any) -> Any:
    """logsigmoid(input) -> Tensor

    log(sigmoid(x)), exact where sigmoid(x) would round to 0.

    >>> import rushlight as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([0., -1000.]))
    tensor([-6.9315e-01, -1.0000e+03])
    """
    return act("logsigmoid", shared(LogSigmoid), input)


@function(namespace="nn.functional")
def prelu(input: Any, weight: Any) -> Any:
    """prelu(input, weight) -> Tensor

    x above 0, weight * x below; one weight, or one a channel (dimension 1).

    >>> import rushlight as torch
    >>> torch.prelu(torch.tensor([-1., 2.]), torch.tensor(0.5))
    tensor([-0.5000,  2.0000])
    """
    expect_tensor(input, "prelu")
    expect_tensor(weight, "prelu", "weight", 2)
    x, w = input.array, weight.array
    if x.dtype != w.dtype:
        have, got = dtypes.of(x.dtype).scalar_type, dtypes.of(w.dtype).scalar_type
        raise RuntimeError(f"prelu: Type promoting not supported. Got {have} and {got}")
    if w.size != 1:
        if x.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != w.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{w.size} and channel size = {channels}."
            )
    if w.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}"
        )
    shape = [1] * x.ndim
    if x.ndim > 1:
        shape[1] = w.size
    return slots.elementwise(shared(PreluKernel), (input, weight.reshape(shape)))


@function(method=False, free=False, namespace="nn.functional")
def rrelu(
    input: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """rrelu(input, lower=1/8, upper=1/3, training=False, inplace=False) -> Tensor

    x above 0, a * x below, where a is drawn between `lower` and `upper` for each element; outside
    training a is the middle.

    >>> import rushlight as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-1., 2.]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    expect_tensor(input, "rrelu")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return act("rrelu", shared(RreluEval, (lower + upper) / 2), input, inplace)
    host = to_host(input.array)
    below = host <= 0
    drawn = full(host, (int(below.sum()),), 0, dtypes.float64.numpy)
    generators.uniform_(drawn, lower, upper)
    noise = full(host, host.shape, 1, host.dtype)
    noise = wrap(from_host(place(noise, cast(drawn, host.dtype), (SLOT,), below), input.array))
    what = RreluWithNoise()
    return run_inplace(what, (input, noise)) if inplace else slots.elementwise(what, (input, noise))


@function(name="rrelu", method=False)
def _rrelu(input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    """rrelu(input, lower=1/8, upper=1/3, training=False) -> Tensor

    `nn.functional.rrelu`.

    >>> import rushlight as torch
    >>> torch.rrelu(torch.tensor([-1., 2.]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    return rrelu(input, lower, upper, training)


@function(method=False, namespace="nn.functional")
def rrelu_(input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    """rrelu_(input, lower=1/8, upper=1/3, training=False) -> Tensor

    In-place version of `rrelu`.
    """
    return rrelu(input, lower, upper, training, True)


@function(name="sigmoid", **_F)
def _sigmoid(input: Any) -> Any:
    """sigmoid(input) -> Tensor

    1 / (1 + exp(-x)).

    >>> import rushlight as torch
    >>> torch.nn.functional.sigmoid(torch.tensor([0.]))
    tensor([0.5000])
    """
    return input.sigmoid()


@function(name="tanh", **_F)
def _tanh(input: Any) -> Any:
    """tanh(input) -> Tensor

    Hyperbolic tangent, element by element.

    >>> import rushlight as torch
    >>> torch.nn.functional.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return input.tanh()
