"""Adadelta."""

from __future__ import annotations

from typing import Any

from rushlight.arrays.vocabulary import sqrt
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

__all__ = ["Adadelta", "adadelta"]
__dir__ = __all__.copy


class Adadelta(Optimizer):
    """Adadelta(params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, foreach=None, *,
    capturable=False, maximize=False, differentiable=False)

    Steps by the gradient, times the root of the running mean of squared steps over that of squared
    gradients, so that no rate need be chosen. `foreach` and `capturable` are accepted and change
    nothing: they pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.Adadelta([w], lr=10.)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9684], requires_grad=True)
    """

    _zeros = ("square_avg", "acc_delta")
    _added = FLAGS

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        adadelta(
            params, grads, column(states, "square_avg"), column(states, "acc_delta"),
            column(states, "step"), lr=group["lr"], rho=group["rho"], eps=group["eps"],
            weight_decay=group["weight_decay"], maximize=group["maximize"],
        )  # fmt: skip


def adadelta(
    params: list[Any], grads: list[Any], square_avgs: list[Any], acc_deltas: list[Any],
    state_steps: list[Any], capturable: bool = False, foreach: bool | None = None,
    differentiable: bool = False, has_complex: bool = False, *, lr: float, rho: float, eps: float,
    weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of Adadelta on lists of tensors."""
    rate, keep, small, decay = option_values(lr, rho, eps, weight_decay)

    def rule(n: int, g: Any, p: Any, v: Any, u: Any) -> tuple[Any, ...]:
        g = descent_direction(g, p, maximize, decay)
        v = add_to(scale(v, keep), (1 - keep) * (g * g))
        d = sqrt(u + small) / sqrt(v + small) * g
        p = add_to(p, -rate * d)
        return p, v, add_to(scale(u, keep), (1 - keep) * (d * d))

    update(rule, count_steps(state_steps), grads, params, square_avgs, acc_deltas)
