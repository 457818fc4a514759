"""RMSprop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from rushlight.arrays.vocabulary import sqrt
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import (
    Optimizer,
    check_lr,
    check_not_negative,
    count,
    number,
    real,
    update,
    zero_step,
)

__all__ = ["RMSprop"]
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

    _added: ClassVar[dict[str, Any]] = {
        "momentum": 0, "centered": False, "capturable": False, "maximize": False, "foreach": None,
        "differentiable": False,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon", eps)
        check_not_negative("momentum", momentum)
        check_not_negative("weight_decay", weight_decay)
        check_not_negative("alpha", alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    if not TYPE_CHECKING:  # checkers see the two forms of `Optimizer.step`

        def step(self, closure: Callable[[], Any] | None = None) -> Any:
            """Change the parameters by their gradients."""
            return self._step_groups(closure)

    def _step(self, group: dict[str, Any], recorded: bool) -> None:
        lr, decay = number(group["lr"], recorded), number(group["weight_decay"], recorded)
        alpha, eps, momentum = (
            number(group[key], recorded) for key in ("alpha", "eps", "momentum")
        )
        centered, maximize = group["centered"], group["maximize"]

        def rule(n: int, g: Any, p: Any, v: Any, *kept: Any) -> tuple[Any, ...]:
            if maximize:
                g = -g
            if decay != 0:
                g = g + decay * p
            v = alpha * v + (1 - alpha) * (g * g)
            rest: tuple[Any, ...] = ()
            spread = v
            if centered:
                m = kept[-1] + (1 - alpha) * (g - kept[-1])
                spread = v - m * m
                rest = (m,)
            d = g / (sqrt(spread) + eps)
            if momentum > 0:
                d = momentum * kept[0] + d
                rest = (d, *rest)
            return (p - lr * d, v, *rest)

        names = ["square_avg"]
        if momentum > 0:
            names.append("momentum_buffer")
        if centered:
            names.append("grad_avg")
        for param, grad, state in self._work(group):
            if not state:
                state["step"] = zero_step()
                state.update({name: functions["zeros_like"](param) for name in names})
            targets = [real(t) for t in (param, *(state[name] for name in names))]
            update(rule, count(state), recorded, real(grad), targets)
