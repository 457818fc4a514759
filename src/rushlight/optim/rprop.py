"""Rprop."""

from __future__ import annotations

from typing import Any

from rushlight.arrays.vocabulary import maximum, minimum, sign, where
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import FLAGS, add_to, check, column, count_steps, option_values, update

__all__ = ["Rprop", "rprop"]
__dir__ = __all__.copy


class Rprop(Optimizer):
    """Rprop(params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, capturable=False,
    foreach=None, maximize=False, differentiable=False)

    Each number has a step size of its own, which grows while its gradient keeps its sign and
    shrinks when that turns; how large the gradient is does not matter. `foreach` and `capturable`
    are accepted and change nothing: they pick one of PyTorch's implementations.

    >>> w = torch.tensor([1.], requires_grad=True)
    >>> opt = torch.optim.Rprop([w], lr=0.1)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (w * w).sum().backward()
    ...     opt.step()
    >>> w
    tensor([0.7800], requires_grad=True)
    """

    _zeros = ("prev",)
    _added = FLAGS

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        super()._start(state, param, group)
        lr = float(group["lr"])
        state["step_size"] = functions["full_like"](
            param.grad, complex(lr, lr) if param.is_complex() else lr
        )

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        rprop(
            params, grads, column(states, "prev"), column(states, "step_size"),
            column(states, "step"), maximize=group["maximize"], step_size_min=least,
            step_size_max=most, etaminus=shrink, etaplus=grow,
        )  # fmt: skip


def rprop(
    params: list[Any], grads: list[Any], prevs: list[Any], step_sizes: list[Any],
    state_steps: list[Any], foreach: bool | None = None, capturable: bool = False,
    maximize: bool = False, differentiable: bool = False, has_complex: bool = False, *,
    step_size_min: float, step_size_max: float, etaminus: float, etaplus: float,
) -> None:  # fmt: skip
    """One step of Rprop on lists of tensors."""
    least, most, shrink, grow = option_values(step_size_min, step_size_max, etaminus, etaplus)

    def rule(n: int, g: Any, p: Any, before: Any, size: Any) -> tuple[Any, ...]:
        if maximize:
            g = -g
        same = g * before
        turned = same < 0
        size = where(turned, size * shrink, where(same > 0, size * grow, size))
        size = minimum(maximum(size, least), most)
        g = where(turned, 0.0 * g, g)  # after a turn: stay, and begin anew
        return add_to(p, -sign(g) * size), g, size

    update(rule, count_steps(state_steps), grads, params, prevs, step_sizes)
