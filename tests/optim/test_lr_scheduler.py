"""Schedulers: tensors as rates, the order of steps, saving."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import rushlight as torch
from tests.optim.helpers import leaf, steps


def test_a_scheduler_fills_a_tensor() -> None:
    w, rate = leaf(1.0), torch.tensor(0.5)
    opt = torch.optim.SGD([w], lr=rate)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    steps(opt, [w], 1)
    scheduler.step()
    assert rate.item() == 0.25 and opt.param_groups[0]["lr"] is rate


def test_the_order_of_steps_is_watched() -> None:
    w = leaf(1.0)
    opt = torch.optim.SGD([w], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 1)
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
        scheduler.step()
    opt = torch.optim.SGD([w], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 1)
    opt.step()
    scheduler.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()
    with pytest.warns(UserWarning, match="The epoch parameter"):
        scheduler.step(5)
    assert scheduler.get_last_lr() == [0.1 * 0.1**5]


def test_a_scheduler_is_saved() -> None:
    def made() -> tuple[Any, Any]:
        opt = torch.optim.SGD([leaf(1.0)], lr=1.0)
        sched = torch.optim.lr_scheduler
        return opt, sched.SequentialLR(
            opt, [sched.LinearLR(opt, 0.5, 1.0, 2), sched.ExponentialLR(opt, 0.5)], [2]
        )

    opt, scheduler = made()
    for _ in range(3):
        opt.step()
        scheduler.step()
    opt2, scheduler2 = made()
    scheduler2.load_state_dict(pickle.loads(pickle.dumps(scheduler.state_dict())))
    opt2.load_state_dict(opt.state_dict())
    for o, s in ((opt, scheduler), (opt2, scheduler2)):
        o.step()
        s.step()
    assert scheduler2.get_last_lr() == scheduler.get_last_lr() == [0.25]
