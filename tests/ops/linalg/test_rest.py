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


@pytest.mark.parametrize("pivots", [[0, 1, 2], [1, 2, 4], [-4, -4, 1], [1, 2, -3], [-1, 2, 3]])
def test_pivots_that_lead_out_of_the_matrix_are_refused(pivots: list[int]) -> None:
    factors, right = torch.linalg.ldl_factor(torch.eye(3)).LD, torch.ones(3, 1)
    with pytest.raises(RuntimeError, match="none that ldl_factor gives"):
        torch.linalg.ldl_solve(factors, torch.tensor(pivots, dtype=torch.int32), right)


def test_pivots_of_blocks_are_taken() -> None:
    A = torch.tensor([[0.0, 2, 1], [2, 0, 3], [1, 3, 0]])
    found = torch.linalg.ldl_factor(A)
    assert (found.pivots < 0).sum() == 2
    solved = torch.linalg.ldl_solve(*found, A @ torch.ones(3, 1))
    torch.testing.assert_close(solved, torch.ones(3, 1))
