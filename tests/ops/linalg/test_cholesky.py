"""`cholesky` and what is made of it: values, derivatives, matrices that are not positive."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.linalg.helpers import KINDS, drawn, matrix, same, slope_is_right


@pytest.mark.parametrize("dtype", KINDS)
def test_cholesky(dtype: Any) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    a = a @ a.mH + torch.eye(3, dtype=dtype)
    low = torch.linalg.cholesky(a)
    same(low @ low.mH, a)
    same(low, low.tril())
    same(torch.linalg.cholesky(a, upper=True), low.mH)
    same(torch.linalg.cholesky(a.tril()), low)  # the other triangle is not read
    b = drawn(3, 2, dtype=dtype, seed=1)
    same(a @ torch.cholesky_solve(b.expand(2, 3, 2), low), b.expand(2, 3, 2))
    same(a @ torch.cholesky_inverse(low.mH.clone(), upper=True), torch.eye(3).expand(2, 3, 3))
    weight = drawn(3, 3, seed=5)
    loss = lambda x: (torch.linalg.cholesky(x).abs() * weight).tril(-1).sum()
    slope_is_right(loss, a, hermitian=True)


def test_cholesky_needs_a_positive_matrix() -> None:
    text = (
        r"^linalg.cholesky: The factorization could not be completed because the input is not "
        r"positive-definite \(the leading minor of order 2 is not positive-definite\).$"
    )
    with pytest.raises(torch.linalg.LinAlgError, match=text):
        torch.linalg.cholesky(matrix([1.0, 0.0], [0.0, -1.0]))
    with pytest.raises(torch.linalg.LinAlgError, match="leading minor of order 1"):
        torch.linalg.cholesky(torch.full((2, 2), math.nan))
    batch = torch.stack([torch.eye(2), -torch.eye(2)])
    found, info = torch.linalg.cholesky_ex(batch)
    assert info.tolist() == [0, 1]
    same(found[0], np.eye(2))


@pytest.mark.parametrize("upper", [False, True])
def test_second_derivatives_of_cholesky_solve_have_both_triangles(upper: bool) -> None:
    """As its first ones have, in PyTorch too."""
    low = matrix([2.0, 0.0], [1.0, 4.0]).double()
    factor = (low.mT.contiguous() if upper else low).requires_grad_()
    b = matrix([8.0], [4.0]).double().requires_grad_()
    x = torch.cholesky_solve(b, factor, upper)
    (g,) = torch.autograd.grad(x.sum(), factor, create_graph=True)
    total = (g * matrix([1.0, 2.0], [3.0, 4.0])).sum()
    found = torch.autograd.grad(total, (b, factor))
    if upper:
        want = [[-0.23046875], [-0.2734375]], [[2.796875, 2.09375], [1.015625, 0.28125]]
    else:
        want = [[-0.2265625], [-0.25]], [[2.71875, 1.546875], [1.875, 0.28125]]
    for have, expected in zip(found, want, strict=True):
        same(have, expected)


def test_the_tangent_of_an_inverse_is_that_of_differences() -> None:
    factor = torch.linalg.cholesky(torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64))
    step = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    for x, t, upper in ((factor, step, False), (factor.mT.clone(), step.mT.clone(), True)):

        def inverse(x: Any, upper: bool = upper) -> Any:
            return torch.cholesky_inverse(x, upper=upper)

        found = torch.func.jvp(inverse, (x,), (t,))[1]
        assert torch.allclose(found, (inverse(x + 1e-6 * t) - inverse(x - 1e-6 * t)) / 2e-6)
