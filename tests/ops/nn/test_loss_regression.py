"""Losses of differences: values and gradients by hand, weights."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from tests.ops.nn.loss_helpers import F, double, leaf, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("fn", "each", "slope"),
    [
        (F.mse_loss, [0.25, 9.0], [1.0, -6.0]),
        (F.l1_loss, [0.5, 3.0], [1.0, -1.0]),
        (F.smooth_l1_loss, [0.125, 2.5], [0.5, -1.0]),
        (F.huber_loss, [0.125, 2.5], [0.5, -1.0]),
        (lambda x, t, **k: F.smooth_l1_loss(x, t, beta=2.0, **k), [0.0625, 2.0], [0.25, -1.0]),
        (lambda x, t, **k: F.huber_loss(x, t, delta=2.0, **k), [0.125, 4.0], [0.5, -2.0]),
        (lambda x, t, **k: F.smooth_l1_loss(x, t, beta=0.0, **k), [0.5, 3.0], [1.0, -1.0]),
    ],
)
def test_values_and_slopes(fn: Any, each: Any, slope: Any) -> None:
    t = double(1.0, 5.0)  # differences 0.5 and -3
    for reduction, share in (("none", 1), ("sum", 1), ("mean", 2)):
        x = leaf(1.5, 2.0)
        y = fn(x, t, reduction=reduction)
        total = each if reduction == "none" else [sum(each) / share]
        assert same(y, total)
        y.sum().backward()
        assert same(x.grad, [s / share for s in slope])


@pytest.mark.parametrize("fn", [F.smooth_l1_loss, F.huber_loss])
def test_second_derivatives_where_two_pieces_meet(fn: Any) -> None:
    """At a distance of exactly 1 the outer piece counts, which is straight."""
    x = torch.tensor([1.0, -1.0, 0.5], requires_grad=True)
    (g,) = torch.autograd.grad(fn(x, torch.zeros(3), reduction="sum"), x, create_graph=True)
    assert g.tolist() == [1, -1, 0.5]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [0, 0, 1]


def test_the_target_gets_a_gradient_too() -> None:
    x, t = leaf(1.0), leaf(3.0)
    F.mse_loss(x, t).backward()
    assert x.grad.tolist() == [-4.0] and t.grad.tolist() == [4.0]


def test_second_derivative_of_mse() -> None:
    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad(F.mse_loss(x, double(0.0, 0.0)), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == [1.0, 2.0] and h.tolist() == [1.0, 1.0]


def test_weights_weigh_the_mean() -> None:
    x, t, w = double(1.0, 2.0), double(0.0, 0.0), double(1.0, 3.0)
    assert F.mse_loss(x, t, weight=w).item() == 13 / 4
    assert F.l1_loss(x, t, weight=w, reduction="sum").item() == 7
    with pytest.raises(ValueError, match=r"Weights and input must have the same size\."):
        F.mse_loss(x, t, weight=w[:1])


def test_likelihoods() -> None:
    x, t = double(0.0, 1.0), double(2.0, 0.0)
    assert same(F.poisson_nll_loss(x, t, reduction="none"), [1, math.e])
    assert same(F.poisson_nll_loss(x + 1, t, log_input=False, eps=0.0, reduction="sum"), [3])
    stirling = 2 * math.log(2) - 2 + 0.5 * math.log(4 * math.pi)
    assert same(F.poisson_nll_loss(x, t, full=True, reduction="none"), [1 + stirling, math.e])
    var = leaf(4.0, 0.0)
    y = F.gaussian_nll_loss(x, t, var, reduction="none")
    assert same(y, [0.5 * (math.log(4) + 1), 0.5 * (math.log(1e-6) + 1e6)])
    assert F.gaussian_nll_loss(x, t, 1.0).item() == 0.5 * (4 + 1) / 2
    for wrong, text in ((double(-1.0, 1.0), "var has negative"), (-1.0, "var has negative")):
        with pytest.raises(ValueError, match=text):
            F.gaussian_nll_loss(x, t, wrong)
    with pytest.raises(ValueError, match="var is of incorrect size"):
        F.gaussian_nll_loss(x, t, double(1.0, 1.0, 1.0))
