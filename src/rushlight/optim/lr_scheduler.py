"""Learning rates that change from epoch to epoch.

Each class says how one learning rate follows from the one before (`_next`), so that schedulers can
be chained; `_at` is the closed form, where there is one.
"""

from __future__ import annotations

import math
import typing as _typing
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.missing import face as _face
from rushlight.optim.optimizer import Optimizer

if _typing.TYPE_CHECKING:
    from rushlight.optim.lr_cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
    "StepLR",
]  # fmt: skip

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER = (
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def copy_value(value: Any) -> Any:
    return value.clone() if isinstance(value, TensorBase) else value  # type: ignore[attr-defined]


def values(optimizer: Optimizer, key: str) -> list[Any]:
    """One option of all groups."""
    return [copy_value(group[key]) for group in optimizer.param_groups]


def set_lr(group: dict[str, Any], lr: Any) -> None:
    """A tensor keeps its place in memory, and takes the value."""
    if isinstance(group["lr"], TensorBase):
        group["lr"].fill_(lr)  # type: ignore[attr-defined]
    else:
        group["lr"] = lr.item() if isinstance(lr, TensorBase) else lr  # type: ignore[attr-defined]


def check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class _enable_get_lr_call:
    """Inside it a scheduler's `get_lr` does not warn."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *args: object) -> None:
        self.o._get_lr_called_within_step = False


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    """Warn if a user, not a step, asks for the rates: that may reckon on from the last ones."""
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=3,
        )


class LRScheduler:
    """Base class of schedulers: subclasses give `get_lr`, one learning rate a group."""

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copy_value(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're "
                    "trying to resume training from a checkpoint but haven't properly loaded the "
                    "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run "
                    "(not recommended)"
                )
        self.base_lrs = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        if "_lr_scheduled" not in optimizer.__dict__:  # only steps from now on count
            optimizer.__dict__.update(_lr_scheduled=True, _opt_called=False)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler knows, but for the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float]:
        """The learning rates now, one a group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rates for this epoch, one a group."""
        _warn_get_lr_called_within_step(self)
        pairs = zip(self.optimizer.param_groups, self.base_lrs, strict=True)
        return [
            self._next(copy_value(group["lr"]), base, i) for i, (group, base) in enumerate(pairs)
        ]

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        """The learning rate of group `i` after `lr`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch; call it after the optimiser's `step`."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if "step" in self.optimizer.__dict__:
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                f"`lr_scheduler.step()`. {_ORDER}",
                UserWarning,
                stacklevel=3,
            )
        elif not self.optimizer.__dict__.get("_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
                f"the first value of the learning rate schedule. {_ORDER}",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed is None else closed()
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_lr(group, lr)
        self._last_lr = values(self.optimizer, "lr")


class _LRScheduler(LRScheduler):
    """What `LRScheduler` was called before."""


class Closed(LRScheduler):
    """A scheduler with a closed form."""

    def _at(self, base: Any) -> Any:
        """The learning rate at `last_epoch`, from the first one."""
        raise NotImplementedError

    def _get_closed_form_lr(self) -> list[Any]:
        return [self._at(base) for base in self.base_lrs]


def one_per_group(given: Any, optimizer: Optimizer) -> list[Callable[[int], float]]:
    """One function a group."""
    check_optimizer(optimizer)
    groups = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * groups
    if len(given) != groups:
        raise ValueError(f"Expected {groups} lr_lambdas, but got {len(given)}")
    return list(given)


class Functional(LRScheduler):
    """A scheduler by functions of the epoch. Those that are objects are saved, plain ones not."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = one_per_group(lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler knows, but for the optimiser and plain functions."""
        hidden = ("optimizer", "lr_lambdas")
        state = {key: value for key, value in self.__dict__.items() if key not in hidden}
        state["lr_lambdas"] = [
            fn.__dict__.copy() if not hasattr(fn, "__code__") else None for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, state in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if state is not None:
                fn.__dict__.update(state)


class LambdaLR(Functional):
    """LambdaLR(optimizer, lr_lambda, last_epoch=-1): the first rate times a function of the epoch.

    >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5**epoch)
    >>> opt.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        return base * self.lr_lambdas[i](self.last_epoch)


class MultiplicativeLR(Functional):
    """MultiplicativeLR(optimizer, lr_lambda, last_epoch=-1): times a function of the epoch."""

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        return lr if self._is_initial else lr * self.lr_lambdas[i](self.last_epoch)


class StepLR(Closed):
    """StepLR(optimizer, step_size, gamma=0.1, last_epoch=-1): times gamma every `step_size`.

    >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(opt, step_size=2)
    >>> for epoch in range(3):
    ...     print(scheduler.get_last_lr())
    ...     opt.step(); scheduler.step()
    [1.0]
    [1.0]
    [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        at_step = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return lr * self.gamma if at_step else lr

    def _at(self, base: Any) -> Any:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(Closed):
    """MultiStepLR(optimizer, milestones, gamma=0.1, last_epoch=-1): times gamma at milestones."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        if self.last_epoch not in self.milestones:
            return lr
        return lr * self.gamma ** self.milestones[self.last_epoch]

    def _at(self, base: Any) -> Any:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return base * self.gamma**passed


class ConstantLR(Closed):
    """ConstantLR(optimizer, factor=1/3, total_iters=5, last_epoch=-1): smaller, until an epoch."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def _at(self, base: Any) -> Any:
        over = self.last_epoch >= self.total_iters
        return base * (self.factor + over * (1 - self.factor))


class LinearLR(Closed):
    """LinearLR(optimizer, start_factor=1/3, end_factor=1.0, total_iters=5, last_epoch=-1): from
    one multiple of the first rate to another, linearly."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
        total_iters: int = 5, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        slope = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * slope
        return lr * (1.0 + slope / before)

    def _at(self, base: Any) -> Any:
        slope = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return base * (self.start_factor + slope * done)


class ExponentialLR(Closed):
    """ExponentialLR(optimizer, gamma, last_epoch=-1): times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        return lr if self._is_initial else lr * self.gamma

    def _at(self, base: Any) -> Any:
        return base * self.gamma**self.last_epoch


class PolynomialLR(Closed):
    """PolynomialLR(optimizer, total_iters=5, power=1.0, last_epoch=-1): down to 0."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return lr * (now / before) ** self.power

    def _at(self, base: Any) -> Any:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return base * (1.0 - done) ** self.power


class CosineAnnealingLR(Closed):
    """CosineAnnealingLR(optimizer, T_max, eta_min=0.0, last_epoch=-1): down to `eta_min` in
    `T_max` epochs, along half a cosine wave, and up again."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: Any, base: Any, i: int) -> Any:
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return lr
        if self._step_count == 1 and epoch > 0:
            return low + (base - low) * (1 + math.cos(epoch * math.pi / period)) / 2
        if (epoch - 1 - period) % (2 * period) == 0:  # the rate before was `low`: up again
            return lr + (base - low) * (1 - math.cos(math.pi / period)) / 2
        now = 1 + math.cos(math.pi * epoch / period)
        before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return now / before * (lr - low) + low

    def _at(self, base: Any) -> Any:
        low = self.eta_min
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return low + (base - low) * wave / 2


class Several(LRScheduler):
    """A scheduler made of others."""

    _schedulers: list[Any]

    def _check(self, schedulers: Sequence[Any], optimizer: Any, needs: str) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler{needs}, but got no scheduler.")
        optimizer = optimizer or getattr(schedulers[0], "optimizer", None)
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    f"additional kwargs to be specified when calling `step`, but got one at index "
                    f"{i} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {i} has {scheduler.optimizer}, "
                    f"which is different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler and those inside it know, but for the optimiser."""
        hidden = ("optimizer", "_schedulers")
        state = {key: value for key, value in self.__dict__.items() if key not in hidden}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(Several):
    """SequentialLR(optimizer, schedulers, milestones, last_epoch=-1): one scheduler after the
    other, changing at milestones."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self._check(schedulers, optimizer, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler took its first step when it was made: only the first may have.
        for group in optimizer.param_groups:
            set_lr(group, group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the first step of the schedulers inside."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for inner in sched._schedulers:
                self.recursive_undo(inner)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(Several):
    """ChainedScheduler(schedulers, optimizer=None): several schedulers, all at every step."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        self._check(schedulers, optimizer, " to be chained")
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or schedulers[0].optimizer
        self._last_lr = values(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Let every scheduler go on to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values(self.optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """ReduceLROnPlateau(optimizer, mode='min', factor=0.1, patience=10, threshold=0.0001,
    threshold_mode='rel', cooldown=0, min_lr=0, eps=1e-08): times `factor` when a metric has not
    improved for more than `patience` epochs.

    >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    >>> for loss in (3., 3., 3.):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        each = isinstance(min_lr, (list, tuple))
        if each and len(min_lr) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if each else min_lr
        self.min_lrs = list(min_lr) if each else [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values(optimizer, "lr")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the rate was reduced so lately that bad epochs do not count."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Tell the metric of an epoch."""
        now = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(now, self.best):
            self.best = now
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values(self.optimizer, "lr")

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due "
                    "to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_lr(group, new)

    def _is_better(self, a: float, best: float) -> bool:
        if self.mode == "min":
            relative = self.threshold_mode == "rel"
            return a < (best * (1.0 - self.threshold) if relative else best - self.threshold)
        relative = self.threshold_mode == "rel"
        return a > (best * (self.threshold + 1.0) if relative else best + self.threshold)


if not _typing.TYPE_CHECKING:

    def _given(name: str) -> Any:
        """The schedulers of `lr_cycles`, when they are first asked for."""
        if name not in ("CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"):
            return None
        from rushlight.optim import lr_cycles

        return getattr(lr_cycles, name)

    __getattr__, __dir__ = _face("torch.optim.lr_scheduler", globals(), given=_given)
