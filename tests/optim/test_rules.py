"""How rules are run: small parameters together, large ones by blocks, on tensors if recorded."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import rushlight as torch
from rushlight.optim.rules import BLOCK, SMALL

KINDS = ["ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"]


def shapes() -> list[Any]:
    """Small and large, of no elements and of none of a size, in two dtypes, turned around."""
    torch.manual_seed(0)
    made = [torch.randn(shape) for shape in ((3,), (), (0,), (2, 5), (SMALL,), (SMALL + 1,))]
    made += [torch.randn(4, dtype=torch.float64), torch.randn(3, 2).t(), torch.randn(BLOCK + 5)]
    made += [torch.randn(SMALL - 1) for _ in range(BLOCK // SMALL + 2)]  # more than one bundle
    return made


def gone_down(kind: Any, values: list[Any], together: bool, **options: Any) -> list[Any]:
    params = [v.clone().requires_grad_() for v in values]
    made = [kind(params, lr=0.1, **options)] if together else [kind([p], lr=0.1) for p in params]
    for step in range(3):
        for i, p in enumerate(params):
            p.grad = None if (i + step) % 4 == 0 else p.detach().sin()  # steps fall apart
        for optimizer in made:
            optimizer.step()
    return params


@pytest.mark.parametrize("kind", [*KINDS, "SGD"])
def test_together_is_one_by_one(kind: str) -> None:
    values = shapes()
    make = getattr(torch.optim, kind)
    pairs = zip(gone_down(make, values, True), gone_down(make, values, False), strict=True)
    assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in pairs)


def test_gradients_are_not_changed() -> None:
    for kind in [*KINDS, "SGD", "Adafactor", "Muon"]:
        params = [torch.ones(3, 3, requires_grad=True), torch.ones(300, 300, requires_grad=True)]
        optimizer = getattr(torch.optim, kind)(params)
        for p in params:
            p.grad = torch.full_like(p, 0.5)
        for _ in range(2):
            optimizer.step()
        assert all(bool((p.grad == 0.5).all()) for p in params), kind


def test_every_write_counts() -> None:
    params = [torch.ones(2, requires_grad=True) for _ in range(3)]
    for p in params:
        p.grad = torch.ones(2)
    optimizer = torch.optim.Adam(params)
    optimizer.step()
    before = [p._version for p in params]
    kept = [optimizer.state[p]["exp_avg"]._version for p in params]
    optimizer.step()
    assert [p._version for p in params] == [n + 1 for n in before]
    assert [optimizer.state[p]["exp_avg"]._version for p in params] == [n + 1 for n in kept]


@pytest.mark.parametrize("kind", [*KINDS, "SGD"])
def test_recorded_is_not_recorded(kind: str) -> None:
    """A differentiable step has the numbers of another, and a derivative by the parameter."""
    values = [0.5, -1.0, 2.0]
    plain = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    start = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    moved = start.clone()
    make = getattr(torch.optim, kind)
    optimizers = [make([plain], lr=0.1), make([moved], lr=0.1, differentiable=True)]
    for _ in range(2):
        plain.grad = torch.cos(plain.detach())
        moved.grad = torch.cos(moved.clone())
        for optimizer in optimizers:
            optimizer.step()
    assert torch.allclose(plain, moved, rtol=1e-12, atol=0)
    (grad,) = torch.autograd.grad(moved.sum(), start)
    assert grad.shape == start.shape and bool(grad.isfinite().all())


def test_a_rate_as_a_tensor_has_a_derivative() -> None:
    rate = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)

    def loss(rate: Any) -> Any:
        w = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True) * 1
        optimizer = torch.optim.Adam([w], lr=rate, differentiable=True)
        for _ in range(2):
            w.grad = 2 * w
            optimizer.step()
        return (w * w).sum()

    assert torch.autograd.gradcheck(loss, rate)


def test_threads_step_shared_parameters() -> None:
    """Parameters that several threads step take every step."""
    params = [torch.zeros(5, requires_grad=True) for _ in range(4)]
    for p in params:
        p.grad = torch.ones(5)

    def work() -> None:
        optimizer = torch.optim.SGD(params, lr=1.0)
        for _ in range(50):
            optimizer.step()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert [p.tolist() for p in params] == [[-200.0] * 5] * 4


def test_options_that_pick_an_implementation_change_nothing() -> None:
    for kind in KINDS:
        values = [torch.tensor([1.0, 2.0])]
        make = getattr(torch.optim, kind)
        plain = gone_down(make, values, True)
        for option in ("foreach", "capturable"):
            if option in make([torch.ones(1, requires_grad=True)]).defaults:
                assert torch.equal(gone_down(make, values, True, **{option: True})[0], plain[0])
