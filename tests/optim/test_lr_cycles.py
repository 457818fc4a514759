"""Schedulers that go up and down: saving them, and tensors as rates."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import rushlight as torch
from tests.optim.helpers import leaf

MADE = torch.optim.lr_scheduler


class Half:
    """A scale function with a state."""

    def __init__(self) -> None:
        self.factor = 0.5

    def __call__(self, x: float) -> float:
        return self.factor


def made(kind: str) -> tuple[Any, Any]:
    opt = torch.optim.SGD([leaf(1.0)], lr=0.3, momentum=0.9)
    if kind == "OneCycleLR":
        return opt, MADE.OneCycleLR(opt, 0.5, total_steps=20)
    if kind == "CyclicLR":
        return opt, MADE.CyclicLR(opt, 0.1, 0.5, 3, scale_fn=Half())
    return opt, MADE.CosineAnnealingWarmRestarts(opt, 3, 2)


def run(opt: Any, scheduler: Any, n: int) -> list[Any]:
    seen = []
    for _ in range(n):
        opt.step()
        scheduler.step()
        seen.append([scheduler.get_last_lr(), opt.param_groups[0]["momentum"]])
    return seen


@pytest.mark.parametrize("kind", ["OneCycleLR", "CyclicLR", "CosineAnnealingWarmRestarts"])
def test_saving_and_going_on(kind: str) -> None:
    opt, scheduler = made(kind)
    run(opt, scheduler, 5)
    saved = pickle.loads(pickle.dumps([opt.state_dict(), scheduler.state_dict()]))
    again = copy.deepcopy(saved)
    opt2, scheduler2 = made(kind)
    opt2.load_state_dict(saved[0])
    scheduler2.load_state_dict(saved[1])
    assert saved[1] == again[1]  # loading took nothing out of it
    assert run(opt, scheduler, 6) == run(opt2, scheduler2, 6)


def test_a_scale_function_is_saved_if_it_is_an_object() -> None:
    _, scheduler = made("CyclicLR")
    assert scheduler.state_dict()["_scale_fn_custom"] == {"factor": 0.5}
    state = scheduler.state_dict()
    state["_scale_fn_custom"] = {"factor": 0.25}
    _, other = made("CyclicLR")
    other.load_state_dict(state)
    assert other.scale_fn(1) == 0.25


@pytest.mark.parametrize("kind", ["OneCycleLR", "CyclicLR", "CosineAnnealingWarmRestarts"])
def test_a_rate_that_is_a_tensor_is_filled(kind: str) -> None:
    rate = torch.tensor(0.3)
    opt = torch.optim.SGD([leaf(1.0)], lr=rate, momentum=0.9)
    make = {
        "OneCycleLR": lambda: MADE.OneCycleLR(opt, 0.5, total_steps=20),
        "CyclicLR": lambda: MADE.CyclicLR(opt, 0.1, 0.5, 3, scale_fn=Half()),
        "CosineAnnealingWarmRestarts": lambda: MADE.CosineAnnealingWarmRestarts(opt, 3, 2),
    }
    scheduler = make[kind]()
    run(opt, scheduler, 2)
    plain = made(kind)
    run(*plain, 2)
    assert opt.param_groups[0]["lr"] is rate
    assert rate.item() == pytest.approx(plain[1].get_last_lr()[0], rel=1e-6)


def test_asking_outside_of_a_step_warns() -> None:
    for kind in ("OneCycleLR", "CyclicLR", "CosineAnnealingWarmRestarts"):
        _, scheduler = made(kind)
        with pytest.warns(UserWarning, match="get_last_lr"):
            scheduler.get_lr()


def test_a_scheduler_of_ones_own() -> None:
    class Third(MADE._LRScheduler):
        def get_lr(self) -> list[Any]:
            return [base / (1 + self.last_epoch) for base in self.base_lrs]

    opt = torch.optim.SGD([leaf(1.0)], lr=0.6)
    scheduler = Third(opt)
    opt.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.3] and isinstance(scheduler, MADE.LRScheduler)
