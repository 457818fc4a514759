"""Averages of a model's weights over training: stochastic weight averaging, and moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.nn.modules.module import Module
from rushlight.ops.registry import functions
from rushlight.optim.lr_cycles import format_param
from rushlight.optim.lr_scheduler import LRScheduler, _warn_get_lr_called_within_step
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rules import add_to, update

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip
__dir__ = __all__.copy

PARAM_LIST: TypeAlias = list[Any] | tuple[Any, ...]


# --- how an average goes on -----------------------------------------------------------------------
def _go_on(averages: PARAM_LIST, currents: PARAM_LIST, weight: float) -> None:
    """averages += weight (currents - averages)."""

    def rule(key: None, now: Any, mean: Any) -> tuple[Any]:
        return (add_to(mean, weight * (now - mean)),)

    means, nows = [], []
    for mean, now in zip(averages, currents, strict=True):
        if mean.is_floating_point() or mean.is_complex():
            means.append(mean)
            nows.append(now)
        else:  # integers: a float on the way
            mean.copy_(mean + weight * (now - mean))
    update(rule, [None] * len(means), nows, means)


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that updates lists of exponential moving averages, for `AveragedModel`.

    >>> model = torch.nn.Linear(1, 1)
    >>> average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    >>> ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=average)
    >>> ema.update_parameters(model)
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: PARAM_LIST, current_param_list: PARAM_LIST, _: Any) -> None:
        _go_on(ema_param_list, current_param_list, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that updates lists of plain means, for `AveragedModel`."""

    @no_grad()
    def swa_update(
        averaged_param_list: PARAM_LIST, current_param_list: PARAM_LIST, num_averaged: Any
    ) -> None:
        _go_on(averaged_param_list, current_param_list, 1 / (int(num_averaged) + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """A function that gives the next exponential moving average of one tensor.

    >>> average = torch.optim.swa_utils.get_ema_avg_fn(0.9)
    >>> average(torch.tensor(1.), torch.tensor(2.), 5)
    tensor(1.1000)
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """A function that gives the next mean of one tensor, from that of `num_averaged`.

    >>> average = torch.optim.swa_utils.get_swa_avg_fn()
    >>> average(torch.tensor(1.), torch.tensor(2.), 3)
    tensor(1.2500)
    """

    @no_grad()
    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


# --- models ---------------------------------------------------------------------------------------
class AveragedModel(Module):
    """AveragedModel(model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False)

    A copy of a model whose parameters are the average of those that the model had whenever
    `update_parameters` was called: their mean, or what `avg_fn(average, current, count)` or, for
    all at once, `multi_avg_fn(averages, currents, count)` make of them. Buffers are copied, or
    averaged too with `use_buffers`.

    >>> model = torch.nn.Linear(1, 1)
    >>> mean = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1., 2., 6.):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     mean.update_parameters(model)
    >>> mean.module.weight.item(), mean.n_averaged
    (3.0, tensor(3))
    """

    n_averaged: Any

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        count = functions["tensor"](0, dtype=functions["tensor"](0).dtype, device=device)
        self.register_buffer("n_averaged", count)
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of `model` into the average."""

        def all_of(module: Module) -> list[Any]:
            more = module.buffers() if self.use_buffers else ()
            return [t.detach() for t in chain(module.parameters(), more)]

        means, nows = all_of(self.module), all_of(model)
        nows = [now.to(mean.device) for mean, now in zip(means, nows)]
        if int(self.n_averaged) == 0:
            for mean, now in zip(means, nows):
                mean.copy_(now)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(means, nows, self.n_averaged)
        elif self.avg_fn is not None:
            for mean, now in zip(means, nows):
                mean.copy_(self.avg_fn(mean, now, self.n_averaged))
        else:
            get_swa_multi_avg_fn()(means, nows, self.n_averaged)
        if not self.use_buffers:
            for mean, now in zip(self.module.buffers(), model.buffers()):
                mean.detach().copy_(now.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """update_bn(loader, model, device=None)

    Compute the running means and variances of a model's batch norms anew, over all of `loader`: an
    averaged model has none that fit its weights. Of batches that are tuples or lists the first part
    is the model's input.

    >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(1))
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.], [3.]])], model)
    >>> model[0].running_mean
    tensor([2.])
    """
    from rushlight import nn

    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    norms: list[Any] = [m for m in model.modules() if isinstance(m, kinds)]
    if not norms:
        return
    momenta, training = [norm.momentum for norm in norms], model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # plain means over all batches
    for batch in loader:
        x: Any = batch[0] if isinstance(batch, (list, tuple)) else batch
        if device is not None and isinstance(x, TensorBase):
            x = x.to(device)  # type: ignore[attr-defined]
        model(x)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.train(training)


# --- rates ----------------------------------------------------------------------------------------
class SWALR(LRScheduler):
    """SWALR(optimizer, swa_lr, anneal_epochs=10, anneal_strategy='cos', last_epoch=-1): to `swa_lr`
    in `anneal_epochs` epochs, along a cosine or a line, and then constant.

    >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.)
    >>> swa = torch.optim.swa_utils
    >>> scheduler = swa.SWALR(opt, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for epoch in range(3):
    ...     opt.step(); scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.75]
    [0.5]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10,
        anneal_strategy: str = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        for group, lr in zip(optimizer.param_groups, format_param("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step: int) -> float:
        """How much `swa_lr` weighs after a number of steps."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> list[Any]:
        """The learning rates for this epoch, one a group."""
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(step - 1), self._weight(step)
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
