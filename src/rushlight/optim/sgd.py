"""Stochastic gradient descent. Imported by `optim`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.arrays.vocabulary import copy
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.graph import wrap
from rushlight.optim.optimizer import (
    Optimizer,
    Raw,
    Recorded,
    check_flags,
    check_lr,
    check_not_negative,
)

__all__ = ["SGD"]


class SGD(Optimizer):
    """SGD(params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
    maximize=False, foreach=None, differentiable=False, fused=None)

    p - lr g, where g, with momentum, is a running sum of gradients. `foreach` and `fused` are
    accepted and change nothing: they pick one of PyTorch's implementations.

    >>> import rushlight as torch
    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (w * w).sum().backward()
    ...     opt.step()
    >>> w
    tensor([0.4600], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative("momentum", momentum)
        check_not_negative("weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_flags(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for key in ("nesterov", "maximize", "differentiable"):
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
        of, put = way.of, way.put
        lr, decay = way.number(group["lr"]), way.number(group["weight_decay"])
        momentum, dampening = group["momentum"], group["dampening"]
        nesterov, maximize = group["nesterov"], group["maximize"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            p, g = of(param), of(grad)
            if maximize:
                g = -g
            if decay != 0:
                g = g + decay * p
            if momentum != 0:
                state = self.state[param]
                kept = state.get("momentum_buffer")
                if kept is None:
                    state["momentum_buffer"] = g.clone() if way is Recorded else wrap(copy(g))
                    v = g
                else:
                    v = momentum * of(kept) + (1 - dampening) * g
                    put(kept, v)
                g = g + momentum * v if nesterov else v
            put(param, p - lr * g)
