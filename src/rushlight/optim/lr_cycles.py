"""Learning rates that go up and down: CyclicLR, OneCycleLR, CosineAnnealingWarmRestarts.

They are part of `lr_scheduler`, which imports them when they are first used."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight.optim.lr_scheduler import (
    LRScheduler,
    _enable_get_lr_call,
    _warn_get_lr_called_within_step,
    check_optimizer,
    set_lr,
    values,
)
from rushlight.optim.optimizer import Optimizer


def format_param(name: str, optimizer: Optimizer, param: Any) -> list[Any]:
    """One value a group, from one for all or from one for each."""
    groups = len(optimizer.param_groups)
    if not isinstance(param, (list, tuple)):
        return [param] * groups
    if len(param) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(param)} values, param_groups has {groups}."
        )
    return list(param)


class WithMomentum(LRScheduler):
    """A scheduler that moves the momentum as well: down while the rate goes up."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, optimizer: Optimizer, low: list[Any], high: list[Any]) -> None:
        """Set the momentum where it starts, and note its bounds in the groups."""
        for group, least, most in zip(optimizer.param_groups, low, high):
            self._set_momentum(group, most)
            group["max_momentum"] = most
            group["base_momentum"] = least

    def _find_momentum(self, optimizer: Optimizer) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(WithMomentum):
    """CyclicLR(optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None,
    mode='triangular', gamma=1.0, scale_fn=None, scale_mode='cycle', cycle_momentum=True,
    base_momentum=0.8, max_momentum=0.9, last_epoch=-1): up and down between two rates; step it
    after every batch.

    `mode` says how high the peaks are: "triangular" all the same, "triangular2" half as high from
    cycle to cycle, "exp_range" gamma to the power of the step; or `scale_fn` does, of the cycle or
    of the step by `scale_mode`.

    >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1., momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(opt, 0.1, 0.5, step_size_up=2)
    >>> for step in range(4):
    ...     opt.step(); scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 2), round(opt.param_groups[0]["momentum"], 2))
    0.3 0.85
    0.5 0.8
    0.3 0.85
    0.1 0.9
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        lows = format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for low, group in zip(lows, optimizer.param_groups):
                set_lr(group, low)
        self.max_lrs = format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum(optimizer)
            self.base_momentums = format_param("base_momentum", optimizer, base_momentum)
            self.max_momentums = format_param("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._begin_momentum(optimizer, self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """How high a peak is, as a part of the full height."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return float(1 / 2.0 ** (x - 1))
        return float(self.gamma**x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        """The learning rates for this step, one a group; the momentum is set on the way."""
        _warn_get_lr_called_within_step(self)
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        part = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        high = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [low + (top - low) * part * high for low, top in zip(self.base_lrs, self.max_lrs)]
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums)
            for group, (least, most) in zip(self.optimizer.param_groups, bounds):
                self._set_momentum(group, most - (most - least) * part * high)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler knows, but for the optimiser and a plain scale function."""
        state = super().state_dict()
        fn = state.pop("_scale_fn_custom")
        plain = fn is None or hasattr(fn, "__code__")
        state["_scale_fn_custom"] = None if plain else fn.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        saved = state_dict.get("_scale_fn_custom")
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})


class OneCycleLR(WithMomentum):
    """OneCycleLR(optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None,
    pct_start=0.3, anneal_strategy='cos', cycle_momentum=True, base_momentum=0.85,
    max_momentum=0.95, div_factor=25.0, final_div_factor=10000.0, three_phase=False,
    last_epoch=-1): up to `max_lr` and down to almost nothing, once; step it after every batch.

    It starts at `max_lr / div_factor`, is at the top after `pct_start` of the steps, and ends at
    the start's rate over `final_div_factor`; with `three_phase` it comes by the start's rate again.

    >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1., momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=10)
    >>> for step in range(9):
    ...     opt.step(); scheduler.step()
    ...     if step % 2: print(round(scheduler.get_last_lr()[0], 4))
    1.0
    0.8117
    0.3887
    0.0495
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
        max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = self._phases(pct_start, three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        tops = format_param("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for top, group in zip(tops, optimizer.param_groups):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum(optimizer)
            low = format_param("base_momentum", optimizer, base_momentum)
            high = format_param("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._begin_momentum(optimizer, low, high)
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start: float, three: bool) -> list[dict[str, Any]]:
        top = float(pct_start * self.total_steps) - 1
        ends: list[Any] = [top, self.total_steps - 1]
        rates = ["initial_lr", "max_lr", "min_lr"]
        momenta = ["max_momentum", "base_momentum", "max_momentum"]
        if three:
            ends.insert(1, float(2 * pct_start * self.total_steps) - 2)
            rates.insert(2, "initial_lr")
            momenta.append("max_momentum")
        return [
            {
                "end_step": end, "start_lr": rates[i], "end_lr": rates[i + 1],
                "start_momentum": momenta[i], "end_momentum": momenta[i + 1],
            }
            for i, end in enumerate(ends)
        ]  # fmt: skip

    def _anneal_func(self, start: Any, end: Any, pct: float) -> Any:
        """A value on the way from `start` to `end`."""
        if self._anneal_func_type == "linear":
            return (end - start) * pct + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    def get_lr(self) -> list[Any]:
        """The learning rates for this step, one a group; the momentum is set on the way."""
        _warn_get_lr_called_within_step(self)
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(
                f"Tried to step {now} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start: Any = 0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if now <= end:
                break
            if phase is not self._schedule_phases[-1]:
                start = end
        pct = (now - start) / (end - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], pct))
            if self.cycle_momentum:
                first, last = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(first, last, pct))
        return rates


def _steps(total: Any, epochs: Any, each: Any) -> int:
    if total is None and (epochs is None or each is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    if total is not None:
        _check_positive("total_steps", total)
        return int(total)
    _check_positive("epochs", epochs)
    _check_positive("steps_per_epoch", each)
    return int(epochs * each)


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")


class CosineAnnealingWarmRestarts(LRScheduler):
    """CosineAnnealingWarmRestarts(optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1): down to
    `eta_min` along half a cosine wave in `T_0` epochs, then from the first rate again, each time
    in `T_mult` times as many. `step` may be told the epoch, with a fraction, after every batch.

    >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
    >>> for epoch in range(3):
    ...     opt.step(); scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.5]
    [1.0]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_positive("T_0", T_0)
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for this epoch, one a group."""
        _warn_get_lr_called_within_step(self)
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Go on to the next epoch, or to the one that is told, which may have a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            grows = self.T_mult - 1
            n = int(math.log(epoch / self.T_0 * grows + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / grows
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            rates = self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_lr(group, lr)
        self._last_lr = values(self.optimizer, "lr")
