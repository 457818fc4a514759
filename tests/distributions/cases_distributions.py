"""Small programs of distributions: all that each one gives, KL divergences, transforms,
constraints, what is printed, and errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from tests.harness import PlainCases, attempt

exact = PlainCases()  # to the last letter
close = PlainCases()  # to rounding

# --- every distribution ---------------------------------------------------------------------------
# `p` makes a parameter, `m` a positive definite matrix, `tril` its factor; D is the package.
DISTRIBUTIONS = (
    """
Bernoulli(p(0.2, 0.7, 0.5)) | Bernoulli(logits=p(0.2, -0.7)) | Bernoulli(p(0., 1.))
Beta(p(0.5, 2.), p(1.5, 3.)) | Beta(p(0.3), p(0.6)) | Binomial(5, p(0.2, 0.7))
Binomial(c(3., 4.), logits=p(0.2, -0.7)) | Binomial(8, p(0.6)) | Categorical(p(1., 2., 3.))
Categorical(logits=p(1., 2., -3.)) | Categorical(p(0., 0.5, 0.5)) | Cauchy(p(0.5, -1.), p(1., 2.))
Categorical(c([[1., 2.], [3., 1.], [2., 2.]])) | Chi2(p(1., 4.))
ContinuousBernoulli(p(0.2, 0.4999, 0.9)) | ContinuousBernoulli(logits=p(0.3, -2., 0.001))
Dirichlet(p(0.5, 1.5, 3.)) | Dirichlet(c([[1., 2.], [0.5, 0.7]])) | Exponential(p(0.5, 3.))
FisherSnedecor(p(3., 5.), p(6., 1.)) | Gamma(p(0.5, 2., 9.), p(1., 3., 0.5))
GeneralizedPareto(p(0., 1., -1., 2.), p(1., 2., 0.5, 1.), p(0.1, -0.3, 0., 2.))
Geometric(p(0.3, 0.8)) | Geometric(logits=p(0.3, -0.8)) | Gumbel(p(0.5, -1.), p(1., 2.))
HalfCauchy(p(1., 2.)) | HalfNormal(p(1., 2.))
Independent(D.Normal(p(0.5, -1.), p(1., 2.)), 1) | Independent(D.Normal(p(0.5, -1.), p(1., 2.)), 0)
Independent(D.Bernoulli(p(0.2, 0.7)), 1) | InverseGamma(p(1.5, 3.), p(1., 2.))
Kumaraswamy(p(0.5, 2.), p(1.5, 3.)) | LKJCholesky(3, p(0.5, 2.)) | LKJCholesky(2, p(1.))
Laplace(p(0.5, -1.), p(1., 2.)) | LogNormal(p(0.5, -1.), p(1., 0.5))
LogisticNormal(p(0.5, -1.), p(1., 2.))
LowRankMultivariateNormal(p(0.5, -1., 2.), c([[1.], [2.], [-0.5]]), p(1., 0.5, 2.))
MixtureSameFamily(D.Categorical(p(1., 3.)), D.Normal(p(-1., 2.), p(1., 0.5)))
MixtureSameFamily(D.Categorical(c([[1., 3.], [2., 1.]])), D.Exponential(c([[1., 2.], [3., 1.]])))
MixtureSameFamily(D.Categorical(p(1., 3.)),
    D.Independent(D.Normal(c([[-1., 2.], [0., 1.]]), p(1., 0.5)), 1))
MixtureSameFamily(D.Categorical(p(1., 3.)), D.Poisson(p(1., 5.)))
Multinomial(4, p(1., 2., 3.)) | Multinomial(3, logits=c([[1., 2.], [0., -1.]]))
MultivariateNormal(p(0.5, -1.), m(2)) | MultivariateNormal(p(0.5, -1.), precision_matrix=m(2))
MultivariateNormal(c([[0.5, -1., 0.], [1., 2., 3.]]), scale_tril=tril(3))
NegativeBinomial(p(3., 0.5), p(0.2, 0.7)) | NegativeBinomial(5, logits=p(0.2, -0.7))
Normal(p(0.5, -1.), p(1., 2.)) | Normal(0.5, 2.) | Normal(c([[0.5], [1.]]), p(1., 2.))
OneHotCategorical(p(1., 2., 3.)) | OneHotCategorical(logits=c([[1., 2.], [0., -1.]]))
OneHotCategoricalStraightThrough(p(1., 2., 3.)) | Pareto(p(1., 2.), p(3., 0.5))
Poisson(p(0.5, 4., 20.)) | RelaxedBernoulli(p(0.7), p(0.2, 0.7))
RelaxedBernoulli(p(0.7), logits=p(0.2, -0.7)) | RelaxedOneHotCategorical(p(0.7), p(1., 2., 3.))
RelaxedOneHotCategorical(p(2.), logits=c([[1., 2.], [0., -1.]]))
relaxed_bernoulli.LogitRelaxedBernoulli(p(0.7), p(0.2, 0.7))
relaxed_categorical.ExpRelaxedCategorical(p(0.7), p(1., 2., 3.))
StudentT(p(3., 1.5, 0.5), p(0., 1., 2.), p(1., 2., 3.)) | StudentT(p(4.))
TransformedDistribution(D.Normal(p(0.5, -1.), p(1., 2.)), [D.TanhTransform()])
TransformedDistribution(D.Normal(p(0.5), p(1.)), [D.SigmoidTransform(), D.AffineTransform(1., -2.)])
TransformedDistribution(D.Normal(p(0.5, -1.), p(1., 2.)), D.StickBreakingTransform())
TransformedDistribution(D.Normal(p(0.5), 1.), D.AffineTransform(c(0., 1.), p(2., 3.)))
TransformedDistribution(D.Gamma(p(2.), p(1.)), [])
Uniform(p(0., -1.), p(1., 3.)) | VonMises(p(0.5, -1.), p(1., 20.)) | VonMises(p(3.), p(0.1))
Weibull(p(1., 2.), p(0.5, 3.)) | Wishart(p(3.), m(2)) | Wishart(p(4.5), precision_matrix=m(2))
Wishart(c(3., 4.), scale_tril=tril(2))
""".replace(",\n   ", ",")
    .replace("\n", "|")
    .split("|")
)
DISTRIBUTIONS = [text.strip() for text in DISTRIBUTIONS if text.strip()]


# Draws whose gradients PyTorch computes by approximations of three to four digits, and, of Wishart,
# not at all: tests/distributions/test_distributions.py has them.
IMPLICIT = ("Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "StudentT", "Wishart")
NO_SLOPE = ("Chi2", "Gamma", "InverseGamma", "TransformedDistribution(D.Gamma")  # of `cdf`
# In double precision PyTorch's logarithm of a Bessel function has seven digits; what is made of
# numbers is single; and GeneralizedPareto mixes dtypes, and fails.
SINGLE = ("VonMises", "Normal(0.5, 2.)", "GeneralizedPareto")
IMPLICIT += ("InverseGamma", "TransformedDistribution(D.Gamma")


class Maker:
    """Makes distributions from their texts, and remembers the parameters."""

    def __init__(self, torch: Any, dtype: Any) -> None:
        self.torch = torch
        self.dtype = dtype
        self.parameters: list[Any] = []

    def p(self, *values: float) -> Any:
        given: Any = list(values) if len(values) > 1 else values[0]
        made = self.torch.tensor(given, dtype=self.dtype, requires_grad=True)
        self.parameters.append(made)
        return made

    def c(self, *values: Any) -> Any:
        """A parameter that is a matrix, or a vector that asks for no gradient."""
        if isinstance(values[0], list):
            made = self.torch.tensor(values[0], dtype=self.dtype, requires_grad=True)
            self.parameters.append(made)
            return made
        return self.torch.tensor(list(values), dtype=self.dtype)

    def tril(self, n: int) -> Any:
        rows = [[0.3 * (i - j) + 1 if j <= i else 0.0 for j in range(n)] for i in range(n)]
        return self.c(rows)

    def m(self, n: int) -> Any:
        rows = [[2.0 + i if i == j else 0.3 for j in range(n)] for i in range(n)]
        return self.c(rows)

    def make(self, text: str) -> Any:
        package = self.torch.distributions
        names = {"D": package, "p": self.p, "c": self.c, "m": self.m, "tril": self.tril}
        return eval(f"D.{text}", names)

    def gradients(self, y: Any) -> Any:
        """Of the sum of squares and of y: each number counts, and not alike."""
        if not isinstance(y, self.torch.Tensor) or not y.requires_grad:
            return None
        weights = self.torch.arange(1, y.numel() + 1).to(y.dtype).reshape(y.shape)
        found = self.torch.autograd.grad(
            (y * weights).sum(), self.parameters, allow_unused=True, retain_graph=True
        )
        return [None if g is None else numbers(g) for g in found]


def numbers(x: Any) -> Any:
    """A tensor as lists, with as many digits as are compared."""
    if hasattr(x, "tolist"):
        digits = 14 if "float64" in str(x.dtype) else 7
        return short(x.detach().tolist(), digits)
    return x


def short(x: Any, digits: int) -> Any:
    if isinstance(x, list):
        return [short(y, digits) for y in x]
    return float(f"{x:.{digits}g}") if isinstance(x, float) else x


def seen(x: Any) -> Any:
    """Numbers, shape and dtype of a tensor."""
    if not hasattr(x, "tolist"):
        return x
    return [str(x.dtype), list(x.shape), numbers(x)]


def quietly(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Without warnings: PyTorch calls each valid draw of Wishart singular."""

    def run(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Singular sample detected", UserWarning)
            return fn(*args)

    return run


@quietly
def every(torch: Any, text: str, dtype: Any) -> Any:
    """All that a distribution gives."""
    maker = Maker(torch, dtype)
    d = maker.make(text)
    found: dict[str, Any] = {
        "repr": repr(d),
        "shapes": [list(d.batch_shape), list(d.event_shape)],
        "has": [d.has_rsample, d.has_enumerate_support, d.support.is_discrete],
        "support": [repr(d.support), d.support.event_dim],
    }
    whole = dtype == torch.float32  # or only what PyTorch computes to the last digits
    for name in ("mean", "mode", "variance", "stddev"):
        value = failing(lambda name=name: getattr(d, name))
        if not (name == "mode" and "Kumaraswamy" in text):  # PyTorch's is NaN
            found[name] = [seen(value), maker.gradients(value)]
    for name in ("entropy", "perplexity"):
        value = failing(lambda name=name: getattr(d, name)())
        found[name] = [seen(value), maker.gradients(value) if whole else None]
    for name in ("sample", "rsample"):
        torch.manual_seed(7)
        value = failing(lambda name=name: getattr(d, name)((2,)))
        known = not text.startswith(IMPLICIT)
        found[name] = [seen(value), maker.gradients(value) if known else None, value_kind(value)]
    torch.manual_seed(3)
    value = d.sample()
    found["one"] = seen(value)
    density = d.log_prob(value)
    found["log_prob"] = [seen(density), maker.gradients(density)]
    below = failing(lambda: d.cdf(value))
    found["cdf"] = [seen(below), None if text.startswith(NO_SLOPE) else maker.gradients(below)]
    quantile = failing(lambda: d.icdf(torch.full(value.shape, 0.3, dtype=dtype)))
    found["icdf"] = [seen(quantile), maker.gradients(quantile)]
    found["listed"] = [seen(failing(lambda e=e: d.enumerate_support(e))) for e in (True, False)]
    wide = d.expand((2, *d.batch_shape))
    found["wide"] = [
        repr(wide), list(wide.batch_shape), list(wide.event_shape), seen(wide.log_prob(value)),
        seen(failing(lambda: wide.mean)), list(wide.sample((3,)).shape),
    ]  # fmt: skip
    return found


def failing(fn: Callable[[], Any]) -> Any:
    """What `fn` gives, or how it fails; without the module that a class stands in."""
    found = attempt(fn)
    return re.sub(r"<class '[\w.]*\.(\w+)'>", r"<\1>", found) if isinstance(found, str) else found


def value_kind(value: Any) -> Any:
    return value if isinstance(value, str) else value.requires_grad


def enter_all() -> None:
    for text in DISTRIBUTIONS:
        close.enter(f"float32 {text}", lambda torch, text=text: every(torch, text, torch.float32))
    for text in DISTRIBUTIONS:
        if not text.startswith(SINGLE):
            close.enter(
                f"float64 {text}", lambda torch, text=text: every(torch, text, torch.float64)
            )


enter_all()


# --- KL divergences -------------------------------------------------------------------------------
# Of each kind one that comes first and one that comes second.
PAIRS = {
    "Bernoulli": ("Bernoulli(p(0., 0.7, 1.))", "Bernoulli(p(0.5, 0.2, 0.9))"),
    "Beta": ("Beta(p(0.5, 2.), p(1.5, 3.))", "Beta(p(1.5, 3.), p(0.5, 2.))"),
    "Binomial": ("Binomial(5, p(0.2, 0.7))", "Binomial(c(5., 4.), p(0.5, 0.6))"),
    "Categorical": ("Categorical(p(0., 2., 3.))", "Categorical(logits=p(0.5, 1., -1.))"),
    "Cauchy": ("Cauchy(p(0.5, -1.), p(1., 2.))", "Cauchy(p(1.5, 1.), p(3., 0.5))"),
    "Chi2": ("Chi2(p(1., 4.))", "Chi2(p(2., 3.))"),
    "ContinuousBernoulli": (
        "ContinuousBernoulli(p(0.2, 0.4999))", "ContinuousBernoulli(p(0.7, 0.3))"
    ),
    "Dirichlet": ("Dirichlet(p(0.5, 1.5, 3.))", "Dirichlet(p(1., 2., 0.7))"),
    "Exponential": ("Exponential(p(0.5, 3.))", "Exponential(p(1.5, 2.))"),
    "Gamma": ("Gamma(p(0.5, 2.), p(1., 3.))", "Gamma(p(1.5, 1.), p(2., 0.3))"),
    "Geometric": ("Geometric(p(0.3, 0.8))", "Geometric(p(0.6, 0.2))"),
    "Gumbel": ("Gumbel(p(0.5, -1.), p(1., 2.))", "Gumbel(p(1.5, 1.), p(3., 0.5))"),
    "HalfNormal": ("HalfNormal(p(1., 2.))", "HalfNormal(p(3., 0.5))"),
    "Independent": (
        "Independent(D.Normal(p(0.5, -1.), p(1., 2.)), 1)",
        "Independent(D.Normal(p(1.5, 1.), p(3., 0.5)), 1)",
    ),
    "Laplace": ("Laplace(p(0.5, -1.), p(1., 2.))", "Laplace(p(1.5, 1.), p(3., 0.5))"),
    "LogNormal": ("LogNormal(p(0.5, -1.), p(1., 2.))", "LogNormal(p(1.5, 1.), p(3., 0.5))"),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal(p(0.5, -1.), c([[1.], [2.]]), p(1., 0.5))",
        "LowRankMultivariateNormal(p(1.5, 1.), c([[0.3], [-2.]]), p(2., 1.5))",
    ),
    "MultivariateNormal": (
        "MultivariateNormal(p(0.5, -1.), m(2))", "MultivariateNormal(p(1., 2.), scale_tril=tril(2))"
    ),
    "Normal": ("Normal(p(0.5, -1.), p(1., 2.))", "Normal(p(1.5, 1.), p(3., 0.5))"),
    "OneHotCategorical": (
        "OneHotCategorical(p(0., 2., 3.))", "OneHotCategorical(logits=p(0.5, 1., -1.))"
    ),
    "Pareto": ("Pareto(p(1., 2.), p(3., 0.5))", "Pareto(p(0.5, 3.), p(2., 1.5))"),
    "Poisson": ("Poisson(p(0.5, 4.))", "Poisson(p(1.5, 2.))"),
    "StudentT": ("StudentT(p(3.))", "StudentT(p(4.))"),
    "Uniform": ("Uniform(p(0.1, -1.), p(0.9, 3.))", "Uniform(p(-0.5, -2.), p(1.5, 2.5))"),
    "Wishart": ("Wishart(p(3.), m(2))", "Wishart(p(4.), tril(2) @ tril(2).mT)"),
}  # fmt: skip
MANY = ("Bernoulli", "Categorical", "Dirichlet", "Independent", "MultivariateNormal", "Wishart",
        "LowRankMultivariateNormal", "OneHotCategorical")  # fmt: skip  # of shapes of their own


def divergence(torch: Any, first: str, second: str, dtype: Any) -> Any:
    maker = Maker(torch, dtype)
    p, q = maker.make(PAIRS[first][0]), maker.make(PAIRS[second][1])
    kl = failing(lambda: torch.distributions.kl_divergence(p, q))
    return [seen(kl), maker.gradients(kl) if dtype == torch.float32 else None]


def divergences(torch: Any, first: str, dtype: Any) -> Any:
    """From one kind to every other that could be: PyTorch says which are not there."""
    alone = first in MANY and "Normal" not in first
    others = [first] if alone else [k for k in PAIRS if ("Multi" in k) == ("Multi" in first)]
    return {
        k: divergence(torch, first, k, dtype)
        for k in others
        if alone or k not in MANY or k[0] in "ML"
    }


for _kind in PAIRS:
    close.enter(f"float32 kl {_kind}", lambda torch, k=_kind: divergences(torch, k, torch.float32))
    close.enter(f"float64 kl {_kind}", lambda torch, k=_kind: divergences(torch, k, torch.float64))


# --- transforms -----------------------------------------------------------------------------------
TRANSFORMS = """
AbsTransform() | AffineTransform(0.5, -2.) | AffineTransform(p(0.5, 1., 2.), p(1., -2., 3.))
AffineTransform(p(0.5, 1., 2.), p(1., -2., 3.), event_dim=1) | CorrCholeskyTransform()
CatTransform([D.ExpTransform(), D.AffineTransform(1., 2.)], dim=-1, lengths=[1, 2])
CatTransform([D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], -1)
ComposeTransform([D.ExpTransform(), D.AffineTransform(1., -2.)]) | ComposeTransform([])
ComposeTransform([D.AffineTransform(1., 0.5), D.StickBreakingTransform()])
CumulativeDistributionTransform(D.Normal(p(0.5), p(2.))) | ExpTransform()
IndependentTransform(D.ExpTransform(), 1) | LowerCholeskyTransform() | PositiveDefiniteTransform()
PowerTransform(p(2.)) | PowerTransform(-0.5) | ReshapeTransform((3,), (1, 3)) | SigmoidTransform()
SoftmaxTransform() | SoftplusTransform() | StickBreakingTransform() | TanhTransform()
StackTransform([D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], -1) | ExpTransform().inv
ComposeTransform([D.ExpTransform(), D.AffineTransform(1., 2.)]).inv | SigmoidTransform().inv
"""
TRANSFORMS_LIST = [t.strip() for t in TRANSFORMS.replace("\n", "|").split("|") if t.strip()]


def transformed(torch: Any, text: str, dtype: Any) -> Any:
    maker = Maker(torch, dtype)
    t = maker.make(text)
    inside = "inv" in text or "Power" in text  # of positive numbers, or of proportions
    x = maker.p(0.3, 0.9, 0.6) if inside else maker.p(0.3, -0.9, 1.6)
    if "Lower" in text or "Definite" in text:
        x = maker.c([[0.3, 5.0], [-0.9, 1.6]])
    if text.startswith("ComposeTransform([D.ExpTransform(), D.AffineTransform(1., 2.)]).inv"):
        x = maker.p(1.3, 2.9, 3.6)
    y = t(x)
    back = failing(lambda: t.inv(y.detach()))
    jacobian = failing(lambda: t.log_abs_det_jacobian(x, y))
    other = failing(lambda: t.inv.log_abs_det_jacobian(y, x))
    return {
        "repr": [repr(t), repr(t.inv), repr(t.with_cache(1))],
        "facts": [
            t.bijective, failing(lambda: float(torch.as_tensor(t.sign).detach())),
            repr(t.domain), repr(t.codomain),
            t.domain.event_dim, t.codomain.event_dim, failing(lambda: t.event_dim),
        ],
        "shapes": [list(t.forward_shape(x.shape)), list(t.inverse_shape(y.shape))],
        "y": [seen(y), maker.gradients(y)],
        "back": [seen(back), maker.gradients(back)],
        "jacobian": [seen(jacobian), maker.gradients(jacobian), seen(other)],
        "valid": [t.domain.check(x).tolist(), t.codomain.check(y).tolist()],
        "equal": [t == t, t == torch.distributions.ExpTransform(), t.inv.inv == t],
    }  # fmt: skip


for _text in TRANSFORMS_LIST:
    close.enter(
        f"float32 transform {_text}", lambda torch, t=_text: transformed(torch, t, torch.float32)
    )
    close.enter(
        f"float64 transform {_text}", lambda torch, t=_text: transformed(torch, t, torch.float64)
    )


@exact
def caches(torch: Any) -> Any:
    """What a cache keeps, and what it does not."""
    D = torch.distributions  # as programs call it
    x = torch.tensor([0.3, 0.9])
    found = []
    for make in (D.ExpTransform, D.SigmoidTransform, D.StickBreakingTransform):
        for size in (0, 1):
            t = make(cache_size=size)
            y = t(x)
            found.append([t(x) is y, t.inv(y) is x, t.inv(y.clone()) is x, t.inv is t.inv])
    chain = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)], cache_size=1)
    y = chain(x)
    return [*found, chain.inv(y) is x, chain.with_cache(1) is chain, chain.with_cache(0) is chain]


# --- constraints ----------------------------------------------------------------------------------
CONSTRAINTS = """
boolean | one_hot | nonnegative_integer | positive_integer | integer_interval(0, 2) | real
real_vector | positive | nonnegative | greater_than(1.) | greater_than_eq(1.) | less_than(1.)
multinomial(2) | unit_interval | interval(-1., 2.) | half_open_interval(0., 1.) | simplex
independent(positive, 1) | cat([positive, real], -1) | stack([positive, real], -1)
MixtureSameFamilyConstraint(positive) | _IntegerLessThan(1)
""".replace("\n", "|").split("|")
MATRIX_CONSTRAINTS = (
    "lower_triangular lower_cholesky corr_cholesky square symmetric positive_semidefinite "
    "positive_definite"
)


@exact
def constraints(torch: Any) -> Any:
    """Which values are valid."""
    c = torch.distributions.constraints
    nan = float("nan")
    rows = [[0.0, 1.0], [1.0, 1.0], [-1.0, 0.5], [0.5, 0.5], [2.0, nan], [3.0, 0.0]]
    values = torch.tensor(rows)
    found = {}
    for text in CONSTRAINTS:
        if text.strip():
            limit = eval(text, dict(vars(c)))
            facts = [repr(limit), limit.event_dim, limit.is_discrete]
            found[text.strip()] = [*facts, limit.check(values).tolist()]
    matrices = [
        [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [3.0, -1.0]], [[1.0, 0.0], [0.6, 0.8]],
        [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]],
        [[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [0.0, 1.0]],
    ]  # fmt: skip
    for name in MATRIX_CONSTRAINTS.split():
        limit = getattr(c, name)
        checked = [limit.check(torch.tensor(m)).item() for m in matrices]
        found[name] = [repr(limit), limit.event_dim, limit.is_discrete, checked]
    return found


REGISTERED = """
real | real_vector | positive | nonnegative | greater_than(1.) | greater_than_eq(1.) | less_than(1.)
unit_interval | interval(-1., 2.) | half_open_interval(0., 1.) | half_open_interval(0., 3.)
simplex | independent(positive, 1) | cat([positive, real], -1, [1, 2])
stack([positive, real, simplex], -1) | stack([positive, real, unit_interval], -1)
lower_triangular | lower_cholesky | corr_cholesky | positive_definite | positive_semidefinite
square | symmetric | boolean | one_hot | nonnegative_integer | dependent | multinomial(3)
""".replace("\n", "|").split("|")


def registries(torch: Any) -> Any:
    """Which transform belongs to a constraint, and what it gives."""
    D = torch.distributions  # as programs call it
    found = {}
    for text in REGISTERED:
        if not text.strip():
            continue
        limit = eval(text, dict(vars(D.constraints)))
        for name in ("biject_to", "transform_to"):
            t = failing(lambda name=name, limit=limit: getattr(D, name)(limit))
            x = torch.tensor([0.3, -0.9, 1.6])
            if "cholesky" in text or "definite" in text:
                x = x if "corr" in text else torch.tensor([[0.3, 5.0], [-0.9, 1.6]])
            y = t if isinstance(t, str) else failing(lambda t=t, x=x: seen(t(x)))
            found[f"{name} {text.strip()}"] = [repr(t), y]
    return found


close["registries"] = registries


@close
def utilities(torch: Any) -> Any:
    """The functions of `distributions.utils`."""
    u = torch.distributions.utils
    x = torch.tensor([0.0, 0.3, 1.0])
    found: dict[str, Any] = {
        "odds": [seen(u.probs_to_logits(x, b)) for b in (True, False)],
        "probs": [seen(u.logits_to_probs(x, b)) for b in (True, False)],
        "clamped": [seen(u.clamp_probs(x)), seen(u.clamp_probs(x.double()))],
        "normal": [list(u._standard_normal((2,), torch.float64, "cpu").shape)],
        "sums": [seen(u._sum_rightmost(torch.ones(2, 3, 4), n)) for n in (0, 1, 2, 3)],
        "broadcast": [[seen(a) for a in u.broadcast_all(1, torch.ones(2, 1), torch.ones(3))]],
    }
    for diag in (-2, -1, 0, 1, 2):
        m = torch.arange(9.0).reshape(3, 3)
        v = u.tril_matrix_to_vec(m, diag)
        back = failing(lambda v=v, diag=diag: seen(u.vec_to_tril_matrix(v, diag)))
        found[f"triangle {diag}"] = [seen(v), back]
    return found


# --- what is printed, and errors ------------------------------------------------------------------
SPOKEN = """
D.Normal(t(nan), t(1.))
D.Normal(0., -1.)
D.Normal(t([0.,1.]), t([1.,-1.]))
D.Normal(0.,1.).log_prob(t(nan))
D.Normal(0.,1.).log_prob(1.0)
D.Normal(t([0.,1.]),1.).log_prob(torch.ones(3))
D.Normal(0,1)
D.Bernoulli()
D.Bernoulli(0.5,logits=1.)
D.Bernoulli(2.)
D.Bernoulli(0.5).log_prob(t(0.5))
D.Categorical(t(0.3))
D.Categorical(t([0.3,0.3])).probs
D.Categorical(t([0.3,0.3]))
D.Categorical(logits=t(0.3))
D.Categorical()
D.OneHotCategorical()
D.Multinomial(t(3), t([.5,.5]))
D.Multinomial(3, t([.5,.5]))
D.Multinomial(3, t([.5,.5])).log_prob(t([1.,1.]))
D.Multinomial(3, t([.5,.5])).entropy()
D.Binomial(3)
D.Binomial(3, .5)
D.Binomial(t([3.,4.]), .5).enumerate_support()
D.Binomial(t([3.,4.]), t(.5)).enumerate_support()
D.Geometric()
D.Geometric(0.)
D.Geometric(t([0.,0.5]))
D.Geometric(t([0.2,0.5]))
D.NegativeBinomial(3)
D.NegativeBinomial(3., .5)
D.ContinuousBernoulli()
D.ContinuousBernoulli(.3)
D.Uniform(1.,0.)
D.Uniform(1.,1.)
D.Uniform(0.,1.)
D.Uniform(0.,1.).log_prob(t(2.))
D.Dirichlet(t(1.))
D.Dirichlet(t([1.,2.]))
D.MultivariateNormal(t(1.), torch.eye(2))
D.MultivariateNormal(torch.zeros(2))
D.MultivariateNormal(torch.zeros(2), t([1.,2.]))
D.MultivariateNormal(torch.zeros(2), scale_tril=t([1.,2.]))
D.MultivariateNormal(torch.zeros(2), precision_matrix=t([1.,2.]))
D.MultivariateNormal(torch.zeros(2), -torch.eye(2))
D.MultivariateNormal(torch.zeros(2), torch.ones(2,3))
D.MultivariateNormal(torch.zeros(2), torch.eye(2))
D.MultivariateNormal(torch.zeros(2), precision_matrix=torch.eye(2))
D.MultivariateNormal(torch.zeros(2), scale_tril=-torch.eye(2))
D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2,1), torch.ones(2))
D.LowRankMultivariateNormal(t(0.), torch.ones(2,1), torch.ones(2))
D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2), torch.ones(2))
D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(3,1), torch.ones(2))
D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2,1), torch.ones(3))
D.Wishart(t([2.]), torch.eye(2))
D.Wishart(t(1.), torch.eye(2))
D.Wishart(t(0.5), torch.eye(2))
D.Wishart(t(2.))
D.Wishart(t(2.), t([1.]))
D.Wishart(t(2.), torch.eye(2))
D.Wishart(2., torch.eye(2))
D.Wishart(2., scale_tril=torch.eye(2))
D.LKJCholesky(1)
D.LKJCholesky(3)
D.LKJCholesky(3, t([1.,2.]))
D.LKJCholesky(3).log_prob(torch.ones(3,3))
D.RelaxedBernoulli(t(1.))
D.RelaxedBernoulli(t(1.), t([.5]))
D.RelaxedOneHotCategorical(t(1.))
D.RelaxedOneHotCategorical(t(1.), t([.5,.5]))
D.relaxed_bernoulli.LogitRelaxedBernoulli(t(1.), t([.5]))
D.relaxed_bernoulli.LogitRelaxedBernoulli(t(1.))
D.relaxed_categorical.ExpRelaxedCategorical(t(1.), t([.5,.5]))
D.Independent(D.Normal(0.,1.), 1)
D.Independent(D.Normal(torch.zeros(2),1.), 1)
D.TransformedDistribution(D.Normal(0.,1.), 3)
D.TransformedDistribution(D.Normal(0.,1.), [3])
D.TransformedDistribution(D.Normal(0.,1.), D.ExpTransform())
D.TransformedDistribution(D.Normal(0.,1.), D.StickBreakingTransform())
D.TransformedDistribution(D.Normal(torch.zeros(2),1.), D.StickBreakingTransform())
D.TransformedDistribution(D.Normal(0.,1.), [D.ExpTransform(), D.AffineTransform(0,2.)])
D.MixtureSameFamily(1, 2)
D.MixtureSameFamily(D.Categorical(t([.5,.5])), 2)
D.MixtureSameFamily(D.Categorical(t([.5,.5])), D.Normal(torch.zeros(3),1.))
D.MixtureSameFamily(D.Categorical(torch.ones(3,2)), D.Normal(torch.zeros(2,2),1.))
D.MixtureSameFamily(D.Categorical(t([.5,.5])), D.Normal(torch.zeros(2),1.))
D.MixtureSameFamily(D.Categorical(t([.5,.5])), D.Normal(torch.zeros(2),1.)).rsample()
D.MixtureSameFamily(D.Categorical(t([.5,.5])), D.Normal(torch.zeros(2),1.)).entropy()
D.LogisticNormal(t([0.,0.]), t([1.,1.]))
D.LogisticNormal(0.,1.)
D.StudentT(3.)
D.VonMises(0.,1.)
D.VonMises(0.,1.).cdf(t(1.))
D.Pareto(1.,1.)
D.Weibull(1.,1.)
D.Gumbel(1.,1.)
D.Kumaraswamy(1.,1.)
D.HalfNormal(1.)
D.HalfCauchy(1.)
D.LogNormal(1.,1.)
D.InverseGamma(1.,1.)
D.Chi2(1.)
D.Gamma(1.,1.)
D.Beta(1.,1.)
D.FisherSnedecor(1.,1.)
D.GeneralizedPareto(0.,1.,.1)
D.Exponential(1.)
D.Poisson(1.)
D.Cauchy(1.,1.)
D.Laplace(1.,1.)
D.Poisson(1.).entropy()
D.Poisson(1.).enumerate_support()
D.Poisson(1.).cdf(t(1.))
D.Poisson(1.).rsample()
D.Bernoulli(.5).rsample()
D.Gamma(1.,1.).icdf(t(.5))
D.Normal(0.,1.).expand((2,3))
D.Normal(0.,1.).expand(3)
D.Normal(torch.zeros(2,1,5),torch.ones(3,1)).expand((2,3,5))
D.Normal(torch.zeros(2),1.).expand((3,))
D.Distribution(validate_args=False)
D.Distribution.set_default_validate_args(3)
D.Normal(0.,1.).sample(3)
D.Normal("a",1.)
D.Normal(None,1.)
U.broadcast_all('a')
U.broadcast_all(1,2.)
U.broadcast_all(1,t([2.],dtype=torch.float64))
D.kl_divergence(D.Normal(0.,1.), D.Bernoulli(.5))
D.kl_divergence(D.Independent(D.Normal(t([0.]),1.),1), D.Independent(D.Normal(t([[0.]]),1.),2))
D.biject_to(C.dependent)
D.biject_to(C.lower_cholesky)
D.biject_to(3)
D.transform_to(C.boolean)
U.vec_to_tril_matrix(torch.ones(4))
U.vec_to_tril_matrix(torch.ones(6))
U.tril_matrix_to_vec(torch.ones(3,3), 4)
U.tril_matrix_to_vec(torch.ones(3,3), 1)
D.SigmoidTransform().inv
D.SigmoidTransform().inv.inv
D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0,2.)])
D.ComposeTransform([])
D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0,2.)]).inv
D.AffineTransform(0,2.)
D.PowerTransform(2.)
D.PowerTransform(2.).inv
D.StackTransform([D.ExpTransform()])
D.CatTransform([D.ExpTransform()])
D.ReshapeTransform((2,3),(6,))
D.ReshapeTransform((2,3),(5,))
D.IndependentTransform(D.ExpTransform(),1)
D.AbsTransform()
D.CumulativeDistributionTransform(D.Normal(0.,1.))
D.ExpTransform(cache_size=2)
D.ExpTransform().with_cache(2)
D.AbsTransform().sign
D.AbsTransform().log_abs_det_jacobian(1,2)
D.AbsTransform().inv
D.AbsTransform().inv(t(1.))
D.Transform()
D.Transform().event_dim
D.SoftmaxTransform().sign
D.SoftmaxTransform().log_abs_det_jacobian(1,2)
D.StickBreakingTransform().inv
D.identity_transform
D.StickBreakingTransform()(t(1.))
D.StickBreakingTransform().forward_shape(())
D.SoftmaxTransform().forward_shape(())
D.CorrCholeskyTransform().forward_shape((4,))
D.CorrCholeskyTransform().forward_shape(())
D.CorrCholeskyTransform().inverse_shape((4,3))
D.CorrCholeskyTransform().inverse_shape((4,))
D.LowerCholeskyTransform().forward_shape((3,))
D.ReshapeTransform((2,3),(6,)).forward_shape((3,))
D.ReshapeTransform((2,3),(6,)).forward_shape((2,2))
D.ReshapeTransform((2,3),(6,)).inverse_shape(())
D.ReshapeTransform((2,3),(6,)).inverse_shape((2,))
D.IndependentTransform(D.ExpTransform(),1).forward_shape(())
D.IndependentTransform(D.ExpTransform(),1)(t(1.))
D.TransformedDistribution(D.Normal(0.,1.), [D.AbsTransform()]).log_prob(t(1.))
D.TransformedDistribution(D.Normal(0.,1.), [D.AbsTransform()]).cdf(t(1.))
D.TransformedDistribution(D.Normal(0.,1.), [D.AffineTransform(0,-2.)]).cdf(t(1.))
D.constraints.independent(C.positive,1).check(t(1.))
D.Wishart(t(2.), -torch.eye(2))
D.Wishart(t(2.), precision_matrix=torch.eye(2))
D.AffineTransform(0,1.) == D.AffineTransform(0,1.)
D.AffineTransform(0,t([1.])) == D.AffineTransform(0,t([1.]))
D.PowerTransform(t(2.)) == D.PowerTransform(2.)
D.ExpTransform() == D.ExpTransform()
D.ExpTransform().inv == D.ExpTransform().inv
D.AffineTransform(t([0.]),t([1.])).with_cache().loc
D.SigmoidTransform().domain, D.SigmoidTransform().codomain
D.AffineTransform(t([0.]),t([1.]),1).domain
D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()]).domain
D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0,-1.)]).sign
D.ReshapeTransform((2,3),(6,)).domain
D.StackTransform([D.ExpTransform(),D.SigmoidTransform()]).codomain
D.CatTransform([D.ExpTransform(),D.SigmoidTransform()]).codomain
D.CumulativeDistributionTransform(D.Normal(0.,1.)).domain
"""


@exact
def spoken(torch: Any) -> Any:
    """Printed forms and errors."""
    D = torch.distributions  # as programs call it
    names = {
        "torch": torch, "D": D, "t": torch.tensor, "C": D.constraints, "U": D.utils,
        "nan": float("nan"),
    }  # fmt: skip
    return {
        text: failing(lambda text=text: repr(eval(text, names)))
        for text in SPOKEN.strip().splitlines()
    }


@exact
def expanding(torch: Any) -> Any:
    """Subclasses of users."""
    D = torch.distributions  # as programs call it

    class Plain(D.Normal):
        pass

    class Own(D.Normal):
        def __init__(self, x: Any) -> None:
            super().__init__(x, x)

    class Silent(D.Distribution):
        arg_constraints: ClassVar[Any] = {}

    plain = Plain(torch.zeros(2), 1.0).expand((3, 2))
    return [
        type(plain).__name__, list(plain.batch_shape),
        failing(lambda: Own(torch.ones(2)).expand((3, 2))),
        failing(lambda: Silent().expand((2,))), repr(Silent()),
        failing(lambda: Silent().sample()), failing(lambda: Silent().mode),
        D.kl_divergence(plain, D.Normal(0.0, 1.0)).tolist(),
        failing(lambda: D.kl_divergence(Silent(), plain)),
    ]  # fmt: skip


@exact
def modules(torch: Any) -> Any:
    """PyTorch's modules, and the names in each."""
    import importlib

    found = {}
    for name in """
        bernoulli beta binomial categorical cauchy chi2 constraint_registry constraints
        continuous_bernoulli dirichlet distribution exp_family exponential fishersnedecor gamma
        generalized_pareto geometric gumbel half_cauchy half_normal independent inverse_gamma kl
        kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal
        mixture_same_family multinomial multivariate_normal negative_binomial normal
        one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical studentT
        transformed_distribution transforms uniform utils von_mises weibull wishart
    """.split():
        module = importlib.import_module(f"{torch.__name__}.distributions.{name}")
        found[name] = sorted(module.__all__)
    return found


def results(torch: Any) -> Any:
    return {**exact.results(torch), **close.results(torch)}
