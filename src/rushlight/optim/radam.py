"""RAdam."""

from __future__ import annotations

from typing import Any, ClassVar

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

__all__ = ["RAdam", "radam"]
__dir__ = __all__.copy


class RAdam(Optimizer):
    """RAdam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0,
    decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
    differentiable=False)

    Adam that goes by the mean of gradients alone until it has seen enough of them to judge their
    spread. `foreach` and `capturable` are accepted and change nothing: they pick one of PyTorch's
    implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    _zeros = ("exp_avg", "exp_avg_sq")
    _added: ClassVar[dict[str, Any]] = {**FLAGS, "decoupled_weight_decay": False}

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        beta1, beta2 = group["betas"]
        radam(
            params, grads, column(states, "exp_avg"), column(states, "exp_avg_sq"),
            column(states, "step"), decoupled_weight_decay=group["decoupled_weight_decay"],
            maximize=group["maximize"], beta1=beta1, beta2=beta2, lr=group["lr"],
            weight_decay=group["weight_decay"], eps=group["eps"],
        )  # fmt: skip


def radam(
    params: list[Any], grads: list[Any], exp_avgs: list[Any], exp_avg_sqs: list[Any],
    state_steps: list[Any], decoupled_weight_decay: bool = False, foreach: bool | None = None,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False,
    maximize: bool = False, *, beta1: float, beta2: float, lr: float, weight_decay: float,
    eps: float,
) -> None:  # fmt: skip
    """One step of RAdam on lists of tensors."""
    rate, decay, b1, b2, small = option_values(lr, weight_decay, beta1, beta2, eps)
    most = 2 / (1 - b2) - 1  # squares that the mean holds at last, as if all weighed the same

    def rule(n: int, g: Any, p: Any, m: Any, v: Any) -> tuple[Any, ...]:
        if decoupled_weight_decay and decay != 0:
            p = scale(p, 1 - rate * decay)
        g = descent_direction(g, p, maximize, 0 if decoupled_weight_decay else decay)
        m = add_to(m, (1 - b1) * (g - m))
        v = add_to(scale(v, b2), (1 - b2) * (g * g))
        missing = 1 - b2**n
        held = most - 2 * n * b2**n / missing  # and that it holds now
        size = rate / (1 - b1**n)
        if held <= 5.0:
            return add_to(p, -size * m), m, v
        trust = (held - 4) * (held - 2) * most / ((most - 4) * (most - 2) * held)
        size = size * (trust * missing) ** 0.5
        return add_to(p, -size * (m / (sqrt(v) + small))), m, v

    update(rule, count_steps(state_steps), grads, params, exp_avgs, exp_avg_sqs)
