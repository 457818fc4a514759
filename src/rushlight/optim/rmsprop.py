"""RMSprop."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.arrays.vocabulary import sqrt
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import (
    FLAGS,
    add_to,
    check,
    column,
    count_steps,
    descent_direction,
    option_values,
    scale,
    update,
)

__all__ = ["RMSprop", "rmsprop"]
__dir__ = __all__.copy


class RMSprop(Optimizer):
    """RMSprop(params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False,
    capturable=False, foreach=None, maximize=False, differentiable=False)

    Steps by the gradient over the root of the running mean of its square. `foreach` and
    `capturable` are accepted and change nothing: they pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _zeros = ("square_avg",)
    _added: ClassVar[dict[str, Any]] = {"momentum": 0, "centered": False, **FLAGS}

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        super()._start(state, param, group)
        if group["momentum"] > 0:
            state["momentum_buffer"] = functions["zeros_like"](param)
        if group["centered"]:
            state["grad_avg"] = functions["zeros_like"](param)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        rmsprop(
            params, grads, column(states, "square_avg"),
            column(states, "grad_avg") if group["centered"] else [],
            column(states, "momentum_buffer") if group["momentum"] > 0 else [],
            column(states, "step"), lr=group["lr"], alpha=group["alpha"], eps=group["eps"],
            weight_decay=group["weight_decay"], momentum=group["momentum"],
            centered=group["centered"], maximize=group["maximize"],
        )  # fmt: skip


def rmsprop(
    params: list[Any], grads: list[Any], square_avgs: list[Any], grad_avgs: list[Any],
    momentum_buffer_list: list[Any], state_steps: list[Any], foreach: bool | None = None,
    maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    has_complex: bool = False, *, lr: float, alpha: float, eps: float, weight_decay: float,
    momentum: float, centered: bool,
) -> None:  # fmt: skip
    """One step of RMSprop on lists of tensors."""
    rate, decay, a, small, momentum = option_values(lr, weight_decay, alpha, eps, momentum)

    def rule(n: int, g: Any, p: Any, v: Any, *kept: Any) -> tuple[Any, ...]:
        g = descent_direction(g, p, maximize, decay)
        v = add_to(scale(v, a), (1 - a) * (g * g))
        rest: tuple[Any, ...] = ()
        spread = v
        if centered:
            m = add_to(kept[-1], (1 - a) * (g - kept[-1]))
            spread = v - m * m
            rest = (m,)
        d = g / (sqrt(spread) + small)
        if momentum > 0:
            d = add_to(scale(kept[0], momentum), d)
            rest = (d, *rest)
        return (add_to(p, -rate * d), v, *rest)

    more = [momentum_buffer_list] if momentum > 0 else []
    if centered:
        more.append(grad_avgs)
    update(rule, count_steps(state_steps), grads, params, square_avgs, *more)
