"""`index_put`: values, gradients, errors."""

# ruff: noqa: E501 (PyTorch's error texts are long)

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.indexing.helpers import T, X, grads, leaf


def test_index_put() -> None:
    x, v = leaf(2, 2), T(1.0, requires_grad=True)
    at = (T([0, 0]), T([1, 1]))
    y = x.index_put(at, v, accumulate=True)
    assert y.tolist() == [[0, 3], [2, 3]]
    assert grads(y, x, v) == [[[1, 2], [3, 4]], 4]
    assert grads(x.index_put(at, v), x, v) == [[[1, 0], [3, 4]], 4]
    z = torch.zeros(20, 3)
    z.index_put_((torch.arange(40) % 20,), torch.ones(40, 3), accumulate=True)
    assert z.tolist() == [[2] * 3] * 20


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.index_put(T([0]), torch.ones(1)), TypeError, "index_put(): argument 'indices' (position 1) must be tuple of Tensors, not Tensor"),
        (lambda: X.index_put((T([0]),) * 3, torch.ones(1)), IndexError, "too many indices for tensor of dimension 2 (got 3)"),
],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
