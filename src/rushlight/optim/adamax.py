"""Adamax."""

from __future__ import annotations

from typing import Any

from rushlight.arrays.vocabulary import absolute, maximum
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

__all__ = ["Adamax", "adamax"]
__dir__ = __all__.copy


class Adamax(Optimizer):
    """Adamax(params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, foreach=None, *,
    maximize=False, differentiable=False, capturable=False)

    Adam with a fading maximum of the gradient's magnitude in place of the root of its mean square.
    `foreach` and `capturable` are accepted and change nothing: they pick one of PyTorch's
    implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _zeros = ("exp_avg", "exp_inf")
    _added = FLAGS

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        beta1, beta2 = group["betas"]
        adamax(
            params, grads, column(states, "exp_avg"), column(states, "exp_inf"),
            column(states, "step"), maximize=group["maximize"], eps=group["eps"], beta1=beta1,
            beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"],
        )  # fmt: skip


def adamax(
    params: list[Any], grads: list[Any], exp_avgs: list[Any], exp_infs: list[Any],
    state_steps: list[Any], foreach: bool | None = None, maximize: bool = False,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *,
    eps: float, beta1: float, beta2: float, lr: float, weight_decay: float,
) -> None:  # fmt: skip
    """One step of Adamax on lists of tensors."""
    rate, decay, b1, b2, small = option_values(lr, weight_decay, beta1, beta2, eps)

    def rule(n: int, g: Any, p: Any, m: Any, u: Any) -> tuple[Any, ...]:
        g = descent_direction(g, p, maximize, decay)
        m = add_to(m, (1 - b1) * (g - m))
        u = maximum(scale(u, b2), absolute(g) + small)
        return add_to(p, -rate / (1 - b1**n) * (m / u)), m, u

    update(rule, count_steps(state_steps), grads, params, exp_avgs, exp_infs)
