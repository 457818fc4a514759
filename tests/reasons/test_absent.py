"""Why a gradient is None."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import rushlight as torch
from tests.reasons.asking import Case, answers, cases, check

PROGRAMS = cases("""
=== non leaf: not a leaf: 3
x = torch.ones(3, requires_grad=True)
h = x * 2
loss = h.sum()
loss.backward()
torch.why(h)
=== unnamed leaf: unnamed leaf: 2
w = torch.randn(3, requires_grad=True) * 0.1
loss = (w * w).sum()
loss.backward()
torch.why(w)
=== no longer leaf: no longer a leaf: 6
w = torch.ones(2, requires_grad=True)
for step in range(2):
    loss = (w * w).sum()
    loss.backward()
    w = w - 0.1 * w.grad if w.grad is not None else w
    if w.grad is None:
        break
torch.why(w)
=== not called: backward not called: 2 3
x = torch.ones(3, requires_grad=True)
loss = (x * 2).sum()
torch.why(x)
=== never used param: never used: 6
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(3, 4)
        self.fc2 = torch.nn.Linear(4, 1)
    def forward(self, x):
        return self.fc1(x)
net = Net()
loss = net(torch.ones(2, 3)).sum()
loss.backward()
torch.why(net.fc2.weight)
=== detach: detach: 2 4 5
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
h = (x * 2).detach()
loss = (h * w).sum()
loss.backward()
torch.why(x)
=== no_grad: no_grad: 5 6
net = torch.nn.Linear(3, 4)
head = torch.nn.Linear(4, 1)
with torch.no_grad():
    features = net(torch.ones(2, 3))
loss = head(features).sum()
loss.backward()
torch.why(net.weight)
=== argmax: integer: 2 4 5
scores = torch.tensor([0.1, 0.9], requires_grad=True)
values = torch.tensor([1.0, 2.0], requires_grad=True)
choice = scores.argmax()
loss = values[choice]
loss.backward()
torch.why(scores)
=== data: data: 2 4
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
y = w * x.data
y.sum().backward()
torch.why(x)
=== item: item: 2 4 5
x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(3.0, requires_grad=True)
scale = (x * 2).item()
loss = w * scale
loss.backward()
torch.why(x)
=== numpy: numpy: 4 5
import numpy as np
x = torch.ones(3, requires_grad=True)
y = torch.from_numpy(np.exp(x.detach().numpy()))
loss = y.sum()
torch.why(loss)
=== numpy x: numpy: 3 5 6
import numpy as np
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
y = torch.from_numpy(np.exp(x.detach().numpy()))
loss = (w * y).sum()
loss.backward()
torch.why(x)
=== late: asked late: 2 3 4
x = torch.ones(3)
y = (x * 2).sum()
x.requires_grad_()
torch.why(x, y)
=== frozen: frozen: 3
net = torch.nn.Linear(2, 1)
net.weight.requires_grad_(False)
loss = net(torch.ones(1, 2)).sum()
loss.backward()
torch.why(net.weight)
=== zero_grad: zero_grad: 5 7
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = net(torch.ones(1, 2)).sum()
loss.backward()
opt.step()
opt.zero_grad()
torch.why(net.weight)
=== torch tensor: copied: 4 5
a = torch.tensor(1.0, requires_grad=True)
b = torch.tensor(2.0, requires_grad=True)
both = torch.tensor([a * 2, b])
loss = both.sum()
torch.why(loss)
=== integer leaf: integer: 2
x = torch.tensor([1, 2, 3])
torch.why(x)
=== autograd grad: autograd.grad: 2 4
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = (x * x).sum()
(g,) = torch.autograd.grad(loss, x)
torch.why(x)
=== wrong loss: not in the loss: 2 4
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
penalty = (x * x).sum()
loss = (w * 2).sum()
loss.backward()
torch.why(x)
=== cast: integer: 2 4 5
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
index = (x * 2).long()
loss = (w * index).sum()
loss.backward()
torch.why(x)
=== detach in function: detach: 7 4 9
def features(x):
    h = x * 2
    return h.detach()
def loss_of(x, w):
    return (features(x) * w).sum()
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
loss = loss_of(x, w)
loss.backward()
torch.why(x)
=== forward detach in class: detach: 9
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(3, 4)
        self.head = torch.nn.Linear(4, 1)
    def forward(self, x):
        h = self.body(x)
        h = h.detach()
        return self.head(h)
net = Net()
def train():
    loss = net(torch.ones(2, 3)).sum()
    loss.backward()
train()
torch.why(net.body.weight)
=== decorator: no_grad: 2 6 7
w = torch.ones(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
@torch.no_grad()
def scale(a):
    return a * 2
loss = (scale(w) * v).sum()
loss.backward()
torch.why(w)
=== parameter copy: parameter: 2 3 4
w = torch.ones(3, requires_grad=True)
p = torch.nn.Parameter(w * 2)
loss = p.sum()
loss.backward()
torch.why(w)
=== grad off: no_grad: 4
torch.set_grad_enabled(False)
w = torch.ones(3, requires_grad=True)
loss = (w * 2).sum()
torch.why(loss)
=== detach_: detach: 2 5 6
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
h = x * 2
h.detach_()
loss = (h * w).sum()
loss.backward()
torch.why(x)
=== retained not called: backward not called: 3 5
x = torch.ones(3, requires_grad=True)
h = x * 2
h.retain_grad()
loss = h.sum()
torch.why(h)
=== log loop: backward not called: 5
net = torch.nn.Linear(3, 1)
history = []
for i in range(3):
    loss = net(torch.ones(2, 3)).pow(2).mean()
    history.append(loss.item())
torch.why(net.weight)
=== logged and used: not in the loss: 2 4
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
h = x * 2
mean = h.mean().item()
loss = (w * 3).sum()
loss.backward()
torch.why(x)
=== never used: never used: 2
x = torch.ones(3, requires_grad=True)
torch.why(x)
=== nothing left: never used: 2 3
x = torch.ones(3, requires_grad=True)
h = x * 2
del h
torch.why(x)
=== inputs: inputs: 2 5
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
loss = (x * w).exp().sum()
loss.backward(inputs=[w])
torch.why(x)
=== retained and cleared: zero_grad: 2 4 6
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
loss = (w * w).sum()
loss.backward(retain_graph=True)
opt.zero_grad()
torch.why(w)
=== plain data: not asked for: 2
x = torch.ones(3)
torch.why(x)
=== inference: inference_mode: 3
with torch.inference_mode():
    x = torch.ones(3)
torch.why(x)
=== cast by to: integer: 2 4 5
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
h = x.to(torch.int64)
loss = (h * w).sum()
loss.backward()
torch.why(x)
=== a float: item: 2 4 5
x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(2.0, requires_grad=True)
scale = float(x)
loss = w * scale
loss.backward()
torch.why(x)
=== unused beside a loss: never used: 2 4
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
loss = (w * 2).sum()
loss.backward()
torch.why(x)
=== requires_grad set late: asked late: 2 3 4
x = torch.ones(3)
loss = (x * 2).sum()
x.requires_grad = True
torch.why(x, loss)
=== inside a function: detach: 3 6 7
def train(steps):
    w = torch.ones(3, requires_grad=True)
    v = torch.ones(3, requires_grad=True)
    for step in range(steps):
        h = (w * 2).detach()
        loss = (h * v).sum()
        loss.backward()
    torch.why(w)
train(2)
=== in a list: detach: 3
weights = [torch.ones(3, requires_grad=True) for _ in range(2)]
loss = (weights[0].detach() * weights[1]).sum()
loss.backward()
torch.why(weights[0])
=== in an object: detach: 7 9
class Model:
    def __init__(self):
        self.w = torch.ones(3, requires_grad=True)
        self.v = torch.ones(3, requires_grad=True)
    def loss(self):
        return (self.w.detach() * self.v).sum()
model = Model()
loss = model.loss()
loss.backward()
torch.why(model.w)
=== set_grad_enabled: no_grad: 2 5 6
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
with torch.set_grad_enabled(False):
    h = x * 2
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


def test_what_is_read_from_the_source_is_said_to_be() -> None:
    uncertain = {case.name for case in PROGRAMS if not said()[case.name][0]["certain"]}
    assert uncertain == {
        "detach", "no_grad", "argmax", "data", "item", "numpy", "numpy x", "late", "torch tensor",
        "cast", "detach in function", "forward detach in class", "decorator", "parameter copy",
        "detach_", "retained and cleared", "cast by to", "a float", "requires_grad set late",
        "inside a function", "in a list", "in an object", "set_grad_enabled",
    }  # fmt: skip


def test_asking_changes_nothing() -> None:
    x = torch.ones(3, requires_grad=True)
    h = x * 2
    loss = h.exp().sum()
    for t in (x, h, loss):
        torch.why(t, loss, show=False)
    assert x.grad is None and x.requires_grad
    loss.backward()
    before = x.grad.clone()
    torch.why(x, show=False)
    assert torch.equal(x.grad, before)


def test_it_prints_what_it_returns(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(2, requires_grad=True)
    answer = torch.why(x * 2)
    assert capsys.readouterr().out == f"{answer}\n"
    assert repr(answer) == "<why: not a leaf>" and repr(torch.why) == "<function why>"


def test_only_tensors_have_gradients() -> None:
    with pytest.raises(TypeError, match="why\\(\\) wants a tensor, not int"):
        torch.why(3)
