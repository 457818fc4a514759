"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

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
    put_scalar,
    scalar,
    scalar_dtype,
    scale,
    update,
    zero_step,
)

__all__ = ["ASGD", "asgd"]
__dir__ = __all__.copy


class ASGD(Optimizer):
    """ASGD(params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0, foreach=None,
    maximize=False, differentiable=False, capturable=False)

    Gradient descent with a rate that falls, and beside it the mean of the parameters since step
    `t0`, as `ax` in their state. `foreach` and `capturable` are accepted and change nothing: they
    pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.ASGD([w], lr=0.1, t0=0)
    >>> for _ in range(3):
    ...     opt.zero_grad()
    ...     (w * w).sum().backward()
    ...     opt.step()
    >>> w, opt.state[w]["ax"]
    (tensor([0.5120], requires_grad=True), tensor([0.5760]))
    """

    _scalars = ("step", "eta", "mu")
    _added = FLAGS

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        state["step"] = zero_step()
        state["eta"] = scalar(float(group["lr"]))
        state["mu"] = scalar(1.0)
        state["ax"] = functions["zeros_like"](param)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        asgd(
            params, grads, column(states, "ax"), column(states, "mu"), column(states, "eta"),
            column(states, "step"), maximize=group["maximize"], lambd=group["lambd"],
            lr=group["lr"], t0=group["t0"], alpha=group["alpha"],
            weight_decay=group["weight_decay"],
        )  # fmt: skip


def asgd(
    params: list[Any], grads: list[Any], axs: list[Any], mus: list[Any], etas: list[Any],
    state_steps: list[Any], foreach: bool | None = None, maximize: bool = False,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *,
    lambd: float, lr: float, t0: float, alpha: float, weight_decay: float,
) -> None:  # fmt: skip
    """One step of ASGD on lists of tensors; `etas` and `mus` are the rates and weights of each."""
    rate, falls, start, power, decay = option_values(lr, lambd, t0, alpha, weight_decay)

    def rule(key: tuple[float, float], g: Any, p: Any, mean: Any) -> tuple[Any, ...]:
        eta, mu = key
        g = descent_direction(g, p, maximize, decay)
        p = add_to(scale(p, 1 - falls * eta), -eta * g)
        return p, p if mu == 1 else add_to(mean, mu * (p - mean))

    keys = [(eta._array.item(), mu._array.item()) for eta, mu in zip(etas, mus)]
    update(rule, keys, grads, params, axs)
    kind = scalar_dtype().numpy.type  # they are rounded to it, also where they are kept in another
    for n, eta, mu in zip(count_steps(state_steps), etas, mus):
        put_scalar(eta, float(kind(float(rate / (1 + falls * rate * n) ** power))))
        put_scalar(mu, float(kind(1 / max(1, n - start))))
