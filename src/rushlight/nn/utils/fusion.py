"""Batch normalisation worked into the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from rushlight.nn.parameter import Parameter
from rushlight.ops.registry import functions

__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
]  # fmt: skip
__dir__ = __all__.copy


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """One convolution that does what a convolution and a batch norm do in evaluation."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("running_mean and running_var must not be None")
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """The weight and bias of `fuse_conv_bn_eval`.

    >>> w, b = torch.ones(1, 1, 1), torch.zeros(1)
    >>> mean, var = torch.ones(1), torch.ones(1)
    >>> torch.nn.utils.fuse_conv_bn_weights(w, b, mean, var, 0.0, None, None)[1]
    Parameter containing:
    tensor([-1.])
    """
    zeros, ones = functions["zeros_like"], functions["ones_like"]
    conv_b = zeros(bn_rm) if conv_b is None else conv_b
    bn_w = ones(bn_rm) if bn_w is None else bn_w
    bn_b = zeros(bn_rm) if bn_b is None else bn_b
    scale = bn_w * functions["rsqrt"](bn_rv + bn_eps)
    rank = conv_w.ndim - 2
    shape = (1, -1, *(1,) * rank) if transpose else (-1, 1, *(1,) * rank)
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    bias = ((conv_b - bn_rm) * scale + bn_b).to(conv_b.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """One linear layer that does what a linear layer and a batch norm do in evaluation.

    >>> linear, bn = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval()
    >>> torch.nn.utils.fuse_linear_bn_eval(linear, bn)
    Linear(in_features=2, out_features=3, bias=True)
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(linear)
    if not (linear.out_features == bn.num_features or bn.num_features == 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("running_mean and running_var must not be None")
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """The weight and bias of `fuse_linear_bn_eval`."""
    linear_b = functions["zeros_like"](bn_rm) if linear_b is None else linear_b
    scale = bn_w * functions["rsqrt"](bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(linear_w.dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(linear_b.dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)
