"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from rushlight.ops.registry import functions
from rushlight.optim.optimizer import (
    Optimizer,
    check_flags,
    check_lr,
    check_not_negative,
    number,
    update,
)

__all__ = ["SGD"]
__dir__ = __all__.copy


class SGD(Optimizer):
    """SGD(params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
    maximize=False, foreach=None, differentiable=False, fused=None)

    p - lr g, where g, with momentum, is a running sum of gradients. `foreach` and `fused` are
    accepted and change nothing: they pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (w * w).sum().backward()
    ...     opt.step()
    >>> w
    tensor([0.4600], requires_grad=True)
    """

    _added: ClassVar[dict[str, Any]] = {
        "nesterov": False, "maximize": False, "differentiable": False, "foreach": None,
        "fused": None,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: Any = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("momentum", momentum)
        check_not_negative("weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_flags(fused, foreach, differentiable)

    if not TYPE_CHECKING:  # checkers see the two forms of `Optimizer.step`

        def step(self, closure: Callable[[], Any] | None = None) -> Any:
            """Change the parameters by their gradients."""
            return self._step_groups(closure)

    def _step(self, group: dict[str, Any], recorded: bool) -> None:
        lr, decay = number(group["lr"], recorded), number(group["weight_decay"], recorded)
        momentum, dampening = (number(group[key], recorded) for key in ("momentum", "dampening"))
        nesterov, sign = group["nesterov"], -1 if group["maximize"] else 1

        def rule(n: int, g: Any, p: Any, *kept: Any) -> tuple[Any, ...]:
            if sign < 0:
                g = -g
            if decay != 0:
                g = g + decay * p
            if momentum == 0:
                return (p - lr * g,)
            v = g if n == 1 else momentum * kept[0] + (1 - dampening) * g
            return p - lr * (g + momentum * v if nesterov else v), v

        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if momentum == 0:  # nothing is kept, not even an empty state
                update(rule, 0, recorded, grad, [param])
                continue
            state = self.state[param]
            n = 0
            kept = state.get("momentum_buffer")
            if kept is None:
                kept = state["momentum_buffer"] = functions["empty_like"](grad)
                n = 1
            update(rule, n, recorded, grad, [param, kept])
