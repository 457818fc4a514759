"""`autograd.functional` does what PyTorch's does: stored, and live where it is installed."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from tests.autograd.cases_functional import cases
from tests.harness import LIVE, pytorch, stored

STORED = stored("autograd/functional")
GROUPS = sorted({name.split("(")[0].split(" ")[0] for name in cases})


def test_every_case_is_stored() -> None:
    assert STORED.keys() == cases.keys()
    assert len(STORED) > 1500


@pytest.mark.parametrize("group", GROUPS)
def test_as_pytorch(group: str) -> None:
    names = [name for name in cases if name.split("(")[0].split(" ")[0] == group]
    wrong = cases.only(names).differing(torch, STORED)
    assert not wrong, "\n".join(wrong[:5])


if LIVE:

    def test_stored_is_what_pytorch_does() -> None:
        wrong = cases.only(list(cases)[::7]).differing(pytorch(), STORED)
        assert not wrong, "\n".join(wrong[:5])


# --- laws -----------------------------------------------------------------------------------------
def field(x: torch.Tensor) -> torch.Tensor:
    return (x[1:] * x[:-1].sin()).cumsum(0)


def energy(x: torch.Tensor) -> torch.Tensor:
    return (field(x) ** 2).sum() + x.exp().prod()


X = torch.tensor([0.3, -0.7, 1.1, 0.2], dtype=torch.float64)
U = torch.tensor([1.0, 0.5, -2.0, 0.25], dtype=torch.float64)


def test_products_are_products_with_the_matrices() -> None:
    j = jacobian(field, X)
    v = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
    assert torch.allclose(vjp(field, X, v)[1], v @ j)
    assert torch.allclose(jvp(field, X, U)[1], j @ U)
    h = hessian(energy, X)
    assert torch.allclose(h, h.T)
    assert torch.allclose(vhp(energy, X, U)[1], U @ h)
    assert torch.allclose(hvp(energy, X, U)[1], h @ U)


@pytest.mark.parametrize("f", [field, energy, lambda x: (x * 2, x.sum() * x.reshape(2, 2))])
def test_every_way_gives_the_same_jacobian(f: Any) -> None:
    by_rows = jacobian(f, X)
    at_once = jacobian(f, X, vectorize=True)
    forward = jacobian(f, X, vectorize=True, strategy="forward-mode")
    recorded = jacobian(f, X.clone().requires_grad_(), create_graph=True)
    for a, b, c, d in zip(*(x if isinstance(x, tuple) else (x,) for x in
                            (by_rows, at_once, forward, recorded)), strict=True):  # fmt: skip
        assert a.shape == b.shape == c.shape == d.shape
        assert torch.allclose(a, b) and torch.allclose(a, c) and torch.allclose(a, d)


def test_every_way_gives_the_same_hessian() -> None:
    rows = hessian(energy, X)
    assert torch.allclose(rows, hessian(energy, X, vectorize=True))
    mixed = hessian(energy, X, vectorize=True, outer_jacobian_strategy="forward-mode")
    assert torch.allclose(rows, mixed)
    assert torch.allclose(rows, hessian(energy, X.clone().requires_grad_(), create_graph=True))


def test_no_output_element_gives_an_empty_jacobian() -> None:
    assert jacobian(lambda x: x[:0], X).shape == (0, 4)
    assert jacobian(lambda x: x[:0], X, vectorize=True).shape == (0, 4)


def test_inputs_are_left_as_they_were() -> None:
    x = X.clone().requires_grad_()
    hessian(energy, x)
    assert x.grad is None and x.is_leaf
    assert not hessian(energy, x).requires_grad
    assert hessian(energy, x, create_graph=True).requires_grad


def test_leaf_hooks_run_once_a_row() -> None:
    seen = []
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    w.register_hook(seen.append)
    jacobian(lambda x: x * w, torch.ones(3, dtype=torch.float64))
    assert seen == []  # w is no input


def test_a_jacobian_inside_forward_mode_drops_the_tangent() -> None:
    from rushlight.autograd import forward_ad

    with forward_ad.dual_level():
        x = forward_ad.make_dual(X.clone(), U)
        value, tangent = forward_ad.unpack_dual(jacobian(lambda y: y**3 * x, X))
    assert tangent is None and torch.allclose(value, torch.diag(3 * X**3))
