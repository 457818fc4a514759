"""Writes through views: chains, steps, stale views, second derivatives."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.core.engine.helpers import ones
from tests.ops.view.helpers import count, grad_of, leaf


def test_write_through_a_chain_of_views() -> None:
    x = leaf(2, 3)
    y = x * 1
    y.t()[0].mul_(2)
    y.view(-1)[1:3].add_(x[0, 0])
    assert y.tolist() == [[0, 1, 2], [6, 4, 5]]
    assert y._version == 2
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert grad_of(y, x) == [[2 + 2 + 3, 2, 3], [8, 5, 6]]


def test_write_through_a_diagonal_and_a_step() -> None:
    x = leaf(3, 3)
    y = x * 2
    y.diagonal().mul_(10)
    y[::2, 1].zero_()
    assert y.tolist() == [[0, 0, 4], [6, 80, 10], [12, 0, 160]]
    assert grad_of(y, x) == [[20, 0, 6], [8, 100, 12], [14, 0, 180]]


def test_second_derivative_through_a_written_view() -> None:
    x = leaf(3)
    y = x * x
    y[1:].mul_(x[:2])
    (g,) = torch.autograd.grad([y.sum()], [x], create_graph=True)
    assert g.tolist() == [0 + 1, 0 + 4, 4]
    (h,) = torch.autograd.grad([g.sum()], [x])
    assert h.tolist() == [2 + 2 * 1, 2 * 1 + 2 * 0 + 2 * 2, 2 * 2 + 2 * 1]


def test_a_stale_view_gets_a_new_node() -> None:
    x = leaf(2, 2)
    y = x * 1
    row = y[0]
    y.mul_(3)
    assert row.grad_fn.name() == "AsStridedBackward0"
    assert grad_of(row, x) == [[3, 6], [0, 0]]


def test_in_place_views() -> None:
    x = leaf(2, 3)
    y = x * 1
    assert y.t_() is y and y.shape == (3, 2) and y._version == 1
    assert y.grad_fn.name() == "TBackward1"
    assert grad_of(y, x) == [[1, 3, 5], [2, 4, 6]]
    z = count(2)
    assert z.unsqueeze_(0).shape == (1, 2) and z.squeeze_().shape == (2,)
    assert count(2, 3, 4).transpose_(0, 2).shape == (4, 3, 2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf(2, 2).t_()
    base = leaf(2, 2) * 1
    part = base[:, :1]
    part.t_()
    part.mul_(2)
    assert base.tolist() == [[0, 1], [4, 3]]
    assert base.grad_fn.name() == "torch::autograd::CopySlices"


def test_detach_shares_memory_and_version() -> None:
    x = leaf(2) * 1
    y = x.detach()
    y.add_(1)
    assert x.tolist() == [1, 2] and x._version == 1
    assert not y.requires_grad and y._base is None


def test_a_written_region_has_no_gradient_even_at_infinity() -> None:
    x, v = ones(2), torch.tensor(2.0, requires_grad=True)
    y = x.clone()
    y[0] = v
    g = ones(2)
    (gx,) = torch.autograd.grad(y, x, g, create_graph=True)
    (gg,) = torch.autograd.grad(gx, g, torch.tensor([float("inf"), 1.0]))
    assert gg.tolist() == [0, 1]
