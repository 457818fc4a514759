"""L-BFGS: Newton's method with a guess of the curvature from the last gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight.autograd.grad_mode import enable_grad, no_grad
from rushlight.core.graph import TensorBase
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import as_real_pairs, check_lr

__all__ = ["LBFGS"]
__dir__ = __all__.copy


class LBFGS(Optimizer):
    """LBFGS(params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-07,
    tolerance_change=1e-09, history_size=100, line_search_fn=None)

    Up to `max_iter` iterations a step, each along the gradient times an estimate of the inverse of
    the second derivative, from the last `history_size` changes. `step` needs a closure that clears
    the gradients, computes the loss and calls `backward`, for it is called several times.

    Args:
        params: tensors to train, all in one group.
        lr: the length of steps; with a line search, of the first one tried.
        max_iter: iterations in one call of `step`.
        max_eval: calls of the closure in one call of `step` (`max_iter * 5 // 4`).
        tolerance_grad: it stops where no gradient is larger,
        tolerance_change: or where parameters and loss change by less.
        history_size: how many changes are kept, each as large as all parameters.
        line_search_fn: "strong_wolfe" looks for a good length of each step; None takes `lr`.

    >>> w = torch.tensor([1., -2.], requires_grad=True)
    >>> opt = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = ((w - 3) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> opt.step(closure)
    tensor(641., grad_fn=<SumBackward0>)
    >>> closure() < 1e-4
    tensor(True)
    """

    def __init__(
        self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        defaults = {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache: int | None = None

    if not TYPE_CHECKING:  # checkers see the two forms of `Optimizer.step`

        def step(self, closure: Callable[[], Any]) -> Any:
            """Some iterations. `closure` clears the gradients, computes the loss, and calls
            `backward`; what it first gave is returned."""
            with no_grad():
                return self._iterate(enable_grad()(closure))

    # --- parameters as one vector ----------------------------------------------------------------
    def _numel(self) -> int:
        if self._numel_cache is None:
            each = (p.numel() * (2 if p.is_complex() else 1) for p in self._params)
            self._numel_cache = sum(each)
        return self._numel_cache

    def _gather_flat_grad(self) -> Any:
        parts = []
        for p in self._params:
            if p.grad is None:
                parts.append(as_real_pairs(p.new_zeros(p.shape)).reshape(-1))
            else:
                grad = p.grad.to_dense() if p.grad.is_sparse else p.grad
                parts.append(as_real_pairs(grad).reshape(-1))
        return functions["cat"](parts, 0)

    def _add_grad(self, step_size: Any, direction: Any) -> None:
        start = 0
        for p in self._params:
            into = as_real_pairs(p)
            stop = start + into.numel()
            into.add_(direction[start:stop].view_as(into), alpha=step_size)
            start = stop

    def _clone_param(self) -> list[Any]:
        return [p.detach().clone() for p in self._params]

    def _set_param(self, params_data: list[Any]) -> None:
        for p, value in zip(self._params, params_data, strict=True):
            p.copy_(value)

    def _directional_evaluate(
        self, closure: Callable[[], Any], x: list[Any], t: Any, d: Any
    ) -> tuple[float, Any]:
        """The loss and its gradient at x + t d; the parameters are x again afterwards."""
        self._add_grad(t, d)
        loss = _value(closure())
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad

    # --- iterations ------------------------------------------------------------------------------
    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, most = group["lr"], group["max_iter"]
        flat_enough, little = group["tolerance_grad"], group["tolerance_change"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss = _value(first_loss)
        evaluated = 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if grad.abs().max() <= flat_enough:
            return first_loss
        kept = History(state)
        done = 0
        while done < most:
            done += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                kept.begin(grad)
            else:
                kept.learn(grad, group["history_size"], state)
            kept.grad, kept.loss = grad.clone(), loss
            kept.t = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(kept.d)
            if slope > -little:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                loss, grad, kept.t, tried = _strong_wolfe(
                    lambda x, t, d: self._directional_evaluate(closure, x, t, d),
                    self._clone_param(), kept.t, kept.d, loss, grad, slope,
                )  # fmt: skip
                self._add_grad(kept.t, kept.d)
            else:
                self._add_grad(kept.t, kept.d)
                tried = 0
                if done != most:  # else the next step begins with this evaluation
                    loss, tried = _value(closure()), 1
                    grad = self._gather_flat_grad()
            evaluated += tried
            state["func_evals"] += tried
            if (
                done == most
                or evaluated >= group["max_eval"]
                or grad.abs().max() <= flat_enough
                or (kept.d * kept.t).abs().max() <= little
                or abs(loss - kept.loss) < little
            ):
                break
        kept.save(state)
        return first_loss


def _value(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, TensorBase) else loss)  # type: ignore[attr-defined]


class History:
    """What an LBFGS knows from earlier iterations: of the last changes, those of the gradient
    (`dirs`), those of the parameters (`steps`), and one over their products (`ro`)."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.d: Any = state.get("d")  # the direction of the last iteration
        self.t = state.get("t")  # how far along it went
        self.dirs: list[Any] = state.get("old_dirs", [])
        self.steps: list[Any] = state.get("old_stps", [])
        self.ro: list[Any] = state.get("ro", [])
        self.scale = state.get("H_diag", 1)
        self.grad = state.get("prev_flat_grad")
        self.loss = state.get("prev_loss")

    def save(self, state: dict[str, Any]) -> None:
        state.update(
            d=self.d, t=self.t, old_dirs=self.dirs, old_stps=self.steps, ro=self.ro,
            H_diag=self.scale, prev_flat_grad=self.grad, prev_loss=self.loss,
        )  # fmt: skip

    def begin(self, grad: Any) -> None:
        self.d, self.dirs, self.steps, self.ro, self.scale = grad.neg(), [], [], [], 1

    def learn(self, grad: Any, most: int, state: dict[str, Any]) -> None:
        """Take up the last change, and find the next direction."""
        y, s = grad.sub(self.grad), self.d.mul(self.t)
        product = y.dot(s)
        if product > 1e-10:  # curved upwards: a change to learn from
            if len(self.dirs) == most:
                for column in (self.dirs, self.steps, self.ro):
                    column.pop(0)
            self.dirs.append(y)
            self.steps.append(s)
            self.ro.append(1.0 / product)
            self.scale = product / y.dot(y)
        weights = state.setdefault("al", [None] * most)
        d = grad.neg()
        for i in reversed(range(len(self.dirs))):
            weights[i] = self.steps[i].dot(d) * self.ro[i]
            d.add_(self.dirs[i], alpha=-weights[i])
        d = d.mul(self.scale)
        for i in range(len(self.dirs)):
            d.add_(self.steps[i], alpha=weights[i] - self.dirs[i].dot(d) * self.ro[i])
        self.d = d


# --- the line search ------------------------------------------------------------------------------
class Point(NamedTuple):
    """A point on a line: how far along, and the loss, gradient and slope there."""

    t: Any
    f: Any
    g: Any
    slope: Any


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None
) -> Any:
    """Where the cubic with these values and slopes at two places is least, within bounds.

    >>> from rushlight.optim.lbfgs import _cubic_interpolate
    >>> _cubic_interpolate(0., 1., -2., 2., 1., 2.)
    1.0
    """
    low, high = bounds if bounds is not None else ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt() if isinstance(square, TensorBase) else square**0.5  # type: ignore[attr-defined]
    if x1 <= x2:
        least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(least, low), high)


def _between(a: Point, b: Point, bounds: Any = None) -> Any:
    return _cubic_interpolate(a.t, a.f, a.slope, b.t, b.f, b.slope, bounds)


def _strong_wolfe(
    obj_func: Callable[..., Any], x: Any, t: Any, d: Any, f: Any, g: Any, gtd: Any,
    c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[Any, Any, Any, int]:  # fmt: skip
    """A length of step from `x` along `d` at which the loss has fallen enough (by `c1`) and is flat
    enough (by `c2`): first steps that bracket such a place, then closer ones.

    `obj_func(x, t, d)` gives the loss and gradient at x + t d; `f`, `g` and `gtd` are loss,
    gradient and slope at `x`. Returns loss, gradient, t, and how many times `obj_func` was called.
    """
    longest = d.abs().max()
    start = Point(0, f, g.clone(), gtd)

    def at(t: Any) -> Point:
        loss, grad = obj_func(x, t, d)
        return Point(t, loss, grad.clone(), grad.dot(d))

    def is_high(here: Point, reference: Any) -> bool:
        return bool(here.f > f + c1 * here.t * gtd or here.f >= reference)

    before, here, tries = start, at(t), 0
    evaluated = 1
    bracket = None
    while tries < max_ls:
        if is_high(here, before.f if tries > 1 else float("inf")):
            bracket = [before, here]
            break
        if abs(here.slope) <= -c2 * gtd:
            return here.f, here.g, here.t, evaluated
        if here.slope >= 0:
            bracket = [before, here]
            break
        bounds = (here.t + 0.01 * (here.t - before.t), here.t * 10)
        before, here = here, at(_between(before, here, bounds))
        evaluated += 1
        tries += 1
    if bracket is None:
        bracket = [start, here]

    low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
    slow = False  # the last place was close to an end of the bracket
    while tries < max_ls:
        ends = (bracket[0].t, bracket[1].t)
        if abs(ends[1] - ends[0]) * longest < tolerance_change:
            break
        t = _between(bracket[0], bracket[1])
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - t, t - min(ends)) < margin:
            if slow or t >= max(ends) or t <= min(ends):
                nearer_top = abs(t - max(ends)) < abs(t - min(ends))
                t = max(ends) - margin if nearer_top else min(ends) + margin
                slow = False
            else:
                slow = True
        else:
            slow = False
        here = at(t)
        evaluated += 1
        tries += 1
        if is_high(here, bracket[low].f):
            bracket[high] = here
            low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
            continue
        flat = abs(here.slope) <= -c2 * gtd
        if not flat and here.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = here
        if flat:
            break
    best = bracket[low]
    return best.f, best.g, best.t, evaluated
