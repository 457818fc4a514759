"""Why a gradient is NaN or infinite."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.reasons.asking import Case, answers, cases, check

PROGRAMS = cases("""
=== double where: double where: 2 3 4
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, x.sqrt(), 0.0)
loss = y.sum()
loss.backward(retain_graph=True)
torch.why(x)
=== double where freed: double where: 2 3 4
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, x.sqrt(), 0.0)
loss = y.sum()
loss.backward()
torch.why(x)
=== sqrt: not finite at sqrt: 2 4
x = torch.tensor([1.0, 1.0], requires_grad=True)
y = torch.tensor([1.0, 1.0])
distance = ((x - y) ** 2).sum().sqrt()
distance.backward(retain_graph=True)
torch.why(x)
=== log0: not finite at log: 2 3
p = torch.tensor([0.0, 1.0], requires_grad=True)
entropy = -(p * p.log()).sum()
entropy.backward(retain_graph=True)
torch.why(p)
=== beforehand nan: not finite at sqrt: 2 3
x = torch.tensor([0.0, 1.0], requires_grad=True)
loss = x.sqrt().sum()
torch.why(x, loss)
=== sub in where: double where: 2 3
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, 1 / x, torch.zeros(2))
y.sum().backward(retain_graph=True)
torch.why(x)
=== mask: 0 * inf: 2 4
x = torch.tensor([0.0, 4.0], requires_grad=True)
mask = (x > 0).float()
loss = (x.log() * mask).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== sqrt freed: not finite at sqrt: 2 4
x = torch.tensor([1.0, 1.0], requires_grad=True)
y = torch.tensor([1.0, 1.0])
distance = ((x - y) ** 2).sum().sqrt()
distance.backward()
torch.why(x)
=== log freed: not finite at log: 2 3
p = torch.tensor([0.0, 1.0], requires_grad=True)
entropy = -(p * p.log()).sum()
entropy.backward()
torch.why(p)
=== bad start: forward not finite: 4
with torch.why.watching():
    x = torch.ones(3, requires_grad=True)
    loss = (x * 2).exp().sum()
    loss.backward(torch.tensor(float("nan")))
torch.why(x)
=== nan factor: not finite: 2 3
x = torch.ones(3, requires_grad=True)
data = torch.tensor([1.0, float("nan"), 2.0])
loss = ((x * data) * 2).sum()
loss.backward()
torch.why(x)
=== nan factor kept: not finite at mul: 2 4
x = torch.ones(3, requires_grad=True)
data = torch.tensor([1.0, float("nan"), 2.0])
loss = ((x * data) * 2).sum()
loss.backward(retain_graph=True)
torch.why(x)
=== acos freed: not finite at acos: 2 3 4
x = torch.tensor([1.0, 0.5], requires_grad=True)
angle = x.acos()
loss = angle.sum()
loss.backward()
torch.why(x)
=== exp freed: not finite at exp: 2 3
x = torch.tensor([100.0, 0.5], requires_grad=True)
loss = x.exp().sum()
loss.backward()
torch.why(x)
=== overwritten: not finite at sqrt: 2 3 4
x = torch.tensor([1.0, 0.0], requires_grad=True)
h = x * 1
loss = h.sqrt().sum()
x.grad = torch.tensor([0.5, float("inf")])
torch.why(x)
=== pole beside nan: not finite at mul: 2 4
x = torch.tensor([1.0, 4.0], requires_grad=True)
data = torch.tensor([1.0, float("nan")])
loss = (x.sqrt() * data).sum()
loss.backward(retain_graph=True)
torch.why(x)
""")


@functools.cache
def said() -> dict[str, list[dict[str, Any]]]:
    return answers(PROGRAMS)


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_answer(case: Case) -> None:
    check(case, said()[case.name][0])
