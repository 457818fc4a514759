"""RMSprop. Imported by `optim`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.arrays.vocabulary import sqrt
from rushlight.autograd.grad_mode import enable_grad
from rushlight.ops.table import functions
from rushlight.optim.optimizer import (
    Optimizer,
    Raw,
    Recorded,
    check_lr,
    check_not_negative,
    count,
    real,
    zero_step,
)

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """RMSprop(params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False,
    capturable=False, foreach=None, maximize=False, differentiable=False)

    Steps by the gradient over the root of the running mean of its square. `foreach` and
    `capturable` are accepted and change nothing: they pick one of PyTorch's implementations.

    >>> import rushlight as torch
    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("epsilon", eps)
        check_not_negative("momentum", momentum)
        check_not_negative("weight_decay", weight_decay)
        check_not_negative("alpha", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            for key in ("centered", "maximize", "differentiable", "capturable"):
                group.setdefault(key, False)
            group.setdefault("foreach", None)

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
        lr, alpha, eps = number(group["lr"]), group["alpha"], group["eps"]
        decay, momentum = number(group["weight_decay"]), group["momentum"]
        for param, grad, state in self._work(group):
            if not state:
                _start(state, param, group)
            count(state)
            param, grad, square = real(param), real(grad), real(state["square_avg"])
            p, g = of(param), of(grad)
            if group["maximize"]:
                g = -g
            if decay != 0:
                g = g + decay * p
            v = alpha * of(square) + (1 - alpha) * (g * g)
            put(square, v)
            if group["centered"]:
                mean = real(state["grad_avg"])
                m = of(mean)
                m = m + (1 - alpha) * (g - m)
                put(mean, m)
                v = v - m * m
            d = g / (sqrt(v) + eps)
            if momentum > 0:
                kept = real(state["momentum_buffer"])
                d = momentum * of(kept) + d
                put(kept, d)
            put(param, p - lr * d)


def _start(state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
    state["step"] = zero_step()
    state["square_avg"] = functions["zeros_like"](param)
    if group["momentum"] > 0:
        state["momentum_buffer"] = functions["zeros_like"](param)
    if group["centered"]:
        state["grad_avg"] = functions["zeros_like"](param)
