"""`pinv`, `matrix_rank`, `lstsq`."""

from __future__ import annotations

import numpy as np

import rushlight as torch
from tests.ops.linalg.helpers import matrix, same


def test_pseudo_inverse_and_rank() -> None:
    x = matrix([1.0, 2.0], [2.0, 4.0])
    same(torch.linalg.pinv(x), np.array([[1, 2], [2, 4]]) / 25)
    same(torch.pinverse(x), np.array([[1, 2], [2, 4]]) / 25)
    same(torch.linalg.pinv(x, hermitian=True), np.array([[1, 2], [2, 4]]) / 25)
    assert torch.linalg.matrix_rank(x).item() == 1
    d = torch.diag(torch.tensor([4.0, 1.0, 0.1]))
    assert torch.linalg.matrix_rank(d).item() == 3
    assert torch.linalg.matrix_rank(d, atol=0.5).item() == 2
    assert torch.linalg.matrix_rank(d, rtol=0.5).item() == 1
    assert torch.linalg.matrix_rank(d, hermitian=True, atol=torch.tensor(2.0)).item() == 1
    same(torch.linalg.pinv(d, atol=0.5), np.diag([0.25, 1, 0]), 1e-6)
    assert torch.linalg.matrix_rank(torch.ones(3, 0, 2)).tolist() == [0, 0, 0]


def test_least_squares() -> None:
    a = matrix([1.0, 0.0], [1.0, 1.0], [1.0, 2.0])
    b = matrix([1.0], [2.0], [2.0])
    found = torch.linalg.lstsq(a, b, driver="gelsd")
    same(found.solution, [[7 / 6], [0.5]])
    same(found.residuals, [1 / 6])
    assert found.rank.item() == 2 and found.singular_values.shape == (2,)
    usual = torch.linalg.lstsq(a, b[:, 0])
    same(usual.solution, [7 / 6, 0.5])
    assert usual.residuals.shape == usual.singular_values.shape == (0,)
