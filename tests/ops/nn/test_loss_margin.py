"""Losses with margins: values and gradients by hand."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from tests.ops.nn.loss_helpers import F, double, leaf, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_soft_margin() -> None:
    x = leaf(0.0, -1000.0)
    y = F.soft_margin_loss(x, double(1.0, 1.0), reduction="sum")
    assert same(y, [math.log(2) + 1000])
    y.backward()
    assert same(x.grad, [-0.5, -1])
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'target'"):
        F.soft_margin_loss(x, leaf(1.0, 1.0))


def test_margins() -> None:
    one = double(1.0)
    both = torch.tensor([1, -1])
    assert F.hinge_embedding_loss(double(0.25, 0.25), both, reduction="none").tolist() == [
        0.25,
        0.75,
    ]
    assert F.margin_ranking_loss(one, 3 * one, one, margin=0.5).item() == 2.5
    assert F.margin_ranking_loss(3 * one, one, one).item() == 0.0
    with pytest.raises(RuntimeError, match="All input tensors should have same dimension but got"):
        F.margin_ranking_loss(one, one, torch.tensor(1.0))
    x = double([1.0, 0.0], [1.0, 0.0])
    y = F.cosine_embedding_loss(x, x, both, margin=0.25, reduction="none")
    assert y.tolist() == pytest.approx([0, 0.75], abs=1e-9)
    with pytest.raises(RuntimeError, match="1D target tensor expects 2D input tensors, but found"):
        F.cosine_embedding_loss(x, x[0], both)
    near, far = x + double(0.0, 1.0), x + double(0.0, 3.0)
    assert F.triplet_margin_loss(x, near, far, margin=3.0).item() == pytest.approx(1.0, abs=1e-5)
    swapped = F.triplet_margin_loss(x, near, far, margin=3.0, swap=True)
    assert swapped.item() == pytest.approx(2.0, abs=1e-5)
    with pytest.raises(ValueError, match="margin must be greater than 0, got -1"):
        F.triplet_margin_loss(x, x, x, margin=-1)
