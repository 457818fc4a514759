"""Special functions at points where their values are known, and at their poles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch

INF, NAN = math.inf, math.nan
EULER = 0.5772156649015329
# SciPy warns at poles, where the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6, atol=1e-12)


def value(f: Any, *xs: Any) -> Any:
    return f(*(torch.tensor(x, dtype=torch.float64) for x in xs))


def slope(f: Any, x: float) -> Any:
    t = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(f(t).sum(), t)[0]


def test_error_functions() -> None:
    same(value(torch.erf, [0.0, INF, -INF]), [0, 1, -1])
    same(value(torch.erfc, [0.0, INF]), [1, 0])
    same(value(torch.erfinv, [0.0, 1.0, 2.0]), [0, INF, NAN])
    same(slope(torch.erf, 0.0), [2 / math.sqrt(math.pi)])
    same(slope(torch.erfinv, 0.0), [math.sqrt(math.pi) / 2])
    same(value(torch.special.erfcx, [0.0]), [1])
    same(value(torch.special.ndtr, [0.0]), [0.5])
    same(value(torch.special.ndtri, [0.5, 0.0, 1.0]), [0, -INF, INF])
    same(slope(torch.special.log_ndtr, 0.0), [math.sqrt(2 / math.pi)])


def test_gamma_functions() -> None:
    same(value(torch.lgamma, [1.0, 5.0, 0.0, -1.0]), [0, math.log(24), INF, INF])
    same(value(torch.digamma, [1.0, 0.0, -0.0]), [-EULER, -INF, INF])
    assert value(torch.digamma, [-1.0]).isnan().item()
    same(torch.polygamma(1, torch.tensor([1.0, 0.5])), [math.pi**2 / 6, math.pi**2 / 2])
    same(torch.polygamma(1, torch.tensor([-0.5])), [math.pi**2 - (math.pi**2 / 2 - 4)])
    same(slope(torch.lgamma, 1.0), [-EULER])
    same(slope(torch.digamma, 1.0), [math.pi**2 / 6])
    x = torch.tensor([2.0], dtype=torch.float64)
    same(x.mvlgamma(1), [0])
    same(torch.mvlgamma(x, 2), [0.5 * math.log(math.pi) + math.lgamma(1.5)])


def test_bessel_functions() -> None:
    same(value(torch.i0, [0.0]), [1])
    same(value(torch.special.i1, [0.0]), [0])
    same(slope(torch.special.i1, 0.0), [0.5])
    same(slope(torch.special.i1e, 0.0), [0.5])
    same(slope(torch.special.i0e, 0.0), [0])
    assert not torch.special.bessel_j0(torch.ones(1, requires_grad=True)).requires_grad


def test_products_with_logarithms() -> None:
    same(value(torch.xlogy, [0.0, 0.0, 2.0], [0.0, NAN, 1.0]), [0, NAN, 0])
    same(value(torch.special.xlog1py, [0.0, 1.0], [-1.0, 0.0]), [0, 0])
    same(value(torch.special.entr, [0.0, 1.0, -1.0]), [0, 0, -INF])
    same(torch.xlogy(2, torch.tensor([math.e])), [2])
    assert torch.xlogy(torch.ones(2), 2).dtype is torch.float32


def test_zeta_has_a_derivative_by_the_second_argument_only() -> None:
    same(value(torch.special.zeta, [2.0], [1.0]), [math.pi**2 / 6])
    same(slope(lambda x: torch.special.zeta(2, x), 1.0), [-2 * 1.2020569031595942])
    s = torch.tensor([2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for 'zeta' is not implemented"):
        torch.special.zeta(s, 1).sum().backward()


def test_integers_become_floats_and_halves_stay() -> None:
    assert torch.erf(torch.tensor([1, 2])).dtype is torch.float32
    assert torch.lgamma(torch.tensor([1.0], dtype=torch.bfloat16)).dtype is torch.bfloat16
    assert torch.special.i1(torch.tensor([1.0], dtype=torch.float16)).dtype is torch.float16


def test_names_in_the_namespace_are_the_same_functions() -> None:
    assert torch.special.expit is torch.sigmoid
    assert torch.special.gammaln is torch.lgamma
    assert torch.special.psi is torch.digamma
    assert torch.special.multigammaln is torch.mvlgamma


def test_second_derivatives() -> None:
    x = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    for f, second in (
        (torch.erf, -2 * 1.5 * 2 / math.sqrt(math.pi) * math.exp(-2.25)),
        (torch.special.entr, -1 / 1.5),
    ):
        (g,) = torch.autograd.grad(f(x), x, create_graph=True)
        same(torch.autograd.grad(g, x)[0], [second])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: torch.polygamma(-1, x), RuntimeError, "does not support negative n"),
        (lambda x: torch.polygamma(x, 2), TypeError, r"polygamma\(\): argument 'n' \(position 1\)"),
        (lambda x: torch.mvlgamma(x, 0), RuntimeError, "p has to be greater than or equal to 1"),
        (lambda x: torch.erf(x * 1j), NotImplementedError, '"erf_vml_cpu" not implemented'),
        (lambda x: torch.special.zeta(2, 3), TypeError, r"special_zeta\(\) received an invalid"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2))
