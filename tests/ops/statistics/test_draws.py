"""Numbers drawn by rejection, and how gamma and beta numbers move with their parameters."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.expressions import check
from tests.ops.statistics.cases_draws import cases


@pytest.mark.parametrize("line", cases)
def test_is_as_in_pytorch(line: str) -> None:
    check(cases, "ops/statistics/draws", line)


def test_gamma_numbers_move_as_their_quantiles_do() -> None:
    """At alpha = 1 a gamma number is -log(1 - u); a little beside it the quantile of u moved."""
    special = pytest.importorskip("scipy.special")
    alpha = torch.tensor([0.05, 0.5, 1.0, 2.0, 30.0, 500.0], dtype=torch.float64)
    for share in (1e-6, 0.1, 0.5, 0.9, 0.999):
        x = torch.tensor(special.gammaincinv(alpha.numpy(), share))
        step = alpha.numpy() * 1e-5
        ahead = special.gammaincinv(alpha.numpy() + step, share)
        back = special.gammaincinv(alpha.numpy() - step, share)
        wanted = torch.tensor((ahead - back) / (2 * step))
        got = torch._standard_gamma_grad(alpha, x)
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-300)


def test_beta_numbers_move_as_their_quantiles_do() -> None:
    special = pytest.importorskip("scipy.special")
    a = torch.tensor([0.2, 0.5, 1.0, 2.0, 30.0, 100.0], dtype=torch.float64)
    b = torch.tensor([0.3, 4.0, 1.0, 0.5, 20.0, 3.0], dtype=torch.float64)
    for share in (0.01, 0.5, 0.9):
        x = special.betaincinv(a.numpy(), b.numpy(), share)
        step = a.numpy() * 1e-4
        ahead = special.betaincinv(a.numpy() + step, b.numpy(), share)
        back = special.betaincinv(a.numpy() - step, b.numpy(), share)
        wanted = torch.tensor((ahead - back) / (2 * step) / (1 - x))
        got = torch._dirichlet_grad(torch.tensor(x), a, a + b)
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-12)


def test_gamma_numbers_have_gradients() -> None:
    alpha = torch.tensor([0.5, 2.0], requires_grad=True)
    x = torch._standard_gamma(alpha)
    assert type(x.grad_fn).__name__ == "StandardGammaBackward0"
    x.sum().backward()
    expected = torch._standard_gamma_grad(alpha.detach(), x.detach())
    torch.testing.assert_close(alpha.grad, expected)


def test_poisson_under_vmap() -> None:
    rates = torch.arange(1.0, 7.0).reshape(2, 3)
    torch.manual_seed(0)
    got = torch.func.vmap(torch.poisson, randomness="different")(rates)
    torch.manual_seed(0)
    assert torch.equal(got, torch.poisson(rates))
