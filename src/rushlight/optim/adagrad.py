"""Adagrad."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.arrays.vocabulary import sqrt
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import (
    add_to,
    check,
    check_flags,
    count_steps,
    descent_direction,
    option_values,
    unscaled,
    update,
    update_rows,
    zero_step,
)

__all__ = ["Adagrad", "adagrad"]
__dir__ = __all__.copy


class Adagrad(Optimizer):
    """Adagrad(params, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
    foreach=None, *, maximize=False, differentiable=False, fused=None)

    Steps by the gradient over the root of the sum of its squares so far. `foreach` and `fused` are
    accepted and change nothing: they pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _added: ClassVar[dict[str, Any]] = {
        "maximize": False, "differentiable": False, "foreach": None, "fused": None,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check(
            lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, eps=eps,
        )  # fmt: skip
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_flags(fused, foreach, differentiable)
        for group in self.param_groups:
            value = group["initial_accumulator_value"]
            for param in group["params"]:
                start = complex(value, value) if param.is_complex() else value
                self.state[param] = {
                    "step": zero_step(),
                    "sum": functions["full_like"](param, start),
                }

    def _step(self, group: dict[str, Any]) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        states = [self.state[p] for p in params]
        adagrad(
            params, [p.grad for p in params], [state["sum"] for state in states],
            [state["step"] for state in states], lr=group["lr"], eps=group["eps"],
            weight_decay=group["weight_decay"], lr_decay=group["lr_decay"],
            maximize=group["maximize"],
        )  # fmt: skip

    def share_memory(self) -> None:
        """Move the sums to where other processes can see them: what one adds, all see."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()


def adagrad(
    params: list[Any], grads: list[Any], state_sums: list[Any], state_steps: list[Any],
    fused: bool | None = None, grad_scale: Any = None, found_inf: Any = None,
    has_sparse_grad: bool = False, foreach: bool | None = None, differentiable: bool = False,
    has_complex: bool = False, *, lr: float, weight_decay: float, lr_decay: float, eps: float,
    maximize: bool,
) -> None:  # fmt: skip
    """One step of Adagrad on lists of tensors."""
    rate, decay, slowing, small = option_values(lr, weight_decay, lr_decay, eps)

    def rule(n: int, g: Any, p: Any, total: Any) -> tuple[Any, ...]:
        g = descent_direction(g, p, maximize, decay)
        total = add_to(total, g * g)
        size = rate / (1 + (n - 1) * slowing)
        return add_to(p, -size * (g / (sqrt(total) + small))), total

    grads = unscaled(grads, grad_scale, found_inf)
    if not grads:
        return
    steps = count_steps(state_steps)
    if any(g.is_sparse for g in grads):
        if decay != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        for n, g, p, total in zip(steps, grads, params, state_sums):
            if g.is_sparse:
                update_rows(rule, n, g, p, total)
            else:
                update(rule, [n], [g], [p], [total])
        return
    update(rule, steps, grads, params, state_sums)
