"""LBFGS: its line search, what it keeps, and what it needs."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.optim.lbfgs import _cubic_interpolate, _strong_wolfe


def test_the_least_of_a_cubic() -> None:
    assert _cubic_interpolate(0.0, 0.0, -1.0, 2.0, 0.0, 1.0) == 1.0
    assert _cubic_interpolate(2.0, 0.0, 1.0, 0.0, 0.0, -1.0) == 1.0  # either way round
    assert _cubic_interpolate(0.0, 0.0, -1.0, 2.0, 0.0, 1.0, bounds=(1.5, 9.0)) == 1.5
    assert _cubic_interpolate(0.0, 0.0, 3.0, 1.0, 2.0, 3.0, bounds=(0.0, 4.0)) == 2.0  # no minimum


def test_a_search_ends_where_it_is_low_and_flat() -> None:
    def look(x: Any, t: Any, d: Any) -> Any:
        at = x + t * d
        return float((at - 3) ** 4), 4 * (at - 3) ** 3

    x, d = torch.zeros(1), torch.ones(1)
    f, g = look(x, 0, d)
    for start in (0.1, 1.0, 50.0):
        loss, grad, t, looked = _strong_wolfe(look, x, torch.tensor(start), d, f, g, g.dot(d))
        assert loss <= f + 1e-4 * float(t) * g.item() and abs(grad.item()) <= 0.9 * abs(g.item())
        assert 1 <= looked <= 25


def test_a_closure_is_needed_and_flat_ground_left_alone() -> None:
    w = torch.zeros(2, requires_grad=True)
    opt = torch.optim.LBFGS([w])
    with pytest.raises(TypeError):
        opt.step()

    def closure() -> Any:
        opt.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == 0
    assert opt.state[w] == {"func_evals": 1, "n_iter": 0}


def test_a_closure_may_return_a_number_and_leave_gradients_out() -> None:
    w, unused = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    opt = torch.optim.LBFGS([w, unused], lr=0.5)

    def closure() -> float:
        opt.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss.item()

    assert opt.step(closure) == 1.0
    assert abs(w.item()) < 1e-3 and unused.item() == 1.0
