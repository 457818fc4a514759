"""Triangles and diagonals: values, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.shape.pad import pad
from tests.ops.shape.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x[0].tril()", RuntimeError, "tril: input tensor must have at least 2 dimensions"),
        ("torch.diag(x[0, 0])", RuntimeError, r"diag\(\): Supports 1D or 2D tensors. Got 0D"),
        ("torch.tril_indices(-1, 2)", RuntimeError, "row must be non-negative, got-1"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3), "torch": torch, "pad": pad})


def test_triangles() -> None:
    x = leaf(2, 3)
    assert x.tril().tolist() == [[0, 0, 0], [3, 4, 0]]
    assert x.triu(1).tolist() == [[0, 1, 2], [0, 0, 5]]
    assert grad_of(x.triu(), x) == [[1, 2, 3], [0, 5, 6]]
    infinite = torch.full((2, 2), float("inf"))
    assert infinite.tril_().tolist() == [[float("inf"), 0], [float("inf"), float("inf")]]
    assert torch.ones(2, 2, dtype=torch.bool).tril().tolist() == [[True, False], [True, True]]
    assert torch.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert torch.tril_indices(0, 3).shape == (2, 0)


def test_diagonals() -> None:
    v = leaf(2)
    assert torch.diag(v, 1).tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert grad_of(torch.diag(v), v) == [1, 4]
    m = leaf(2, 2)
    d = m.diag()
    assert d.tolist() == [0, 3] and d._base is None
    assert d.grad_fn.name() == "DiagonalBackward0_copy"
    assert grad_of(d, m) == [[1, 0], [0, 2]]
    assert torch.diag_embed(count(2, 1), 0, 0, 2).shape == (1, 2, 1)
    assert torch.diagflat(count(2, 1)).tolist() == [[0, 0], [0, 1]]
    both = torch.block_diag(m, torch.tensor([7, 8]))
    assert both.tolist() == [[0, 1, 0, 0], [2, 3, 0, 0], [0, 0, 7, 8]]
    assert grad_of(both, m) == [[1, 2], [5, 6]]
