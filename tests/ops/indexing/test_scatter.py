"""`scatter` and `scatter_add`: values, gradients, errors."""

# ruff: noqa: E501 (PyTorch's error texts are long)

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.indexing.helpers import I24, T, X, count, grads, leaf


def test_scatter() -> None:
    x = torch.zeros(2, 3)
    index = T([[0], [2]])
    assert x.scatter(1, index, 1.5).tolist() == [[1.5, 0, 0], [0, 0, 1.5]]
    assert x.scatter(1, index, count(2, 3)).tolist() == [[0, 0, 0], [0, 0, 3]]  # a larger source
    assert x.scatter_(1, index, 1.0) is x and x.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert x.scatter(1, index, 3, reduce="add").tolist() == [[4, 0, 0], [0, 0, 4]]
    assert x.scatter(1, index, T([[5.0], [6.0]]), reduce="multiply")[1, 2].item() == 6
    assert T(5.0).scatter(0, T(0), 3.0).item() == 3


def test_scatter_gradients() -> None:
    x, src = leaf(2, 2), leaf(1, 2)
    y = x.scatter(0, T([[1, 0]]), src)
    assert y.tolist() == [[0, 1], [0, 3]]
    assert grads(y, x, src) == [[[1, 0], [0, 4]], [[3, 2]]]
    assert grads(x.scatter(0, T([[1, 0]]), 7.0), x) == [[[1, 0], [0, 4]]]
    assert grads(x.scatter_add(0, T([[1, 1]]), src), x, src) == [[[1, 2], [3, 4]], [[3, 4]]]


def test_a_larger_source_gets_zeros_outside_the_index() -> None:
    src = leaf(2, 2)
    assert grads(torch.zeros(3).scatter_add(0, T([2]), src[0]), src) == [[[3, 0], [0, 0]]]


def test_scatter_add_repeats() -> None:
    x = torch.zeros(3)
    assert x.scatter_add(0, T([0, 0, 2]), T([1.0, 2.0, 3.0])).tolist() == [3, 0, 3]
    assert x.scatter_add_(0, T([1, 1]), T([1.0, 1.0])).tolist() == [0, 2, 0]
    low = torch.zeros(1, dtype=torch.bfloat16)
    ones = torch.ones(1000, dtype=torch.bfloat16)
    assert low.scatter_add(0, torch.zeros(1000, dtype=torch.int64), ones).item() == 1000


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.scatter(0, I24, torch.ones(1, 4)), RuntimeError, "Expected index [2, 4] to be no larger than self [3, 4] apart from dimension 0 and to be no larger size than src [1, 4]"),
        (lambda: X.scatter(0, I24, torch.ones(2, 4).double()), RuntimeError, "scatter(): Expected self.dtype to be equal to src.dtype"),
        (lambda: X.scatter(0, I24, 1.0, reduce="sum"), RuntimeError, "reduce argument must be either add or multiply."),
        (lambda: X.scatter_add(0, I24, 1.0), TypeError, "scatter_add(): argument 'src' (position 3) must be Tensor, not float"),
],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
