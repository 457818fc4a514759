"""`index_select`, `index_add`, `index_copy`, `index_fill`: values, gradients, errors."""

# ruff: noqa: E501 (PyTorch's error texts are long)

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.indexing.helpers import T, X, grads, leaf


def test_index_select() -> None:
    x = leaf(2, 3)
    y = x.index_select(1, T([2, 0, 2]))
    assert y.tolist() == [[2, 0, 2], [5, 3, 5]]
    assert grads(y, x) == [[[2, 0, 4], [5, 0, 10]]]
    assert T(5.0).index_select(0, T([0])).item() == 5


def test_index_add() -> None:
    x, src = leaf(2, 2), leaf(3, 2)
    y = x.index_add(0, T([1, 1, 0]), src, alpha=2)
    assert y.tolist() == [[8, 11], [6, 11]]
    assert grads(y, x, src) == [[[1, 2], [3, 4]], [[6, 8], [6, 8], [2, 4]]]
    z = torch.zeros(2, 2)
    assert z.index_add_(1, T([0]), torch.ones(2, 1)) is z
    assert z.tolist() == [[1, 0], [1, 0]]


def test_index_copy_and_fill() -> None:
    x, src, s = leaf(3, 2), leaf(2, 2), T(7.0, requires_grad=True)
    y = x.index_copy(0, T([2, 0]), src)
    assert y.tolist() == [[2, 3], [2, 3], [0, 1]]
    assert grads(y, x, src) == [[[0, 0], [3, 4], [0, 0]], [[5, 6], [1, 2]]]
    y = x.index_fill(0, T([-1, 2]), s)
    assert y.tolist() == [[0, 1], [2, 3], [7, 7]]
    assert grads(y, x, s) == [[[1, 2], [3, 4], [0, 0]], 11]  # a place named twice counts once
    assert torch.zeros(3).index_fill_(0, T([1]), 2).tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.index_select(0, T([3])), IndexError, "index out of range in self"),
        (lambda: X.index_select(0, T([[0]])), IndexError, "index_select(): Index is supposed to be a vector"),
        (lambda: X.index_select(0, T([0.0])), RuntimeError, "index_select(): Expected dtype int32 or int64 for index"),
        (lambda: X.index_add(0, T([0, 2]), torch.ones(3, 4)), RuntimeError, "index_add_(): Number of indices (2) should be equal to source.size(dim): (3), for dim: 0"),
        (lambda: X.index_add(0, T([0, -1]), torch.ones(2, 4)), RuntimeError, "index -1 is out of bounds for dimension 0 with size 3"),
        (lambda: X.index_copy(0, T([3]), torch.ones(1, 4)), IndexError, "index_copy_(): index 3 is out of bounds for dimension 0 with size 3"),
        (lambda: X.index_fill(0, T([-4]), 1), IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
