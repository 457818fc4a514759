"""`cat`, `stack` and other ways of joining: values, dtypes, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.shape.pad import pad
from tests.ops.shape.helpers import count, grad_of, leaf


# --- joining --------------------------------------------------------------------------------------
def test_cat() -> None:
    x = leaf(1, 2)
    y = torch.cat([x, torch.ones(2, 2), x * 10], 0)
    assert y.tolist() == [[0, 1], [1, 1], [1, 1], [0, 10]]
    assert y.grad_fn.name() == "CatBackward0"
    assert grad_of(y, x) == [[1 + 70, 2 + 80]]
    assert torch.concat((count(2, 1), count(2, 2)), -1).tolist() == [[0, 0, 1], [1, 2, 3]]
    assert torch.cat([count(2), count(1)], axis=0).tolist() == [0, 1, 0]


def test_cat_promotes_and_skips_empty_vectors() -> None:
    assert torch.cat([torch.tensor([1]), torch.tensor([0.5])]).dtype is torch.float32
    assert torch.cat([torch.tensor([True]), torch.tensor([2])]).tolist() == [1, 2]
    x = torch.zeros(0, requires_grad=True)
    y = torch.cat([x, leaf(2, 2)])
    assert y.shape == (2, 2)
    assert grad_of(y, x) == []
    double = torch.zeros(0, dtype=torch.float64)
    assert torch.cat([double, count(2, 2)]).dtype is torch.float64
    assert torch.cat([torch.zeros(0), torch.zeros(0)]).shape == (0,)
    half = torch.ones(1, dtype=torch.bfloat16)
    assert torch.cat([half, half]).dtype is torch.bfloat16


def test_cat_out() -> None:
    out = torch.empty(4)
    assert torch.cat([count(2), count(2)], out=out) is out
    assert out.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("torch.cat([])", ValueError, r"torch.cat\(\): expected a non-empty list of Tensors"),
        ("torch.cat([x, x[0]])", RuntimeError, "Tensors must have same number of dimensions: got"),
        ("torch.cat([x, x[0, 0]])", RuntimeError, r"zero-dimensional tensor \(at position 1\)"),
        ("torch.cat([x, x.t()])", RuntimeError, "Sizes of tensors must match except in dimens"),
        ("torch.cat(x)", TypeError, r"cat\(\): argument 'tensors' \(position 1\) must be tuple of"),
        ("torch.cat([x, 1])", TypeError, "expected Tensor as element 1 in argument 0, but got int"),
        ("torch.cat([x, x], 2)", IndexError, "Dimension out of range"),
        ("torch.stack([])", RuntimeError, "stack expects a non-empty TensorList"),
        ("torch.stack([x, x.t()])", RuntimeError, "stack expects each tensor to be equal size"),
        ("torch.stack([x, x], 3)", IndexError, r"expected to be in range of \[-3, 2\]"),
        ("torch.hstack([])", RuntimeError, "hstack expects a non-empty TensorList"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3), "torch": torch, "pad": pad})


def test_stack() -> None:
    x = leaf(2)
    y = torch.stack([x, x * 10], -1)
    assert y.tolist() == [[0, 0], [1, 10]]
    assert grad_of(y, x) == [1 + 20, 3 + 40]
    assert torch.stack([torch.tensor(1), torch.tensor(2.5)]).tolist() == [1.0, 2.5]
    assert torch.stack([torch.zeros(0, 2)] * 3).shape == (3, 0, 2)


def test_other_stacks() -> None:
    a, b = torch.tensor([1, 2]), torch.tensor([3, 4])
    assert torch.hstack([a, b]).tolist() == [1, 2, 3, 4]
    assert torch.hstack([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
    assert torch.vstack([a, b]).tolist() == torch.row_stack([a, b]).tolist() == [[1, 2], [3, 4]]
    assert torch.dstack([a, b]).tolist() == [[[1, 3], [2, 4]]]
    assert torch.column_stack([a, b]).tolist() == [[1, 3], [2, 4]]
