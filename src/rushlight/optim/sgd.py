"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import (
    add_to,
    check,
    check_flags,
    descent_direction,
    option_values,
    scale,
    unscaled,
    update,
    update_rows,
)

__all__ = ["SGD", "sgd"]
__dir__ = __all__.copy


class SGD(Optimizer):
    """SGD(params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
    maximize=False, foreach=None, differentiable=False, fused=None)

    p - lr g, where g, with momentum, is a running sum of gradients.

    Args:
        params: tensors to train, or dictionaries of them with options of their own.
        lr: the length of steps.
        momentum: the share of the last step's direction that is kept.
        dampening: how much less a new gradient counts.
        weight_decay: the share of a parameter that is added to its gradient.
        nesterov: whether to look a step ahead along the momentum.
        maximize: whether to climb.
        differentiable: whether the step itself is recorded.
        foreach, fused: of no effect here: they pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (w * w).sum().backward()
    ...     opt.step()
    >>> w
    tensor([0.4600], requires_grad=True)
    """

    _added: ClassVar[dict[str, Any]] = {
        "nesterov": False, "maximize": False, "differentiable": False, "foreach": None,
        "fused": False,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: Any = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_flags(fused, foreach, differentiable)

    def _step(self, group: dict[str, Any]) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        keep = group["momentum"] != 0  # else nothing is kept, not even an empty state
        buffers = [self.state[p].get("momentum_buffer") for p in params] if keep else []
        sgd(
            params, [p.grad for p in params], buffers, weight_decay=group["weight_decay"],
            momentum=group["momentum"], lr=group["lr"], dampening=group["dampening"],
            nesterov=group["nesterov"], maximize=group["maximize"],
        )  # fmt: skip
        for param, buffer in zip(params, buffers):
            self.state[param]["momentum_buffer"] = buffer


def sgd(
    params: list[Any], d_p_list: list[Any], momentum_buffer_list: list[Any],
    has_sparse_grad: bool = False, foreach: bool | None = None, fused: bool | None = None,
    grad_scale: Any = None, found_inf: Any = None, *, weight_decay: float, momentum: float,
    lr: float, dampening: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """One step of SGD on lists of tensors; buffers that are None are made, and put into the list.

    >>> from rushlight.optim.sgd import sgd
    >>> w = torch.tensor([1.])
    >>> with torch.no_grad():
    ...     sgd([w], [w * 2], [], lr=0.1, momentum=0, weight_decay=0, dampening=0, nesterov=False,
    ...         maximize=False)
    >>> w
    tensor([0.8000])
    """
    rate, decay, momentum, damp = option_values(lr, weight_decay, momentum, 1 - dampening)

    def rule(first: bool, g: Any, p: Any, *kept: Any) -> tuple[Any, ...]:
        g = descent_direction(g, p, maximize, decay)
        if momentum == 0:
            return (add_to(p, -rate * g),)
        v = g if first else add_to(scale(kept[0], momentum), g if damp == 1 else damp * g)
        return add_to(p, -rate * (g + momentum * v if nesterov else v)), v

    grads = unscaled(d_p_list, grad_scale, found_inf)
    sparse = [i for i, g in enumerate(grads) if g.is_sparse]
    if sparse:
        if momentum != 0 or decay != 0:
            raise RuntimeError("SGD takes sparse gradients without momentum and weight_decay only")
        for i in sparse:
            update_rows(rule, False, grads[i], params[i])
        dense = [i for i, g in enumerate(grads) if not g.is_sparse]
        params, grads = [params[i] for i in dense], [grads[i] for i in dense]
    if momentum == 0:
        update(rule, [False] * len(grads), grads, params)
        return
    new = [kept is None for kept in momentum_buffer_list]
    for i, grad in enumerate(grads):
        if new[i]:
            momentum_buffer_list[i] = functions["empty_like"](grad)
    update(rule, new, grads, params, momentum_buffer_list)
