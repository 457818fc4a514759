"""Training on the device: modules, losses and optimizers take the steps they take on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn, optim

GPU = torch.device("cuda", 0)


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.25),
        nn.BatchNorm1d(8), nn.Linear(8, 3),
    )  # fmt: skip


def trained(d: str, make: Any, steps: int = 4) -> tuple[list[float], list[Any]]:
    model = network().to(d)
    torch.manual_seed(1)
    inputs, targets = torch.randn(6, 4, device=d), torch.randint(0, 3, (6,), device=d)
    optimizer = make(model.parameters())
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    for p in model.parameters():
        assert p.device.type == d and p.grad.device.type == d
    return losses, [p.detach().cpu().numpy() for p in model.parameters()]


OPTIMIZERS: dict[str, Any] = {
    "SGD": {"lr": 0.1}, "momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.01}, "AdamW": {"lr": 0.01}, "RMSprop": {"lr": 0.01}, "Adagrad": {"lr": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_cpu(name: str) -> None:
    cls = optim.SGD if name == "momentum" else getattr(optim, name)
    expected, weights = trained("cpu", lambda ps: cls(ps, **OPTIMIZERS[name]))
    losses, found = trained("cuda", lambda ps: cls(ps, **OPTIMIZERS[name]))
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for a, b in zip(found, weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_a_module_moves() -> None:
    model = network()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    assert model.cuda() is model
    assert all(t.device == GPU for t in [*model.parameters(), *model.buffers()])
    assert all(isinstance(p, nn.Parameter) and p.is_leaf for p in model.parameters())
    model.load_state_dict(state)
    assert all(t.device == GPU for t in model.parameters())
    model.cpu()
    for k, v in model.state_dict().items():
        assert v.device.type == "cpu" and torch.equal(v, state[k])
    model.to("cuda", torch.float64)
    assert next(model.parameters()).dtype is torch.float64


def test_a_module_is_made_there() -> None:
    layer = nn.Linear(3, 2, device="cuda")
    assert layer.weight.device == GPU and layer(torch.ones(1, 3, device="cuda")).device == GPU
    table = nn.Embedding(4, 2, device="cuda")
    assert table(torch.tensor([1, 3], device="cuda")).shape == (2, 2)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "loss", ["MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCEWithLogitsLoss", "KLDivLoss"]
)
def test_losses(loss: str) -> None:
    torch.manual_seed(2)
    x, y = torch.randn(4, 3), torch.rand(4, 3)
    grads = []
    for d in ("cpu", "cuda"):
        a = x.clone().to(d).requires_grad_()
        value = getattr(nn, loss)()(a, y.to(d))
        value.backward()
        grads.append((value.item(), a.grad.cpu().numpy()))
    np.testing.assert_allclose(grads[1][0], grads[0][0], rtol=1e-5)
    np.testing.assert_allclose(grads[1][1], grads[0][1], rtol=1e-4, atol=1e-6)


def test_a_regression_by_hand() -> None:
    torch.manual_seed(3)
    x = torch.linspace(-1, 1, 20, device="cuda")
    y = 3 * x + 1
    w = torch.zeros(2, device="cuda", requires_grad=True)
    for _ in range(200):
        ((w[0] * x + w[1] - y) ** 2).mean().backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
            w.grad.zero_()
    np.testing.assert_allclose(w.tolist(), [3.0, 1.0], atol=1e-3)
