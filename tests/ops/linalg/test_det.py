"""Determinants: values, gradients without an inverse, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.linalg.helpers import DOUBLE, matrix, same


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.det(torch.ones(2, 3)), "linalg.det: A must be batches of square matrices, "
         "but they are 2 by 3 matrices"),
],
)  # fmt: skip
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_determinants() -> None:
    x = matrix([2.0, 1.0], [3.0, 4.0], grad=True)
    assert torch.det(x).item() == pytest.approx(5)
    sign, log = torch.linalg.slogdet(matrix([0.0, 2.0], [3.0, 0.0]))
    assert sign.item() == -1 and log.item() == pytest.approx(math.log(6))
    assert math.isnan(torch.logdet(matrix([-1.0])).item())
    assert torch.logdet(matrix([0.0])).item() == -math.inf
    assert torch.det(torch.ones(0, 0)).item() == 1
    (g,) = torch.autograd.grad(torch.logdet(x), x)
    same(g, [[0.8, -0.6], [-0.2, 0.4]])


def test_the_determinant_of_a_matrix_without_inverse_has_a_gradient() -> None:
    x = matrix([1.0, 2.0], [2.0, 4.0], grad=True)
    (g,) = torch.autograd.grad(torch.det(x), x)
    same(g, [[4.0, -2.0], [-2.0, 1.0]])
    zero = torch.zeros(3, 3, dtype=DOUBLE, requires_grad=True)
    (g,) = torch.autograd.grad(torch.det(zero), zero)
    same(g, np.zeros((3, 3)))
