"""Adam."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.arrays.vocabulary import maximum, sqrt
from rushlight.core.graph import TensorBase
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import (
    FLAGS,
    add_to,
    check,
    check_flags,
    column,
    count_steps,
    descent_direction,
    option_values,
    scale,
    unscaled,
    update,
)

__all__ = ["Adam", "adam"]
__dir__ = __all__.copy


class Adam(Optimizer):
    """Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *,
    foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
    decoupled_weight_decay=False)

    Steps by the running mean of the gradient, over the root of that of its square.

    Args:
        params: tensors to train, or dictionaries of them with options of their own.
        lr: the length of steps.
        betas: how much of the two running means is kept, step by step.
        eps: added to the root, so that nothing is divided by 0.
        weight_decay: the share of a parameter that is added to its gradient.
        amsgrad: whether to divide by the largest mean so far.
        maximize: whether to climb.
        differentiable: whether the step itself is recorded.
        decoupled_weight_decay: whether decay shrinks parameters themselves, as `AdamW` does.
        foreach, fused, capturable: of no effect here: they pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _zeros = ("exp_avg", "exp_avg_sq")
    _sparse_cure = ", please consider SparseAdam instead"
    _added: ClassVar[dict[str, Any]] = {
        "amsgrad": False, **FLAGS, "fused": None, "decoupled_weight_decay": False,
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
        check(lr=lr, eps=eps)
        _check_betas(betas)
        check(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_flags(fused, foreach, differentiable)

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        super()._start(state, param, group)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = functions["zeros_like"](param)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        amsgrad, (beta1, beta2) = group["amsgrad"], group["betas"]
        adam(
            params, grads, column(states, "exp_avg"), column(states, "exp_avg_sq"),
            column(states, "max_exp_avg_sq") if amsgrad else [], column(states, "step"),
            decoupled_weight_decay=group["decoupled_weight_decay"], amsgrad=amsgrad, beta1=beta1,
            beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], eps=group["eps"],
            maximize=group["maximize"],
        )  # fmt: skip


def adam(
    params: list[Any], grads: list[Any], exp_avgs: list[Any], exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any], state_steps: list[Any], foreach: bool | None = None,
    capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    grad_scale: Any = None, found_inf: Any = None, has_complex: bool = False,
    decoupled_weight_decay: bool = False, *, amsgrad: bool, beta1: Any, beta2: Any, lr: Any,
    weight_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of Adam on lists of tensors: parameters, gradients, and what is kept for each.

    >>> from rushlight.optim.adam import adam
    >>> w, m, v, n = torch.tensor([1.]), torch.zeros(1), torch.zeros(1), torch.tensor(0.)
    >>> with torch.no_grad():
    ...     adam([w], [w * 2], [m], [v], [], [n], amsgrad=False, beta1=0.9, beta2=0.999, lr=0.1,
    ...          weight_decay=0, eps=1e-8, maximize=False)
    >>> w, n
    (tensor([0.9000]), tensor(1.))
    """
    rate, decay, b1, b2, small = option_values(lr, weight_decay, beta1, beta2, eps)

    def rule(n: int, g: Any, p: Any, m: Any, v: Any, *largest: Any) -> tuple[Any, ...]:
        if decoupled_weight_decay and decay != 0:
            p = scale(p, 1 - rate * decay)
        g = descent_direction(g, p, maximize, 0 if decoupled_weight_decay else decay)
        m = add_to(m, (1 - b1) * (g - m))
        v = add_to(scale(v, b2), (1 - b2) * (g * g))
        high = maximum(largest[0], v) if largest else v
        root = (1 - b2**n) ** 0.5
        p = add_to(p, -rate * root / (1 - b1**n) * (m / (sqrt(high) + small * root)))
        return (p, m, v, high) if largest else (p, m, v)

    grads = unscaled(grads, grad_scale, found_inf)
    if grads:
        more = [max_exp_avg_sqs] if amsgrad else []
        update(rule, count_steps(state_steps), grads, params, exp_avgs, exp_avg_sqs, *more)


def _check_betas(betas: tuple[Any, Any]) -> None:
    check(betas=betas)
    if len({isinstance(beta, TensorBase) for beta in betas}) > 1:
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, TensorBase) and beta._array.size != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")
