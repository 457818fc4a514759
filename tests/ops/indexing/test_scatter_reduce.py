"""`scatter_reduce` and `index_reduce`: every reduction, ties, zeros, errors."""

# ruff: noqa: E501 (PyTorch's error texts are long)

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from tests.ops.indexing.helpers import I24, T, X


@pytest.mark.parametrize(
    ("reduce", "include", "result"),
    [
        ("sum", True, [8, 3, 3]),
        ("sum", False, [7, 2, 3]),
        ("prod", True, [12, 2, 3]),
        ("prod", False, [12, 2, 3]),
        ("mean", True, [8 / 3, 1.5, 3]),
        ("mean", False, [3.5, 2, 3]),
        ("amax", True, [4, 2, 3]),
        ("amin", True, [1, 1, 3]),
        ("amin", False, [3, 2, 3]),
    ],
)
def test_scatter_reduce(reduce: str, include: bool, result: list[float]) -> None:
    x, index, src = T([1.0, 1.0, 3.0]), T([0, 0, 1]), T([3.0, 4.0, 2.0])
    y = x.scatter_reduce(0, index, src, reduce, include_self=include)
    assert y.tolist() == pytest.approx(result)


def test_scatter_reduce_of_integers_and_nan() -> None:
    y = T([1, 2]).scatter_reduce(0, T([0, 0]), T([-5, -6]), "mean", include_self=False)
    assert y.tolist() == [-6, 2]
    y = T([1, 2]).scatter_reduce(0, T([0, 0]), T([-5, -6]), "amax", include_self=False)
    assert y.tolist() == [-5, 2]
    y = T([1.0]).scatter_reduce(0, T([0, 0]), T([math.nan, 2.0]), "amax")
    assert math.isnan(y.item())


def test_ties_share_the_gradient() -> None:
    x, src = T([2.0], requires_grad=True), T([2.0, 1.0, 2.0], requires_grad=True)
    y = x.scatter_reduce(0, T([0, 0, 0]), src, "amax")
    gx, gs = torch.autograd.grad(y, [x, src])
    assert gx.tolist() == pytest.approx([1 / 3])
    assert gs.tolist() == pytest.approx([1 / 3, 0, 1 / 3])


def test_product_with_zeros() -> None:
    x, src = T([2.0], requires_grad=True), T([0.0, 3.0], requires_grad=True)
    y = x.scatter_reduce(0, T([0, 0]), src, "prod")
    gx, gs = torch.autograd.grad(y, [x, src])
    assert gx.tolist() == [0]
    assert gs.tolist() == [6, 0]


def test_index_reduce() -> None:
    x = torch.ones(2, 2)
    y = x.index_reduce(0, T([0, 0]), T([[2.0, 3.0], [4.0, 1.0]]), "prod")
    assert y.tolist() == [[8, 3], [1, 1]]
    with pytest.raises(RuntimeError, match="Expected reduce to be one of prod, mean, amax or amin"):
        x.index_reduce(0, T([0]), torch.ones(1, 2), "sum")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.scatter_reduce(0, I24, X, "foo"), RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got foo"),
],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
