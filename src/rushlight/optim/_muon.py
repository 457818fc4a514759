"""Muon."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.vocabulary import cast, matmul, maximum, reduce_sum, sqrt, swap
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import add_to, check_lr, column, option_values, scale, update_whole

__all__ = ["Muon"]
__dir__ = __all__.copy

EPS: Final = 1e-7
DEFAULT_A: Final = 3.4445
DEFAULT_B: Final = -4.7750
DEFAULT_C: Final = 2.0315
DEFAULT_NS_STEPS: Final = 5
_RATES: Final = ("original", "match_rms_adamw")


class Muon(Optimizer):
    """Muon(params, lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=True,
    ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-07, ns_steps=5, adjust_lr_fn=None)

    For matrices: steps by the running mean of gradients, made nearly orthogonal by a few steps of
    Newton and Schulz's iteration in bfloat16, so that all directions count the same. Other
    parameters (biases, embeddings) go to another optimiser, such as AdamW. `adjust_lr_fn` says how
    the rate follows a matrix's shape: "original", or "match_rms_adamw" to use AdamW's rates.

    >>> w = torch.eye(2, requires_grad=True)
    >>> opt = torch.optim.Muon([w], lr=0.1, weight_decay=0.)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> opt.state[w]["momentum_buffer"]
    tensor([[0.1000, 0.0000],
            [0.0000, 0.1000]])
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS, ns_steps: int = DEFAULT_NS_STEPS, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _RATES:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{param.size()}"
                    )

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        state["momentum_buffer"] = functions["zeros_like"](param.grad)

    def _step(self, group: dict[str, Any]) -> None:
        if any(param.is_complex() for param in group["params"]):
            raise RuntimeError("Muon does not support complex parameters")
        params, grads, states = self._gather(group)
        muon(
            params, grads, column(states, "momentum_buffer"), lr=group["lr"],
            weight_decay=group["weight_decay"], momentum=group["momentum"],
            nesterov=group["nesterov"], ns_coefficients=group["ns_coefficients"],
            ns_steps=group["ns_steps"], eps=group["eps"], adjust_lr_fn=group["adjust_lr_fn"],
            has_complex=False,
        )  # fmt: skip


def muon(
    params: list[Any], grads: list[Any], muon_momentum_bufs: list[Any], *,
    foreach: bool | None = None, lr: float, weight_decay: float, momentum: float, nesterov: bool,
    ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float,
    adjust_lr_fn: str | None, has_complex: bool,
) -> None:  # fmt: skip
    """One step of Muon on lists of matrices."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    rate, decay, keep = option_values(lr, weight_decay, momentum)
    _check_iteration(ns_coefficients, ns_steps)

    def rule(key: float, g: Any, p: Any, m: Any) -> tuple[Any, ...]:
        m = add_to(m, (1 - keep) * (g - m))
        step = _orthogonal(g + keep * (m - g) if nesterov else m, ns_coefficients, ns_steps, eps)
        kind = getattr(p, "_array", p).dtype  # of a tensor the raw one too
        return add_to(scale(p, 1 - rate * decay), -key * cast(step, kind)), m

    rates = [_adjust_lr(rate, adjust_lr_fn, p.shape) for p in params]
    update_whole(rule, rates, grads, params, muon_momentum_bufs)


def _adjust_lr(lr: float, adjust_lr_fn: str | None, param_shape: Any) -> float:
    """The rate for a matrix of a shape."""
    rows, cols = param_shape[:2]
    if adjust_lr_fn == "match_rms_adamw":
        return float(lr * 0.2 * max(rows, cols) ** 0.5)
    return float(lr * max(1, rows / cols) ** 0.5)


def _zeropower_via_newtonschulz(
    grad: Any, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float
) -> Any:
    """A matrix with singular values near 1 and the singular vectors of `grad`, in bfloat16.

    >>> from rushlight.optim._muon import _zeropower_via_newtonschulz as orthogonal
    >>> orthogonal(torch.eye(2) * 3, (3.4445, -4.775, 2.0315), 5, 1e-7)
    tensor([[1.1250, 0.0000],
            [0.0000, 1.1250]], dtype=torch.bfloat16)
    """
    _check_iteration(ns_coefficients, ns_steps)
    if grad.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    return _orthogonal(grad, ns_coefficients, ns_steps, eps).to(dtypes.bfloat16)


def _check_iteration(coefficients: tuple[float, ...], steps: int) -> None:
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")


def _orthogonal(x: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """Newton and Schulz's iteration: each step applies the odd polynomial with these coefficients
    to all singular values. Computes in float32, and rounds each result to bfloat16."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = _rounded(swap(x, -1, -2) if tall else x)  # the products below are of the shorter side
    norm = _rounded(sqrt(reduce_sum(x * x, None, False)))
    x = _rounded(x / maximum(norm, eps))
    for _ in range(steps):
        squares = _rounded(matmul(x, swap(x, -1, -2)))
        weights = _rounded(b * squares + c * matmul(squares, squares))
        x = _rounded(a * x + matmul(weights, x))
    return swap(x, -1, -2) if tall else x


def _rounded(x: Any) -> Any:
    return cast(cast(x, dtypes.bfloat16.numpy), dtypes.float32.numpy)
