"""NAdam."""

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
    put_product,
    scalar,
    scale,
    update,
    zero_step,
)

__all__ = ["NAdam", "nadam"]
__dir__ = __all__.copy


class NAdam(Optimizer):
    """NAdam(params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, momentum_decay=0.004,
    decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
    differentiable=False)

    Adam with Nesterov's momentum: steps from where the mean of gradients is about to lead.
    `foreach` and `capturable` are accepted and change nothing: they pick one of PyTorch's
    implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8944], requires_grad=True)
    """

    _scalars = ("step", "mu_product")
    _added: ClassVar[dict[str, Any]] = {**FLAGS, "decoupled_weight_decay": False}

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        state["step"] = zero_step()
        state["mu_product"] = scalar(1.0)
        state["exp_avg"] = functions["zeros_like"](param)
        state["exp_avg_sq"] = functions["zeros_like"](param)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        beta1, beta2 = group["betas"]
        nadam(
            params, grads, column(states, "exp_avg"), column(states, "exp_avg_sq"),
            column(states, "mu_product"), column(states, "step"),
            decoupled_weight_decay=group["decoupled_weight_decay"], maximize=group["maximize"],
            beta1=beta1, beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"], eps=group["eps"],
        )  # fmt: skip


def nadam(
    params: list[Any], grads: list[Any], exp_avgs: list[Any], exp_avg_sqs: list[Any],
    mu_products: list[Any], state_steps: list[Any], decoupled_weight_decay: bool = False,
    foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
    has_complex: bool = False, maximize: bool = False, *, beta1: float, beta2: float, lr: float,
    weight_decay: float, momentum_decay: float, eps: float,
) -> None:  # fmt: skip
    """One step of NAdam on lists of tensors."""
    rate, decay, b1, b2, small = option_values(lr, weight_decay, beta1, beta2, eps)

    def momentum(n: int) -> Any:
        return b1 * (1.0 - 0.5 * 0.96 ** (n * momentum_decay))

    def rule(key: tuple[int, float], g: Any, p: Any, m: Any, v: Any) -> tuple[Any, ...]:
        n, product = key  # the product of the momenta of all steps
        if decoupled_weight_decay and decay != 0:
            p = scale(p, 1 - rate * decay)
        g = descent_direction(g, p, maximize, 0 if decoupled_weight_decay else decay)
        m = add_to(m, (1 - b1) * (g - m))
        v = add_to(scale(v, b2), (1 - b2) * (g * g))
        now, coming = momentum(n), momentum(n + 1)
        root = (1 - b2**n) ** 0.5
        by_now = -rate * root * (1.0 - now) / (1.0 - product)
        by_mean = -rate * root * coming / (1.0 - product * coming)
        return add_to(p, (by_now * g + by_mean * m) / (sqrt(v) + small * root)), m, v

    keys = []
    for n, product in zip(count_steps(state_steps), mu_products):
        keys.append((n, put_product(product, float(momentum(n)))))
    update(rule, keys, grads, params, exp_avgs, exp_avg_sqs)
