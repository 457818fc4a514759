"""Adam. Imported by `optim`, and by `adamw`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.arrays.vocabulary import maximum, sqrt
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.graph import TensorBase
from rushlight.ops.table import functions
from rushlight.optim.optimizer import (
    Optimizer,
    Raw,
    Recorded,
    check_flags,
    check_lr,
    check_not_negative,
    count,
    real,
    zero_step,
)

__all__ = ["Adam"]


class Adam(Optimizer):
    """Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *,
    foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
    decoupled_weight_decay=False)

    Steps by the running mean of the gradient, over the root of that of its square. `foreach`,
    `fused` and `capturable` are accepted and change nothing: they pick one of PyTorch's
    implementations.

    >>> import rushlight as torch
    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, TensorBase) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_lr(lr)
        check_not_negative("epsilon", eps)
        _check_betas(betas)
        check_not_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_flags(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for key in (
                "amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay",
            ):  # fmt: skip
                group.setdefault(key, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", None)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients."""
        loss = self._loss(closure)
        for group in self.param_groups:
            if group["differentiable"]:
                with enable_grad():
                    self._step(group, Recorded)
            else:
                self._step(group, Raw)
        return loss

    def _step(self, group: dict[str, Any], way: Any) -> None:
        of, put, number = way.of, way.put, way.number
        lr, eps, amsgrad = number(group["lr"]), group["eps"], group["amsgrad"]
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        decay, decoupled = number(group["weight_decay"]), group["decoupled_weight_decay"]
        for param, grad, state in self._work(group):
            if not state:
                _start(state, param, amsgrad)
            n = count(state)
            param, grad = real(param), real(grad)
            mean, square = real(state["exp_avg"]), real(state["exp_avg_sq"])
            p, g = of(param), of(grad)
            if group["maximize"]:
                g = -g
            if decay != 0:
                if decoupled:
                    p = p * (1 - lr * decay)
                else:
                    g = g + decay * p
            m, v = of(mean), of(square)
            m = m + (1 - beta1) * (g - m)
            v = beta2 * v + (1 - beta2) * (g * g)
            put(mean, m)
            put(square, v)
            if amsgrad:
                largest = real(state["max_exp_avg_sq"])
                v = maximum(of(largest), v)
                put(largest, v)
            size = lr / (1 - beta1**n)
            put(param, p - size * (m / (sqrt(v) / (1 - beta2**n) ** 0.5 + eps)))


def _start(state: dict[str, Any], param: Any, amsgrad: bool) -> None:
    state["step"] = zero_step()
    for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if amsgrad else 2]:
        state[name] = functions["zeros_like"](param)


def _check_betas(betas: tuple[Any, Any]) -> None:
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    if len({isinstance(beta, TensorBase) for beta in betas}) > 1:
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, TensorBase) and beta.array.size != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")
