"""Distributions give what PyTorch's give: stored, and live where it is installed. What PyTorch
lacks or computes by approximations is held against definitions: the density is the slope of `cdf`,
the gradient of a draw follows from it, a transform's Jacobian is what autograd finds."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from tests.distributions.cases_distributions import TRANSFORMS_LIST, Maker, close, exact
from tests.harness import plain_tests

D = torch.distributions

globals().update(plain_tests("distributions/distributions", exact, close))


def double(*values: float) -> Any:
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


def fixed(*values: float) -> Any:
    return torch.tensor(list(values), dtype=torch.float64)


# --- density, cdf, icdf ---------------------------------------------------------------------------
CONTINUOUS: list[tuple[str, Callable[[], Any], list[float]]] = [
    ("Cauchy", lambda: D.Cauchy(fixed(0.5, -1.0), fixed(1.0, 2.0)), [0.3, -2.0]),
    ("Chi2", lambda: D.Chi2(fixed(1.0, 4.0)), [0.7, 3.0]),
    (
        "ContinuousBernoulli",
        lambda: D.ContinuousBernoulli(fixed(0.2, 0.9)),
        [0.3, 0.8],
    ),
    ("Exponential", lambda: D.Exponential(fixed(0.5, 3.0)), [0.7, 0.2]),
    ("Gamma", lambda: D.Gamma(fixed(0.5, 9.0), fixed(1.0, 3.0)), [0.7, 2.5]),
    (
        "GeneralizedPareto",
        lambda: D.GeneralizedPareto(fixed(0.0, 1.0), fixed(1.0, 2.0), fixed(0.3, -0.2)),
        [0.7, 2.5],
    ),
    ("Gumbel", lambda: D.Gumbel(fixed(0.5, -1.0), fixed(1.0, 2.0)), [0.3, -2.0]),
    ("HalfCauchy", lambda: D.HalfCauchy(fixed(1.0, 2.0)), [0.3, 3.0]),
    ("HalfNormal", lambda: D.HalfNormal(fixed(1.0, 2.0)), [0.3, 3.0]),
    ("InverseGamma", lambda: D.InverseGamma(fixed(1.5, 3.0), fixed(1.0, 2.0)), [0.7, 1.2]),
    ("Kumaraswamy", lambda: D.Kumaraswamy(fixed(0.5, 2.0), fixed(1.5, 3.0)), [0.2, 0.6]),
    ("Laplace", lambda: D.Laplace(fixed(0.5, -1.0), fixed(1.0, 2.0)), [0.3, -2.0]),
    ("LogNormal", lambda: D.LogNormal(fixed(0.5, -1.0), fixed(1.0, 0.5)), [0.7, 0.4]),
    (
        "MixtureSameFamily",
        lambda: D.MixtureSameFamily(
            D.Categorical(fixed(1.0, 3.0)), D.Normal(fixed(-1.0, 2.0), fixed(1.0, 0.5))
        ),
        [0.3, 1.5],
    ),
    ("Normal", lambda: D.Normal(fixed(0.5, -1.0), fixed(1.0, 2.0)), [0.3, -2.0]),
    ("Pareto", lambda: D.Pareto(fixed(1.0, 2.0), fixed(3.0, 0.5)), [1.3, 4.0]),
    ("Uniform", lambda: D.Uniform(fixed(0.0, -1.0), fixed(1.0, 3.0)), [0.3, 1.5]),
    ("Weibull", lambda: D.Weibull(fixed(1.0, 2.0), fixed(0.5, 3.0)), [0.7, 1.4]),
    (
        "TransformedDistribution",
        lambda: D.TransformedDistribution(
            D.Normal(fixed(0.5, -1.0), fixed(1.0, 2.0)),
            [D.SigmoidTransform(), D.AffineTransform(1.0, -2.0)],
        ),
        [0.3, -0.4],
    ),
]
NAMES = [name for name, _, _ in CONTINUOUS]


@pytest.mark.parametrize(("name", "make", "at"), CONTINUOUS, ids=NAMES)
def test_the_density_is_the_slope_of_cdf(name: str, make: Callable[[], Any], at: Any) -> None:
    x = double(*at)
    d = make()
    (slope,) = torch.autograd.grad(d.cdf(x).sum(), x)
    torch.testing.assert_close(slope, d.log_prob(x).exp(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("name", "make", "at"), CONTINUOUS, ids=NAMES)
def test_icdf_is_the_inverse_of_cdf(name: str, make: Callable[[], Any], at: Any) -> None:
    d, x = make(), torch.tensor(at, dtype=torch.float64)
    if name in {"Chi2", "Gamma", "InverseGamma", "MixtureSameFamily"}:
        with pytest.raises(NotImplementedError):
            d.icdf(d.cdf(x))
    else:
        torch.testing.assert_close(d.icdf(d.cdf(x)), x, rtol=1e-9, atol=1e-11)


def slope_of_cdf(make: Callable[..., Any], parameters: Any, i: int, x: Any) -> Any:
    """By central differences."""
    step = 1e-5
    moved = [[p.detach() + s * (j == i) for j, p in enumerate(parameters)] for s in (step, -step)]
    up, down = (make(*ps).cdf(x) for ps in moved)
    return (up - down) / (2 * step)


class _Beta(D.Beta):  # type: ignore[misc]  # a class of a module that is imported late
    """A beta distribution with a `cdf`, by integrating: what `Beta` lacks."""

    def cdf(self, x: Any) -> Any:
        steps = torch.arange(1, 20001, dtype=torch.float64) - 0.5
        middle = (steps / 20000).unsqueeze(-1) * x
        return self.log_prob(middle).exp().mean(0) * x


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (D.Gamma, (double(0.5, 2.0, 9.0), double(1.0, 3.0, 0.5))),
        (D.InverseGamma, (double(1.5, 3.0), double(1.0, 2.0))),
        (D.Chi2, (double(1.0, 4.0),)),
        (_Beta, (double(2.0, 3.5), double(1.5, 3.0))),
    ],
    ids=["Gamma", "InverseGamma", "Chi2", "Beta"],
)
def test_gradients_of_draws_keep_their_probability(make: Any, parameters: Any) -> None:
    """A draw moves with a parameter so that `cdf` of it stays: dx = -(d cdf / dp) / density."""
    torch.manual_seed(0)
    d = make(*parameters)
    x = d.rsample()
    gradients = torch.autograd.grad(x.sum(), parameters)
    value = x.detach()
    for i, gradient in enumerate(gradients):
        expected = -slope_of_cdf(make, parameters, i, value) / d.log_prob(value).exp()
        torch.testing.assert_close(gradient, expected.detach(), rtol=2e-4, atol=1e-6)


def test_gradients_of_student_and_fisher_draws_follow_from_their_parts() -> None:
    df = double(3.0, 5.0)
    torch.manual_seed(1)
    t = D.StudentT(df).rsample()
    (got,) = torch.autograd.grad(t.sum(), df)
    torch.manual_seed(1)
    x = torch.randn(2, dtype=torch.float64)
    chi2 = D.Chi2(df).rsample()
    torch.testing.assert_close(t, x / (chi2 / df).sqrt())
    torch.testing.assert_close(got, torch.autograd.grad((x / (chi2 / df).sqrt()).sum(), df)[0])
    df2 = double(6.0, 4.0)
    torch.manual_seed(1)
    f = D.FisherSnedecor(df, df2).rsample()
    got_both = torch.autograd.grad(f.sum(), (df, df2))
    torch.manual_seed(1)
    g = D.Gamma(df / 2, df).rsample() / D.Gamma(df2 / 2, df2).rsample()
    for a, b in zip(got_both, torch.autograd.grad(g.sum(), (df, df2)), strict=True):
        torch.testing.assert_close(a, b)


def test_dirichlet_draws_stay_on_the_simplex_as_parameters_move() -> None:
    a = double(0.5, 1.5, 3.0)
    torch.manual_seed(0)
    x = D.Dirichlet(a).rsample((4,))
    torch.testing.assert_close(x.sum(-1), torch.ones(4, dtype=torch.float64))
    jacobian = torch.stack([torch.autograd.grad(y, a, retain_graph=True)[0] for y in x.flatten()])
    torch.testing.assert_close(
        jacobian.reshape(4, 3, 3).sum(1), torch.zeros(4, 3, dtype=torch.float64)
    )


def test_wishart_draws_can_be_differentiated() -> None:
    matrix = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64, requires_grad=True)

    def draw(m: Any) -> Any:
        torch.manual_seed(0)
        return D.Wishart(torch.tensor(4.0, dtype=torch.float64), (m + m.mT) / 2).rsample((3,))

    assert draw(matrix).requires_grad
    assert torch.autograd.gradcheck(draw, matrix)


# --- discrete ones --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "d",
    [
        D.Bernoulli(torch.tensor([0.2, 0.7])),
        D.Binomial(5, torch.tensor([0.2, 0.7])),
        D.Categorical(torch.tensor([[1.0, 2.0, 3.0], [0.5, 1.0, 0.2]])),
        D.OneHotCategorical(torch.tensor([[1.0, 2.0, 3.0], [0.5, 1.0, 0.2]])),
    ],
    ids=lambda d: type(d).__name__,
)
def test_probabilities_of_all_values_sum_to_one(d: Any) -> None:
    values = d.enumerate_support()
    log_prob = d.log_prob(values)
    torch.testing.assert_close(log_prob.exp().sum(0), torch.ones(2))
    torch.testing.assert_close(d.entropy(), -(log_prob * log_prob.exp()).sum(0))


# --- better than PyTorch's ------------------------------------------------------------------------
def test_divergence_from_a_uniform_distribution_over_the_same_interval_is_finite() -> None:
    p = D.ContinuousBernoulli(torch.tensor(0.2))
    kl = D.kl_divergence(p, D.Uniform(torch.tensor(0.0), torch.tensor(1.0)))
    torch.testing.assert_close(kl, -p.entropy())
    assert D.kl_divergence(p, D.Uniform(0.1, 1.0)) == math.inf


def test_the_mode_of_kumaraswamy_is_where_its_density_is_highest() -> None:
    d = D.Kumaraswamy(double(2.0, 3.0, 0.5), double(3.0, 1.5, 2.0))
    x = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    best = x[d.log_prob(x.unsqueeze(-1)).argmax(0)]
    torch.testing.assert_close(d.mode[:2].detach(), best[:2], atol=1e-3, rtol=0)
    assert d.mode[2].isnan()


def test_von_mises_is_normalised_in_double_precision() -> None:
    k = torch.tensor([0.1, 2.0, 20.0, 500.0], dtype=torch.float64)
    angles = torch.arange(4096, dtype=torch.float64) * (2 * math.pi / 4096)
    density = D.VonMises(torch.zeros_like(k), k).log_prob(angles.unsqueeze(-1)).exp()
    torch.testing.assert_close(density.sum(0) * (2 * math.pi / 4096), torch.ones_like(k))


# --- transforms -----------------------------------------------------------------------------------
@pytest.mark.parametrize("text", TRANSFORMS_LIST)
def test_jacobians_are_what_autograd_finds(text: str) -> None:
    t = Maker(torch, torch.float64).make(text)
    if not t.bijective:
        with pytest.raises(NotImplementedError):
            t.log_abs_det_jacobian(torch.ones(3), torch.ones(3))
        return
    x = torch.tensor([1.3, 2.9, 3.6] if "inv" in text else [0.3, 0.9, 0.6], dtype=torch.float64)
    x = x - 1 if text == "SigmoidTransform().inv" else x
    x = x / 4 if text == "SigmoidTransform().inv" else x

    def flat(x: Any) -> Any:
        y = t(x)
        if "StickBreaking" in text:
            return y[:-1]  # the last follows from the others
        if "CorrCholesky" in text:
            return D.utils.tril_matrix_to_vec(y, -1)
        return y.flatten()

    jacobian = torch.func.jacrev(flat)(x)
    expected = torch.linalg.slogdet(jacobian).logabsdet
    got = t.log_abs_det_jacobian(x, t(x)).sum()
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(t.inv(t(x)), x)


# --- as objects -----------------------------------------------------------------------------------
def test_distributions_can_be_pickled_and_copied() -> None:
    for d in (D.Normal(fixed(0.5), fixed(2.0)), D.Beta(0.5, 2.0), D.LogNormal(0.0, fixed(1.0))):
        x = d.sample()
        for twin in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
            assert repr(twin) == repr(d)
            torch.testing.assert_close(twin.log_prob(x), d.log_prob(x))
    t = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)])
    assert t.inv is t.inv
    assert pickle.loads(pickle.dumps(t)) == t


def test_distributions_can_be_batched() -> None:
    locs, x = torch.arange(3.0), torch.tensor(0.5)

    def density(loc: Any) -> Any:
        return D.Normal(loc, 1.0, validate_args=False).log_prob(x)

    torch.testing.assert_close(torch.func.vmap(density)(locs), D.Normal(locs, 1.0).log_prob(x))
    slopes = torch.func.vmap(torch.func.grad(density))(locs)
    torch.testing.assert_close(slopes, x - locs)


def test_validation_can_be_switched_off() -> None:
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Normal(0.0, -1.0).scale == -1
        with pytest.raises(ValueError, match="Expected parameter scale"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, -1.0)


def test_what_a_class_leaves_open_is_warned_of() -> None:
    class Bare(D.Distribution):  # type: ignore[misc]  # as above
        def log_prob(self, value: Any) -> Any:
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        d = Bare()
    with pytest.warns(UserWarning, match="does not define `support`"):
        d.log_prob(torch.ones(2))
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_an_ambiguous_divergence_is_warned_of() -> None:
    class P(D.Normal):  # type: ignore[misc]  # as above
        pass

    class Q(D.Normal):  # type: ignore[misc]  # as above
        pass

    kl = D.kl
    before = dict(kl._KL_REGISTRY)
    try:
        D.register_kl(P, D.Normal)(lambda p, q: torch.tensor(1.0))
        D.register_kl(D.Normal, Q)(lambda p, q: torch.tensor(2.0))
        with pytest.warns(RuntimeWarning, match="Ambiguous"):
            assert D.kl_divergence(P(0.0, 1.0), Q(0.0, 1.0)) == 1
        D.register_kl(P, Q)(lambda p, q: torch.tensor(3.0))
        assert D.kl_divergence(P(0.0, 1.0), Q(0.0, 1.0)) == 3
    finally:
        kl._KL_REGISTRY.clear()
        kl._KL_REGISTRY.update(before)
        kl._KL_MEMOIZE.clear()


PROGRAM = """
from torch.distributions.normal import Normal
from torch.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from torch.distributions.utils import broadcast_all
import torch.distributions.kl, torch.distributions.transforms as T, torch
assert Normal is torch.distributions.Normal and T.ExpTransform()(torch.zeros(1)) == 1
print(_batch_mahalanobis(torch.eye(2), torch.ones(3, 2)).tolist())
"""


def test_pytorchs_modules_can_be_imported_under_its_name(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "rushlight", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("[2.0, 2.0, 2.0]\n", "")


def test_distributions_are_imported_late() -> None:
    text = "import sys, rushlight; print('rushlight.distributions' in sys.modules)"
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False\n"
