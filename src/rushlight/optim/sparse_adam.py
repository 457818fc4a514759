"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from rushlight.arrays.vocabulary import sqrt
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import check, column, option_values, update_rows

__all__ = ["SparseAdam"]
__dir__ = __all__.copy


class SparseAdam(Optimizer):
    """SparseAdam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, maximize=False)

    Adam that reads and changes only those rows of a parameter that its sparse gradient has, as
    `nn.Embedding(..., sparse=True)` gives them; what is kept of the others stays as it was.

    >>> torch.optim.SparseAdam([torch.ones(2, 3, requires_grad=True)], lr=0.1)
    SparseAdam (
    Parameter Group 0
        betas: (0.9, 0.999)
        eps: 1e-08
        lr: 0.1
        maximize: False
    )
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, maximize: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr)
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check(betas=betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            i
            for i, p in enumerate(p for group in self.param_groups for p in group["params"])
            if p.is_sparse
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def _step(self, group: dict[str, Any]) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        states = []
        for param in params:
            if not param.grad.is_sparse:
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
            state = self.state[param]
            if not state:
                state["step"] = 0
                state["exp_avg"] = functions["zeros_like"](param)
                state["exp_avg_sq"] = functions["zeros_like"](param)
            state["step"] += 1
            states.append(state)
        beta1, beta2 = group["betas"]
        sparse_adam(
            params, [p.grad for p in params], column(states, "exp_avg"),
            column(states, "exp_avg_sq"), column(states, "step"), eps=group["eps"], beta1=beta1,
            beta2=beta2, lr=group["lr"], maximize=group["maximize"],
        )  # fmt: skip


def sparse_adam(
    params: list[Any], grads: list[Any], exp_avgs: list[Any], exp_avg_sqs: list[Any],
    state_steps: list[int], *, eps: float, beta1: float, beta2: float, lr: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of SparseAdam on lists of tensors; `state_steps` count this step already."""
    rate, b1, b2, small = option_values(lr, beta1, beta2, eps)

    def rule(n: int, g: Any, p: Any, m: Any, v: Any) -> tuple[Any, ...]:
        if maximize:
            g = -g
        m = m + (1 - b1) * (g - m)
        v = v + (1 - b2) * (g * g - v)
        size = rate * (1 - b2**n) ** 0.5 / (1 - b1**n)
        return p - size * (m / (sqrt(v) + small)), m, v

    for n, grad, param, m, v in zip(state_steps, grads, params, exp_avgs, exp_avg_sqs):
        update_rows(rule, n, grad, param, m, v)
