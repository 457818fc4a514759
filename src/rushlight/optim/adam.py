"""Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from rushlight.arrays.vocabulary import maximum, sqrt
from rushlight.core.graph import TensorBase
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import (
    Optimizer,
    check_flags,
    check_lr,
    check_not_negative,
    count,
    number,
    real,
    update,
    zero_step,
)

__all__ = ["Adam"]
__dir__ = __all__.copy

NAMES = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


class Adam(Optimizer):
    """Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *,
    foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
    decoupled_weight_decay=False)

    Steps by the running mean of the gradient, over the root of that of its square. `foreach`,
    `fused` and `capturable` are accepted and change nothing: they pick one of PyTorch's
    implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _added: ClassVar[dict[str, Any]] = {
        "amsgrad": False, "maximize": False, "foreach": None, "capturable": False,
        "differentiable": False, "fused": None, "decoupled_weight_decay": False,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(lr, TensorBase) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_lr(lr)
        check_not_negative("epsilon", eps)
        _check_betas(betas)
        check_not_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_flags(fused, foreach, differentiable)

    if not TYPE_CHECKING:  # checkers see the two forms of `Optimizer.step`

        def step(self, closure: Callable[[], Any] | None = None) -> Any:
            """Change the parameters by their gradients."""
            return self._step_groups(closure)

    def _step(self, group: dict[str, Any], recorded: bool) -> None:
        lr, decay = number(group["lr"], recorded), number(group["weight_decay"], recorded)
        beta1, beta2 = (number(beta, recorded) for beta in group["betas"])
        eps, amsgrad = number(group["eps"], recorded), group["amsgrad"]
        decoupled, maximize = group["decoupled_weight_decay"], group["maximize"]

        def rule(n: int, g: Any, p: Any, m: Any, v: Any, *largest: Any) -> tuple[Any, ...]:
            if maximize:
                g = -g
            if decay != 0:
                if decoupled:
                    p = p * (1 - lr * decay)
                else:
                    g = g + decay * p
            m = m + (1 - beta1) * (g - m)
            v = beta2 * v + (1 - beta2) * (g * g)
            high = maximum(largest[0], v) if largest else v
            size = lr / (1 - beta1**n)
            p = p - size * (m / (sqrt(high) / (1 - beta2**n) ** 0.5 + eps))
            return (p, m, v, high) if largest else (p, m, v)

        for param, grad, state in self._work(group):
            if not state:
                _start(state, param, amsgrad)
            kept = [state[name] for name in NAMES[: 3 if amsgrad else 2]]
            targets = [real(t) for t in (param, *kept)]
            update(rule, count(state), recorded, real(grad), targets)


def _start(state: dict[str, Any], param: Any, amsgrad: bool) -> None:
    state["step"] = zero_step()
    for name in NAMES[: 3 if amsgrad else 2]:
        state[name] = functions["zeros_like"](param)


def _check_betas(betas: tuple[Any, Any]) -> None:
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    if len({isinstance(beta, TensorBase) for beta in betas}) > 1:
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, TensorBase) and beta._array.size != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")
