"""Answers about what was watched: certain, also where the graph shows nothing."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.core.engine.observers import begins
from rushlight.reasons import watching
from rushlight.reasons.watching import PASSES
from tests.reasons.asking import Case, answers, cases, check

PROGRAMS = cases("""
=== dead relu watch: dead relu: 3 4 5
with torch.why.watching():
    x = torch.tensor([-1.0, -2.0], requires_grad=True)
    h = torch.relu(x)
    loss = h.sum()
    loss.backward()
torch.why(x)
=== watch: detach: 7 3 4 6
def features(x):
    h = x * 2
    return h.detach()
def loss_of(x, w):
    return (features(x) * w).sum()
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
with torch.why.watching():
    loss = loss_of(x, w)
    loss.backward()
torch.why(x)
=== watch item: item: 3 5
with torch.why.watching():
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    loss = w * float(x * 2)
    loss.backward()
torch.why(x)
=== watch no_grad: no_grad: 3 6 7 8
with torch.why.watching():
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        h = x * 2
        h = h + 1
    loss = w * h
    loss.backward()
torch.why(x)
torch.why(h)
=== watch integers: integer: 3 5 6
with torch.why.watching():
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, requires_grad=True)
    index = (x * 2).long()
    loss = (w * index).sum()
    loss.backward()
torch.why(x)
=== watch data: data: 3 5
with torch.why.watching():
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, requires_grad=True)
    loss = (w * x.data).sum()
    loss.backward()
torch.why(x)
=== watch harmless looks: not in the loss: 3 4
with torch.why.watching():
    x = torch.ones(3, requires_grad=True)
    h = x * 2
    shown = h.detach().sum()
    w = torch.ones(3, requires_grad=True)
    loss = (w * 3).sum()
    loss.backward()
torch.why(x)
=== watch the trap: double where: 3 4 5
with torch.why.watching():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = torch.where(x > 0, x.sqrt(), 0.0)
    loss = y.sum()
    loss.backward()
torch.why(x)
=== watch zero factor: multiplied by zero: 3 5
with torch.why.watching():
    w = torch.ones(3, requires_grad=True)
    mask = torch.zeros(3)
    loss = (w * mask).sum()
    loss.backward()
torch.why(w)
=== asked inside the block: detach: 3 5 6
with torch.why.watching():
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, requires_grad=True)
    h = (x * 2).detach()
    loss = (h * w).sum()
    loss.backward()
    torch.why(x)
""")


@functools.cache
def said() -> dict[str, list[dict[str, Any]]]:
    return answers(PROGRAMS)


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_answer(case: Case) -> None:
    check(case, said()[case.name][0])


def test_what_was_watched_is_certain() -> None:
    assert all(said["certain"] for case in PROGRAMS for said in said_of(case))


def said_of(case: Case) -> list[dict[str, Any]]:
    return said()[case.name]


# --- the watching itself --------------------------------------------------------------------------
def test_it_ends_with_the_block_and_keeps_no_tensor_alive() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.why.watching() as log:
        h = x * 2
        gone = weakref.ref(h)
        del h
    assert gone() is None
    seen = len(log.events)
    assert [event.name for event in log.events] == ["mul"]
    (x * 3).sum().backward()
    assert len(log.events) == seen and not log.passes and not begins


def test_it_ends_with_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError), torch.why.watching() as log:
        _ = torch.ones(1) / 0
        _ = 1 / 0
    assert not begins
    _ = torch.ones(1) + 1
    assert "add" not in [event.name for event in log.events]


def test_gradients_are_what_they_are_without_it() -> None:
    def run() -> Any:
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        net(torch.ones(2, 3)).pow(2).mean().backward()
        return [p.grad for p in net.parameters()]

    with torch.why.watching() as log:
        watched = run()
    assert all(torch.equal(a, b) for a, b in zip(watched, run(), strict=True))
    assert len(log.passes) == 1 and len(log.passes[0]) == 7


def test_only_the_last_passes_are_remembered() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.why.watching() as log:
        for _ in range(10):
            (x * x).sum().backward()
    assert len(log.passes) == PASSES


def test_it_can_be_forgotten() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.why.watching():
        loss = x.exp().sum()
        loss.backward()
    node = weakref.ref(loss.grad_fn)
    del loss
    assert node() is not None
    torch.why.forget()
    assert node() is None and watching.last is None


def test_other_threads_are_not_watched() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.why.watching() as log:
        thread = threading.Thread(target=lambda: (x * x).sum().backward())
        thread.start()
        thread.join()
    assert not log.events and not log.passes
