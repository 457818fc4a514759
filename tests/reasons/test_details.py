"""Why a gradient is zero."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.reasons.asking import Case, answers, cases, check

PROGRAMS = cases("""
=== dead relu: dead relu: 2 3 4
x = torch.tensor([-1.0, -2.0], requires_grad=True)
h = torch.relu(x)
loss = h.sum()
torch.autograd.backward(loss, retain_graph=True)
torch.why(x)
=== dead relu freed: dead relu: 2 3 4
x = torch.tensor([-1.0, -2.0], requires_grad=True)
h = torch.relu(x)
loss = h.sum()
loss.backward()
torch.why(x)
=== saturated: saturated: 2 3 4
x = torch.tensor([50.0, 90.0], requires_grad=True)
p = x.sigmoid()
loss = ((p - 1) ** 2).sum() + p.sum()
loss.backward(retain_graph=True)
torch.why(x)
=== max: not chosen: 2 4
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 4.0], requires_grad=True)
loss = torch.maximum(a, b).sum()
loss.backward(retain_graph=True)
torch.why(a)
=== mul zero: multiplied by zero: 2 4
w = torch.ones(3, requires_grad=True)
mask = torch.zeros(3)
loss = (w * mask).sum()
loss.backward(retain_graph=True)
torch.why(w)
=== round: step function: 2 3
x = torch.tensor([0.4, 1.6], requires_grad=True)
loss = (x.round() * 2).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== overwritten: overwritten: 2 3 4 5
x = torch.ones(3, requires_grad=True)
h = x * 2
h[:] = 1.0
loss = h.sum()
loss.backward(retain_graph=True)
torch.why(x)
=== clamp: clamped: 2 3
x = torch.tensor([5.0, 7.0], requires_grad=True)
loss = x.clamp(0, 1).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== zero weights: multiplied by zero: 4
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
torch.nn.init.zeros_(net[1].weight)
loss = net(torch.ones(4, 2)).sum()
loss.backward(retain_graph=True)
torch.why(net[0].weight)
=== cancels: cancels: 2 3
x = torch.ones(3, requires_grad=True)
loss = (x - x).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== norm zero: norm at zero: 2 3
x = torch.zeros(3, requires_grad=True)
loss = x.norm()
loss.backward(retain_graph=True)
torch.why(x)
=== sig freed: saturated: 2 3
x = torch.tensor([50.0, 90.0], requires_grad=True)
loss = (1 - x.sigmoid()).sum()
loss.backward()
torch.why(x)
=== zero_grad zeros: zero_grad: 5 7
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = net(torch.ones(1, 2)).pow(2).sum()
loss.backward()
opt.step()
opt.zero_grad(set_to_none=False)
torch.why(net.weight)
=== mul freed: zero: 2 4
w = torch.ones(3, requires_grad=True)
mask = torch.zeros(3)
loss = (w * mask).sum()
loss.backward()
torch.why(w)
=== clamp freed: clamped: 2 3
x = torch.tensor([5.0, 7.0], requires_grad=True)
loss = x.clamp(0, 1).sum()
loss.backward()
torch.why(x)
=== tanh freed: saturated: 2 3
x = torch.tensor([50.0, 70.0], requires_grad=True)
loss = x.tanh().sum()
loss.backward()
torch.why(x)
=== max unselected: not chosen: 2 4
x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([5.0], requires_grad=True)
best = torch.cat([x, w]).max()
best.backward(retain_graph=True)
torch.why(x)
=== index: not chosen: 2 4
x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([5.0], requires_grad=True)
part = torch.cat([x, w])[2]
part.backward(retain_graph=True)
torch.why(x)
""")


@functools.cache
def said() -> dict[str, list[dict[str, Any]]]:
    return answers(PROGRAMS)


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_answer(case: Case) -> None:
    check(case, said()[case.name][0])
