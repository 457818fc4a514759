"""Activations that cut or bend at 0: `relu`, and with slopes below it, given, learned or drawn."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes
from rushlight import random as generators
from rushlight.arrays.host import from_host, to_host
from rushlight.arrays.vocabulary import SLOT, cast, full, maximum, place, where
from rushlight.core.dispatch import unary
from rushlight.core.elementwise import elementwise
from rushlight.core.graph import Node, TensorBase, wrap
from rushlight.ops.apply import run_inplace
from rushlight.ops.checks import is_batched
from rushlight.ops.nn.activation import Activation, Piecewise, act, fit_bounds
from rushlight.ops.numbers import Number
from rushlight.ops.registry import function, functional, functions, op, refuse_input, shared_op


@op
class Relu(Piecewise):
    name = "relu"
    saves = ("result",)

    def check(self, common: Any) -> None:
        if common is dtypes.bool_:
            raise RuntimeError("Boolean inputs not supported for relu")
        if common.is_complex:
            raise NotImplementedError("clamp is not supported for complex types")

    def forward(self, x: Any) -> Any:
        return maximum(x, 0)

    def through(self, g: Any, y: Any) -> Any:
        return where(y <= 0, 0, g)


RELU = Relu()


@function(bare=True, made=RELU)
def relu(input: Any) -> Any:
    """max(0, x), element by element.

    >>> torch.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    if not isinstance(input, TensorBase):
        return refuse_input("relu", relu, input)
    return unary(RELU, input)


@function(namespace="nn.functional")
def relu_(input: Any) -> Any:
    """In-place version of `relu`."""
    return act("relu_", RELU, input, True)


@functional(name="relu", bare=True, made=RELU)
def _relu(input: Any, inplace: bool = False) -> Any:
    """max(0, x), element by element.

    >>> torch.nn.functional.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    if not isinstance(input, TensorBase):
        return refuse_input("relu", _relu, input, inplace)
    return functions["relu_"](input) if inplace else unary(RELU, input)


_relu.__qualname__ = "relu"  # the name that Python gives in errors of calls


# --- a slope below 0 ------------------------------------------------------------------------------
@op
class LeakyRelu(Piecewise):
    name = "leaky_relu"
    kernel = "leaky_relu_cpu"
    saves = ("self",)
    params = ("negative_slope",)
    negative_slope: Any = 0.01

    def forward(self, x: Any) -> Any:
        return where(x > 0, x, x * self.negative_slope)

    def through(self, g: Any, x: Any) -> Any:
        return where(x > 0, g, g * self.negative_slope)


@functional(settles="rank")
def leaky_relu(input: Any, negative_slope: Number = 0.01, inplace: bool = False) -> Any:
    """x above 0, negative_slope * x below.

    >>> torch.nn.functional.leaky_relu(torch.tensor([-1., 2.]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return act(
        "leaky_relu", shared_op(LeakyRelu, *fit_bounds(input, negative_slope)), input, inplace
    )


@functional()
def leaky_relu_(input: Any, negative_slope: Number = 0.01) -> Any:
    """In-place version of `leaky_relu`."""
    return act("leaky_relu_", shared_op(LeakyRelu, *fit_bounds(input, negative_slope)), input, True)


@op
class PreluKernel(Activation):
    """x above 0, weight * x below; the weight is learned."""

    name = "prelu_kernel"
    aten = "_prelu_kernel.default"
    kernel = "prelu_cpu"
    inputs = ("self", "weight")
    saves = ("self", "weight")
    reads: ClassVar = {0: ("self", "weight"), 1: ("self",)}

    def forward(self, x: Any, w: Any) -> Any:
        return where(x > 0, x, w * x)

    def vjp(self, node: Node, g: Any, x: Any, w: Any) -> Any:
        return (
            where(x > 0, g, w * g) if node._needs_grad(0) else None,
            where(x > 0, 0, x * g) if node._needs_grad(1) else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        (t, u), (x, w) = ts, xs
        if u is None:
            return where(x > 0, t, w * t)
        if t is None:
            return where(x > 0, 0, u * x)
        return where(x > 0, t, w * t + u * x)


@function(namespace="nn.functional")
def prelu(input: Any, weight: Any) -> Any:
    """x above 0, weight * x below; one weight, or one a channel (dimension 1).

    Args:
        weight: the slope of negative values: one, or one for each channel.

    >>> torch.prelu(torch.tensor([-1., 2.]), torch.tensor(0.5))
    tensor([-0.5000,  2.0000])
    """
    x, w = input._array, weight._array
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
    return elementwise(shared_op(PreluKernel), (input, weight.reshape(shape)))


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
    aten = "rrelu_with_noise.default"
    node = "RreluWithNoiseBackward0"


@functional()
def rrelu(
    input: Any,
    lower: Number = 1 / 8,
    upper: Number = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """x above 0, a * x below, where a is drawn between `lower` and `upper` for each element;
    outside training a is the middle.

    >>> torch.nn.functional.rrelu(torch.tensor([-1., 2.]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    lower, upper = fit_bounds(input, lower, upper)
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return act("rrelu", shared_op(RreluEval, (lower + upper) / 2), input, inplace)
    if is_batched(input):
        raise RuntimeError("vmap: we do not yet support aten::rrelu. Please file an issue")
    host = to_host(input._array)
    below = host <= 0
    drawn = full(host, (int(below.sum()),), 0, dtypes.float64.numpy)
    generators.uniform_(drawn, lower, upper)
    noise = full(host, host.shape, 1, host.dtype)
    noise = wrap(from_host(place(noise, cast(drawn, host.dtype), (SLOT,), below), input._array))
    what = RreluWithNoise()
    return run_inplace(what, (input, noise)) if inplace else elementwise(what, (input, noise))


@function(name="rrelu", method=False)
def _rrelu(input: Any, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False) -> Any:
    """`nn.functional.rrelu`.

    >>> torch.rrelu(torch.tensor([-1., 2.]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    return rrelu(input, lower, upper, training)


@function(method=False, namespace="nn.functional")
def rrelu_(input: Any, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False) -> Any:
    """In-place version of `rrelu`."""
    return rrelu(input, lower, upper, training, True)
