"""`torch.distributions`: probability distributions to draw from, and to differentiate.

>>> d = torch.distributions.Normal(torch.tensor([0.0, 1.0]), 1.0)
>>> d.sample((3,)).shape
torch.Size([3, 2])
>>> d.log_prob(torch.zeros(2))
tensor([-0.9189, -1.4189])

Distributions stand in files by family. PyTorch has a file for each, and `MODULES` gives programs
that import from these the same names.
"""

import importlib.machinery as _machinery
import sys as _sys
import types as _types
import typing as _typing

from rushlight.distributions import (
    choices,
    counts,
    derived,
    distribution,
    location,
    multivariate,
    positive,
    transformed,
)
from rushlight.distributions import constraint_registry as constraint_registry
from rushlight.distributions import constraints as constraints
from rushlight.distributions import kl as kl
from rushlight.distributions import transforms as transforms
from rushlight.distributions import utils as utils
from rushlight.distributions.choices import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from rushlight.distributions.constraint_registry import biject_to, transform_to
from rushlight.distributions.counts import (
    Bernoulli,
    Binomial,
    ContinuousBernoulli,
    Geometric,
    NegativeBinomial,
    Poisson,
)
from rushlight.distributions.derived import (
    Independent,
    MixtureSameFamily,
    TransformedDistribution,
)
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.location import (
    Cauchy,
    GeneralizedPareto,
    Laplace,
    Normal,
    StudentT,
    Uniform,
    VonMises,
)
from rushlight.distributions.multivariate import (
    LKJCholesky,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
)
from rushlight.distributions.positive import (
    Beta,
    Chi2,
    Dirichlet,
    Exponential,
    FisherSnedecor,
    Gamma,
)
from rushlight.distributions.transformed import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    Weibull,
)
from rushlight.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from rushlight.missing import face as _face

# PyTorch's modules: the family's module, and the names that each has.
MODULES = {
    "bernoulli": (counts, "Bernoulli"),
    "beta": (positive, "Beta"),
    "binomial": (counts, "Binomial _clamp_by_zero"),
    "categorical": (choices, "Categorical"),
    "cauchy": (location, "Cauchy"),
    "chi2": (positive, "Chi2"),
    "continuous_bernoulli": (counts, "ContinuousBernoulli"),
    "dirichlet": (positive, "Dirichlet _Dirichlet _Dirichlet_backward"),
    "exp_family": (distribution, "ExponentialFamily"),
    "exponential": (positive, "Exponential"),
    "fishersnedecor": (positive, "FisherSnedecor"),
    "gamma": (positive, "Gamma _standard_gamma"),
    "generalized_pareto": (location, "GeneralizedPareto"),
    "geometric": (counts, "Geometric"),
    "gumbel": (transformed, "Gumbel"),
    "half_cauchy": (transformed, "HalfCauchy"),
    "half_normal": (transformed, "HalfNormal"),
    "independent": (derived, "Independent"),
    "inverse_gamma": (transformed, "InverseGamma"),
    "kumaraswamy": (transformed, "Kumaraswamy _moments"),
    "laplace": (location, "Laplace"),
    "lkj_cholesky": (multivariate, "LKJCholesky"),
    "log_normal": (transformed, "LogNormal"),
    "logistic_normal": (transformed, "LogisticNormal"),
    "lowrank_multivariate_normal": (
        multivariate,
        "LowRankMultivariateNormal _batch_capacitance_tril _batch_lowrank_logdet "
        "_batch_lowrank_mahalanobis _batch_mahalanobis _batch_mv",
    ),
    "mixture_same_family": (derived, "MixtureSameFamily"),
    "multinomial": (choices, "Multinomial"),
    "multivariate_normal": (
        multivariate, "MultivariateNormal _batch_mahalanobis _batch_mv _precision_to_scale_tril",
    ),
    "negative_binomial": (counts, "NegativeBinomial"),
    "normal": (location, "Normal"),
    "one_hot_categorical": (choices, "OneHotCategorical OneHotCategoricalStraightThrough"),
    "pareto": (transformed, "Pareto"),
    "poisson": (counts, "Poisson"),
    "relaxed_bernoulli": (transformed, "LogitRelaxedBernoulli RelaxedBernoulli"),
    "relaxed_categorical": (transformed, "ExpRelaxedCategorical RelaxedOneHotCategorical"),
    "studentT": (location, "StudentT"),
    "transformed_distribution": (derived, "TransformedDistribution"),
    "uniform": (location, "Uniform"),
    "von_mises": (location, "VonMises"),
    "weibull": (transformed, "Weibull"),
    "wishart": (multivariate, "Wishart _clamp_above_eps _mvdigamma"),
}  # fmt: skip

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform",
    "Categorical", "Cauchy", "Chi2", "ComposeTransform", "ContinuousBernoulli",
    "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution",
    "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal",
    "LogisticNormal", "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily",
    "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform",
    "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution",
    "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "identity_transform", "kl_divergence",
    "register_kl", "transform_to",
]  # fmt: skip


def _make_modules() -> None:
    """Enter PyTorch's modules beside those of families, so that `import` finds them."""
    # What each of PyTorch's modules imports itself, and programs import from there.
    around: dict[str, object] = {"Distribution": Distribution, "constraints": constraints}
    around |= {n: getattr(utils, n) for n in utils.__all__}
    for name, (family, names) in MODULES.items():
        whole = f"{__name__}.{name}"
        module = _types.ModuleType(whole, f"The names of PyTorch's `torch.distributions.{name}`.")
        module.__spec__ = _machinery.ModuleSpec(whole, None, origin=family.__file__)
        module.__dict__.update(around | {n: getattr(family, n) for n in names.split()})
        module.__dict__["__all__"] = [n for n in names.split() if not n.startswith("_")]
        _sys.modules[whole] = globals()[name] = module


_make_modules()

if not _typing.TYPE_CHECKING:
    _submodules = "constraint_registry constraints distribution kl transforms utils".split()
    __getattr__, __dir__ = _face(
        "torch.distributions", globals(), unlisted=[*MODULES, *_submodules]
    )
