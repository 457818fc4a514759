"""Keeping gradients small, between `backward` and `step`.

`foreach` is accepted everywhere and changes nothing: it picks one of PyTorch's implementations.
"""

from __future__ import annotations

import warnings
from types import GeneratorType
from typing import Any, cast

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.ops.registry import functions, namespaces
from rushlight.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]
__dir__ = __all__.copy


def existing_gradients(parameters: Any) -> list[Any]:
    """The gradients there are."""
    return [p.grad for p in as_list(parameters) if p.grad is not None]


def as_list(parameters: Any) -> list[Any]:
    if isinstance(parameters, TensorBase):
        return [parameters]
    found = list(parameters)
    if not found and isinstance(parameters, GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=4
        )
    return found


@no_grad()
def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The norm of all tensors together, as if they were one vector.

    >>> torch.nn.utils.get_total_norm([torch.tensor([3.]), torch.tensor([4.])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, TensorBase) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return cast(Tensor, functions["tensor"](0.0))
    norm = namespaces["linalg"]["vector_norm"]
    where = tensors[0].device
    norms = functions["stack"]([norm(t, norm_type).to(where) for t in tensors])
    total: Tensor = norm(norms, norm_type)
    if error_if_nonfinite and not bool(functions["isfinite"](total)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale the gradients down if `total_norm` is more than `max_norm`."""
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in existing_gradients(parameters):
        grad.mul_(scale.to(grad.device))


@no_grad()
def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale the gradients so that their norm, taken together, is at most `max_norm`.

    Returns the norm before.

    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3., 4.])
    >>> torch.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    parameters = as_list(parameters)  # a generator can be read only once
    total = get_total_norm(existing_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """`clip_grad_norm_`, which is to be used instead."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Cut every element of the gradients off at -clip_value and clip_value.

    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3., -0.5])
    >>> torch.nn.utils.clip_grad_value_(w, 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    clip_value = float(clip_value)
    for grad in existing_gradients(parameters):
        grad.clamp_(min=-clip_value, max=clip_value)
