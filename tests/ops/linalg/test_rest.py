"""The rest of linear algebra gives what PyTorch's gives: stored, and live."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.expressions import check
from tests.ops.linalg.cases_rest import cases


@pytest.mark.parametrize("line", cases)
def test_is_as_in_pytorch(line: str) -> None:
    check(cases, "ops/linalg/rest", line, nodes="matrix_exp" in line)


def test_random_projections_are_drawn_as_pytorch_draws_them() -> None:
    A = torch.arange(12.0, dtype=torch.float64).reshape(4, 3).sin()
    torch.manual_seed(0)
    u, s, v = torch.svd_lowrank(A, q=2)
    torch.manual_seed(0)
    torch.svd_lowrank(A, q=2)
    after = torch.rand(1)
    torch.manual_seed(0)
    torch.randn(3, 2, dtype=torch.float64)
    assert torch.equal(after, torch.rand(1))
    torch.testing.assert_close(s, torch.linalg.svdvals(A)[:2], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(u.mT @ u, torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(v.mT @ v, torch.eye(2, dtype=torch.float64))


def test_vectors_of_lobpcg() -> None:
    A = torch.diag(torch.tensor([5.0, 4, 3, 2, 1, 0.5], dtype=torch.float64))
    B = torch.eye(6, dtype=torch.float64) * 2
    values, vectors = torch.lobpcg(A, k=2, B=B)
    torch.testing.assert_close(A @ vectors, B @ vectors * values)


def test_second_derivatives_of_matrix_exp() -> None:
    x = torch.rand(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.matrix_exp, x)
    assert torch.autograd.gradgradcheck(torch.matrix_exp, x[:1].detach().requires_grad_())
