"""KL divergences: `kl_divergence(p, q)`, found by the types of both.

>>> p, q = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0)
>>> torch.distributions.kl_divergence(p, q)
tensor(0.5000)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import total_ordering
from typing import Any

from rushlight import autograd
from rushlight.distributions.choices import Categorical, OneHotCategorical
from rushlight.distributions.counts import (
    Bernoulli,
    Binomial,
    ContinuousBernoulli,
    Geometric,
    Poisson,
)
from rushlight.distributions.derived import Independent, TransformedDistribution
from rushlight.distributions.distribution import ExponentialFamily
from rushlight.distributions.location import Cauchy, Laplace, Normal, Uniform
from rushlight.distributions.multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_lowrank_mahalanobis,
    _batch_mahalanobis,
    _half_log_det,
)
from rushlight.distributions.names import F, ops
from rushlight.distributions.positive import Beta, Dirichlet, Exponential, Gamma
from rushlight.distributions.transformed import Gumbel, HalfNormal, Pareto
from rushlight.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator: the function gives the divergence of distributions of these types, and of their
    subclasses where nothing closer is registered.

    Args:
        type_p: of the first distribution.
        type_q: of the second.

    >>> class Mine(torch.distributions.Normal):
    ...     pass
    >>> @torch.distributions.register_kl(Mine, Mine)
    ... def kl(p, q):
    ...     return torch.zeros(())
    >>> torch.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))
    tensor(0.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(fun: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()  # something closer may have come
        return fun

    return decorator


@total_ordering
class _Match:
    """How close a pair of types is to another: along the order of base classes."""

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    __hash__ = None  # type: ignore[assignment]  # compared, and not kept

    def __le__(self, other: _Match) -> bool:
        for x, y in zip(self.types, other.types, strict=True):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _dispatch_kl(type_p: type, type_q: type) -> Callable[[Any, Any], Any]:
    """The function for two types: that of the closest pair of base classes."""
    fits = [
        (super_p, super_q) for super_p, super_q in _KL_REGISTRY
        if issubclass(type_p, super_p) and issubclass(type_q, super_q)
    ]  # fmt: skip
    if not fits:
        return NotImplemented  # type: ignore[no-any-return]  # as PyTorch's does
    left_p, left_q = min(_Match(*m) for m in fits).types
    right_q, right_p = min(_Match(*reversed(m)) for m in fits).types
    found = _KL_REGISTRY[left_p, left_q]
    if found is not _KL_REGISTRY[right_p, right_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning, stacklevel=3,
        )  # fmt: skip
    return found


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of `p` from `q`, in nats: one number for each of the batch.

    Args:
        p: a distribution.
        q: a distribution.

    >>> D = torch.distributions
    >>> D.kl_divergence(D.Bernoulli(0.5), D.Bernoulli(0.25))
    tensor(0.1438)
    """
    types = type(p), type(q)
    fun = _KL_MEMOIZE.get(types)
    if fun is None:
        fun = _KL_MEMOIZE[types] = _dispatch_kl(*types)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} "
            f"and q type {type(q).__name__}"
        )
    return fun(p, q)


def _infinite_like(tensor: Any) -> Any:
    return ops.full_like(tensor, math.inf)


def _x_log_x(tensor: Any) -> Any:
    return ops.special.xlogy(tensor, tensor)


def _batch_trace_XXT(bmat: Any) -> Any:  # PyTorch's name
    """The trace of X X.T: the sum of squares."""
    return bmat.reshape((*bmat.shape[:-2], -1)).pow(2).sum(-1)


_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


# --- of one family --------------------------------------------------------------------------------
@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Any, q: Any) -> Any:
    one = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    zero = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    # what p never gives counts nothing; what q never gives and p does is infinitely far
    one = ops.where(q.probs == 0, math.inf, one)
    one = ops.where((p.probs == 0).expand(one.shape), 0.0, one)
    zero = ops.where(q.probs == 1, math.inf, zero)
    zero = ops.where((p.probs == 1).expand(zero.shape), 0.0, zero)
    return one + zero


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Any, q: Any) -> Any:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    norm_q = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    norm_p = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    return (
        norm_q
        - norm_p
        + (p.concentration1 - q.concentration1) * ops.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * ops.digamma(p.concentration0)
        + (total_q - total_p) * ops.digamma(total_p)
    )


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return ops.where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Any, q: Any) -> Any:
    t = p.probs * (p.logits - q.logits)
    t = ops.where((q.probs == 0).expand(t.shape), math.inf, t)
    return ops.where((p.probs == 0).expand(t.shape), 0.0, t).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    norms = p._cont_bern_log_norm() - q._cont_bern_log_norm()
    return p.mean * (p.logits - q.logits) + norms + (-p.probs).log1p() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    norms = total_p.lgamma() - total_q.lgamma()
    each = p.concentration.lgamma() - q.concentration.lgamma()
    slopes = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return norms - each.sum(-1) + ((p.concentration - q.concentration) * slopes).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "                            be computed using Bregman divergences"
        )
    params_p = [x.detach().requires_grad_() for x in p._natural_params]
    params_q = q._natural_params
    norm_p = p._log_normalizer(*params_p)
    gradients = autograd.grad(norm_p.sum(), params_p, create_graph=True)
    result = q._log_normalizer(*params_q) - norm_p
    for a, b, g in zip(params_q, params_p, gradients, strict=True):
        result = result - _sum_rightmost((a - b) * g, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + ops.lgamma(q.concentration)
        - ops.lgamma(p.concentration)
        + (p.concentration - q.concentration) * ops.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    p_loc, q_loc = p.loc / q.scale, q.loc / q.scale
    moment = ops.exp(q_loc - p_loc + ops.lgamma(ratio + 1))
    return p_loc - q_loc - ratio.log() + ratio * euler_constant + moment - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - ops.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: Any, q: Any) -> Any:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * ops.exp(-apart / p.scale) - 1


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Low Rank Multivariate Normals with"
            "                           different event shapes cannot be computed"
        )
    weighted = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    half = ops.linalg.solve_triangular(q._capacitance_tril, weighted, upper=False)
    # the trace of inv(q's covariance) times p's, by parts
    trace = (
        (p._unbroadcasted_cov_diag / q._unbroadcasted_cov_diag).sum(-1)
        + _batch_trace_XXT(
            p._unbroadcasted_cov_factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
        )
        - _batch_trace_XXT(half * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2))
        - _batch_trace_XXT(half.matmul(p._unbroadcasted_cov_factor))
    )
    return 0.5 * (q._log_det() - p._log_det() + trace + _lowrank_distance(q, p) - p.event_shape[0])


def _lowrank_distance(q: Any, p: Any) -> Any:
    return _batch_lowrank_mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril
    )


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with"
            "                           different event shapes cannot be computed"
        )
    weighted = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    half = ops.linalg.solve_triangular(q._capacitance_tril, weighted, upper=False)
    factor = p._unbroadcasted_scale_tril
    trace = _batch_trace_XXT(
        factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    ) - _batch_trace_XXT(half.matmul(factor))
    log_dets = q._log_det() - 2 * _half_log_det(factor)
    return 0.5 * (log_dets + trace + _lowrank_distance(q, p) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with"
            "                           different event shapes cannot be computed"
        )
    root = ops.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    parts = [_trace_solved(q, p._unbroadcasted_cov_factor), _trace_solved(q, root)]
    log_dets = 2 * _half_log_det(q._unbroadcasted_scale_tril) - p._log_det()
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return 0.5 * (log_dets + parts[0] + parts[1] + distance - p.event_shape[0])


def _trace_solved(q: Any, factor: Any) -> Any:
    """The trace of inv(q's covariance) @ factor @ factor.T."""
    return _batch_trace_XXT(
        ops.linalg.solve_triangular(q._unbroadcasted_scale_tril, factor, upper=False)
    )


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with"
            "                           different event shapes cannot be computed"
        )
    half_dets = _half_log_det(q._unbroadcasted_scale_tril) - _half_log_det(
        p._unbroadcasted_scale_tril
    )
    trace = _trace_solved(q, p._unbroadcasted_scale_tril)
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return half_dets + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: Any, q: Any) -> Any:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return ops.where(p.support.lower_bound < q.support.lower_bound, math.inf, kl)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms:
        raise NotImplementedError
    if p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return ops.where((q.low > p.low) | (q.high < p.high), math.inf, kl)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Any, q: Any) -> Any:
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


# --- of two families: minus the entropy of p, minus the mean of q's log-density -------------------
@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - ops.log1p(-q.probs) - q._cont_bern_log_norm()


def _exponential_cross(p: Any, q: Any) -> Any:
    """To an exponential distribution only the mean of p counts."""
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _gamma_cross(p: Any, q: Any, mean: Any, mean_log: Any) -> Any:
    """To a gamma distribution the means of p and of its logarithm count."""
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + norm - (q.concentration - 1) * mean_log + q.rate * mean


def _normal_cross(p: Any, q: Any, mean: Any, variance: Any) -> Any:
    """To a normal distribution the mean and variance of p count."""
    squares = (variance + (mean - q.loc).pow(2)) / q.scale.pow(2)
    return -p.entropy() + _HALF_LOG_2PI + q.scale.log() + 0.5 * squares


def _within(kl: Any, p_low: Any, p_high: Any, q_low: Any, q_high: Any) -> Any:
    """Infinite where p can leave the support of q."""
    return ops.where((p_low < q_low) | (p_high > q_high), math.inf, kl)


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p: Any, q: Any) -> Any:
    return _exponential_cross(p, q)


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    return _gamma_cross(p, q, p.mean, p.concentration1.digamma() - total.digamma())


@register_kl(Beta, Normal)
def _kl_beta_normal(p: Any, q: Any) -> Any:
    return _normal_cross(p, q, p.mean, p.variance)


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Any, q: Any) -> Any:
    kl = -p.entropy() + (q.high - q.low).log()
    limits = p.support
    return _within(kl, limits.lower_bound, limits.upper_bound, q.low, q.high)


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return _exponential_cross(p, q)


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    return _normal_cross(p, q, p.mean, p.variance)


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    kl = -p.entropy() + (q.high - q.low).log()
    limits = p.support
    inside = (limits.lower_bound >= q.low) & (limits.upper_bound <= q.high)
    return ops.where(inside, kl, ops.ones_like(kl) * math.inf)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Any, q: Any) -> Any:
    return _gamma_cross(p, q, p.mean, -euler_constant - p.rate.log())


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Any:
    rate = p.rate * q.scale
    loc = q.loc / q.scale
    return rate.log() - 1 + (loc.exp() * rate) / (rate + 1) - loc + rate.reciprocal()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p: Any, q: Any) -> Any:
    return _normal_cross(p, q, p.mean, p.variance)


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p: Any, q: Any) -> Any:
    return _exponential_cross(p, q)


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Any:
    beta = p.rate * q.scale
    loc = q.loc / q.scale
    moment = loc.exp() * (1 + beta.reciprocal()).pow(-p.concentration)
    return -p.entropy() + q.scale.log() + p.concentration / beta - loc + moment


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p: Any, q: Any) -> Any:
    return _normal_cross(p, q, p.mean, p.variance)


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p: Any, q: Any) -> Any:
    return _normal_cross(p, q, p.mean, p.variance)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p: Any, q: Any) -> Any:
    return _normal_cross(p, q, p.mean, p.variance)


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Any:
    apart = (p.loc - q.loc) / q.scale
    spread = (p.scale / q.scale).pow(2)
    moment = ops.exp(-apart + 0.5 * spread)
    return apart + moment - (p.scale / q.scale).log() - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Any:
    apart = p.loc - q.loc
    z = apart / p.scale
    mean_size = math.sqrt(2 / math.pi) * p.scale * ops.exp(-0.5 * z.pow(2)) + apart * ops.erf(
        z / math.sqrt(2)
    )
    return -p.entropy() + ops.log(2 * q.scale) + mean_size / q.scale


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    slope = p.alpha / (p.alpha - 1)
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + slope * product - 1
    return ops.where(p.alpha <= 1, math.inf, kl)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Any, q: Any) -> Any:
    mean = p.alpha * p.scale / (p.alpha - 1)  # not clamped, as `p.mean` is: gradients stay finite
    kl = _gamma_cross(p, q, mean, p.scale.log() + p.alpha.reciprocal())
    return ops.where(p.alpha <= 1, math.inf, kl)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Any, q: Any) -> Any:
    mean = p.alpha * p.scale / (p.alpha - 1)
    variance = p.alpha * (p.scale / (p.alpha - 1)).pow(2) / (p.alpha - 2)
    return ops.where(p.alpha <= 2, math.inf, _normal_cross(p, q, mean, variance))


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    mean_log_other = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / -width
    norm = (
        q.concentration1.lgamma()
        + q.concentration0.lgamma()
        - (q.concentration1 + q.concentration0).lgamma()
    )
    kl = (
        -width.log()
        - (q.concentration1 - 1) * mean_log
        - (q.concentration0 - 1) * mean_log_other
        + norm
    )
    limits = q.support
    return _within(kl, p.low, p.high, limits.lower_bound, limits.upper_bound)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    kl = -p.entropy() - p.mean * q.logits - ops.log1p(-q.probs) - q._cont_bern_log_norm()
    limits = q.support
    inside = (p.high <= limits.upper_bound) & (p.low >= limits.lower_bound)
    return ops.where(inside, kl, ops.ones_like(kl) * math.inf)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponetial(p: Any, q: Any) -> Any:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return ops.where(p.low < q.support.lower_bound, math.inf, kl)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Any:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    kl = _gamma_cross(p, q, p.mean, mean_log)
    return ops.where(p.low < q.support.lower_bound, math.inf, kl)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Any:
    width = (p.high - p.low) / q.scale
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    moment = ops.exp(-high) - ops.exp(-low)
    return 0.5 * (high + low) - (width.log() + moment / width)


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p: Any, q: Any) -> Any:
    return _normal_cross(p, q, p.mean, p.variance)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    kl = mean_log * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log()
    return ops.where(p.low < q.support.lower_bound, math.inf, kl)


# --- where p gives what q cannot: infinitely far --------------------------------------------------
# The name of the parameter of p whose shape the result has.
_INFINITE: list[tuple[type, list[type], str]] = [
    (Beta, [Pareto], "concentration1"),
    (ContinuousBernoulli, [Pareto], "probs"),
    (Exponential, [Beta, ContinuousBernoulli, Pareto, Uniform], "rate"),
    (Gamma, [Beta, ContinuousBernoulli, Pareto, Uniform], "concentration"),
    (Gumbel, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], "loc"),
    (Laplace, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], "loc"),
    (Normal, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], "loc"),
    (Pareto, [Beta, ContinuousBernoulli, Uniform], "scale"),
    (Poisson, [Bernoulli, Binomial], "rate"),
]


def _infinite(parameter: str) -> Callable[[Any, Any], Any]:
    return lambda p, q: _infinite_like(getattr(p, parameter))


for _kind, _others, _parameter in _INFINITE:
    for _other in _others:
        register_kl(_kind, _other)(_infinite(_parameter))
