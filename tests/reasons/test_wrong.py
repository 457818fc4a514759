"""What is odd about a gradient that is there."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.reasons.asking import Case, answers, cases, check

PROGRAMS = cases("""
=== rnn: exploded: 3 6
w = torch.tensor(3.0, requires_grad=True)
h = torch.ones(2, requires_grad=True)
state = h
for step in range(20):
    state = state * w
loss = state.sum()
loss.backward(retain_graph=True)
torch.why(h)
=== jump: exploded: 2 3
x = torch.tensor([1e-8, 1.0], requires_grad=True)
loss = (1 / x).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== accum: accumulated: 2 4
w = torch.ones(2, requires_grad=True)
for step in range(3):
    loss = (w * 2).sum()
    loss.backward(retain_graph=True)
torch.why(w)
=== fine: fine: 2 3
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = (x * x).sum()
loss.backward()
torch.why(x)
=== vanish: vanished: 2 5
x = torch.tensor([0.5], requires_grad=True)
h = x
for i in range(40):
    h = (h * 2).sigmoid() * 0.5
loss = h.sum()
loss.backward(retain_graph=True)
torch.why(x)
=== nan forward: fine: 2 3 4
x = torch.tensor([-1.0, 1.0], requires_grad=True)
h = x.log()
loss = (h * 2).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== hook: hook: 2 3
x = torch.ones(3, requires_grad=True)
h = x * 2
h.register_hook(lambda g: g * 0)
loss = h.sum()
loss.backward(retain_graph=True)
torch.why(x)
=== leaf hook: hook: 2
x = torch.ones(3, requires_grad=True)
x.register_hook(lambda g: g * float("nan"))
loss = (x * 2).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== modified in place: error: 2
x = torch.tensor([0.0, 2.0], requires_grad=True)
h = x * 1
y = h.exp()
y.zero_()
x.grad = torch.tensor([float("nan"), 1.0])
loss = y.sum()
torch.why(x, loss)
""")


@functools.cache
def said() -> dict[str, list[dict[str, Any]]]:
    return answers(PROGRAMS)


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_answer(case: Case) -> None:
    check(case, said()[case.name][0])
