"""Adafactor."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays.vocabulary import divide, matmul, maximum, multiply, reduce_sum, reshape, sqrt
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import (
    BLOCK,
    add_to,
    check_lr,
    column,
    compute_into,
    count_steps,
    option_values,
    scale,
    unscaled,
    update_whole,
    zero_step,
)

__all__ = ["Adafactor", "adafactor"]
__dir__ = __all__.copy


class Adafactor(Optimizer):
    """Adafactor(params, lr=0.01, beta2_decay=-0.8, eps=(None, 0.001), d=1.0, weight_decay=0.0, *,
    foreach=None, maximize=False)

    Steps by the gradient over the root of the running mean of its square, of which it keeps, for a
    matrix, one number a row and one a column alone. `foreach` is accepted and changes nothing: it
    picks one of PyTorch's implementations.

    >>> w = torch.ones(2, 2, requires_grad=True)
    >>> opt = torch.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([[0.9000, 0.9000],
            [0.9000, 0.9000]], requires_grad=True)
    >>> opt.state[w]["row_var"].shape
    torch.Size([2, 1])
    """

    _added: ClassVar[dict[str, Any]] = {"foreach": None}

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad = param.grad
        state["step"] = zero_step()
        if grad.ndim > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = functions["zeros_like"](grad)

    def _step(self, group: dict[str, Any]) -> None:
        params, grads, states = self._gather(group)
        eps1, eps2 = group["eps"]
        rows, cols, others = (
            [state.get(name) for state in states] for name in ("row_var", "col_var", "variance")
        )
        adafactor(
            params, grads, rows, cols, others, column(states, "step"), d=group["d"], lr=group["lr"],
            beta2_decay=group["beta2_decay"], weight_decay=group["weight_decay"], eps1=eps1,
            eps2=eps2, maximize=group["maximize"],
        )  # fmt: skip


def adafactor(
    params: list[Any], grads: list[Any], row_vars: list[Any], col_vars: list[Any],
    variances: list[Any], state_steps: list[Any], foreach: bool | None = None,
    grad_scale: Any = None, found_inf: Any = None, has_complex: bool = False, *, d: float, lr: Any,
    beta2_decay: float, weight_decay: float, eps1: float | None, eps2: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of Adafactor on lists of tensors; of matrices `variances` are None, of others
    `row_vars` and `col_vars`."""
    rate, decay, most, falls = option_values(lr, weight_decay, d, beta2_decay)

    def rule(key: tuple[int, float], g: Any, p: Any, *kept: Any) -> tuple[Any, ...]:
        n, least = key
        if maximize:
            g = -g
        fresh = n**falls  # the weight of this step's squares
        size = min(rate, 1 / n**0.5) * maximum(_rms(p), eps2)
        if decay != 0:
            p = scale(p, 1 - rate * decay)
        squares = g * g
        if len(kept) == 2:
            rows = add_to(kept[0], fresh * (_mean(squares, -1) - kept[0]))
            cols = add_to(kept[1], fresh * (_mean(squares, -2) - kept[1]))
            spread = compute_into(multiply, squares, rows / maximum(_mean(rows, -2), least), cols)
            kept = (rows, cols)
        else:
            kept = (add_to(kept[0], fresh * (squares - kept[0])),)
            spread = 1.0 * kept[0]
        root = compute_into(sqrt, spread, compute_into(maximum, spread, spread, least * least))
        step = compute_into(divide, root, g, root)
        return add_to(p, scale(step, -size / maximum(_rms(step) / most, 1.0))), *kept

    grads = unscaled(grads, grad_scale, found_inf)
    if not grads:
        return
    for n, g, p, row, col, spread in zip(
        count_steps(state_steps), grads, params, row_vars, col_vars, variances
    ):
        least = dtypes.finfo(p.dtype).eps if eps1 is None else eps1
        kept = [[spread]] if row is None else [[row], [col]]
        update_whole(rule, [(n, least)], [g], [p], *kept)


def _mean(x: Any, axis: int) -> Any:
    return reduce_sum(x, (axis,), True) / x.shape[axis]


def _rms(x: Any) -> Any:
    """The root of the mean of squares."""
    size = 1
    for s in x.shape:
        size *= s
    flat = reshape(x, (size,))
    # One product reads the numbers once; those of low precision are summed in float32.
    whole = size > BLOCK and x.dtype.itemsize > 2
    total = matmul(flat, flat) if whole else reduce_sum(flat * flat, None, False)
    return sqrt(total) / size**0.5
