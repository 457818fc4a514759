"""`gather`: values, gradients, `out=`, errors."""

# ruff: noqa: E501 (PyTorch's error texts are long)

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.indexing.helpers import I24, T, X, count, grads, leaf


def test_gather() -> None:
    x = count(2, 3)
    assert x.gather(1, T([[0, 0], [2, 1]])).tolist() == [[0, 0], [5, 4]]
    assert x.gather(0, T([[1, 0]])).tolist() == [[3, 1]]  # a smaller index
    assert x.t().gather(0, T([[2, 2]])).tolist() == [[2, 5]]  # not contiguous
    assert T(5.0).gather(0, T([0, 0])).tolist() == [5, 5]
    assert T([5.0, 6.0]).gather(0, T(1)).item() == 6
    assert x.gather(1, torch.zeros(0, dtype=torch.int64)).shape == (0,)
    assert x.gather(1, T([[0]], dtype=torch.int32)).tolist() == [[0]]


def test_gather_gradient_adds_up() -> None:
    x = leaf(2, 2)
    assert grads(x.gather(1, T([[0, 0, 1], [1, 1, 1]])), x) == [[[3, 3], [0, 15]]]
    assert [type(n).__name__ for n, _ in x.gather(1, T([[0]])).grad_fn.next_functions] == [
        "AccumulateGrad"
    ]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.gather(0, T([[3]])), RuntimeError, "index 3 is out of bounds for dimension 0 with size 3"),
        (lambda: X.gather(0, T([[-1]])), RuntimeError, "index -1 is out of bounds for dimension 0"),
        (lambda: X.gather(0, T([[0.0]])), RuntimeError, "gather(): Expected dtype int32/int64 for index"),
        (lambda: X.gather(0, T([0])), RuntimeError, "Index tensor must have the same number of dimensions as input tensor"),
        (lambda: X.gather(1, torch.zeros(5, 2, dtype=torch.int64)), RuntimeError, "Size does not match at dimension 0 expected index [5, 2] to be no larger than self [3, 4] apart from dimension 1"),
        (lambda: X.gather(5, I24), IndexError, "Dimension out of range"),
],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_out() -> None:
    out = torch.zeros(1, 2)
    assert torch.gather(X, 0, T([[1, 2]]), out=out) is out
    assert out.tolist() == [[4, 9]]
