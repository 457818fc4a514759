"""Distributions that are transforms of simpler ones."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight.distributions import constraints
from rushlight.distributions.choices import CHOICE, Categorical, _OfChoices
from rushlight.distributions.counts import ODDS
from rushlight.distributions.derived import TransformedDistribution
from rushlight.distributions.distribution import EMPTY, Odds, _ours
from rushlight.distributions.location import Cauchy, Normal, Uniform
from rushlight.distributions.members import alias
from rushlight.distributions.names import ops
from rushlight.distributions.positive import Exponential, Gamma
from rushlight.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
)
from rushlight.distributions.utils import broadcast_all, clamp_probs, euler_constant

__all__ = [
    "ExpRelaxedCategorical", "Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy",
    "LogNormal", "LogisticNormal", "LogitRelaxedBernoulli", "Pareto", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "Weibull",
]  # fmt: skip


class _Transformed(TransformedDistribution):
    """Transformed distributions with parameters of their own, which `expand` takes along."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with a larger batch, whose parameters are expanded views."""
        new = self._get_checked_instance(_ours(type(self)), _instance)
        for name in self.arg_constraints:
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape)
        return super().expand(batch_shape, _instance=new)


class LogNormal(_Transformed):
    """LogNormal(loc, scale, validate_args=None)

    The distribution of exp(x) for a normal x.

    >>> d = torch.distributions.LogNormal(0.0, 1.0)
    >>> d.mean, d.cdf(torch.tensor(1.0))
    (tensor(1.6487), tensor(0.5000))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = alias("base_dist.loc", "The mean of the logarithm.")
    scale = alias("base_dist.scale", "The standard deviation of the logarithm.")

    @property
    def mean(self) -> Any:
        """exp(loc + scale ** 2 / 2)."""
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        """exp(loc - scale ** 2)."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        """The variance."""
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Any:
        """The entropy."""
        return self.base_dist.entropy() + self.loc


class LogisticNormal(_Transformed):
    """LogisticNormal(loc, scale, validate_args=None)

    Vectors of proportions that sum to 1, by breaking a stick at normal draws: one more of them than
    `loc` has.

    >>> torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2)).event_shape
    torch.Size([3])
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = alias("base_dist.base_dist.loc", "The mean of the normal draws.")
    scale = alias("base_dist.base_dist.scale", "Their standard deviation.")


class _Half(_Transformed):
    """The sizes of draws from a distribution that is symmetric around 0."""

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = alias("base_dist.scale", "The scale of the whole distribution.")

    @property
    def mode(self) -> Any:
        """0."""
        return ops.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        value = ops.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return ops.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        """The inverse of `cdf`: quantiles.

        Args:
            prob: a tensor of probabilities.
        """
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        """The entropy."""
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """HalfNormal(scale, validate_args=None)

    The distribution of |x| for a normal x with mean 0.

    >>> torch.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """scale * sqrt(2 / pi)."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        """scale ** 2 * (1 - 2 / pi)."""
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """HalfCauchy(scale, validate_args=None)

    The distribution of |x| for a Cauchy distributed x around 0.

    >>> torch.distributions.HalfCauchy(1.0).icdf(torch.tensor(0.25))
    tensor(0.4142)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """Infinite."""
        return ops.full_like(self.scale, math.inf, memory_format=ops.contiguous_format)

    variance = alias("base_dist.variance", "Infinite.")


class Gumbel(_Transformed):
    """Gumbel(loc, scale, validate_args=None)

    The distribution of the largest of many draws.

    >>> d = torch.distributions.Gumbel(0.0, 1.0)
    >>> d.mean, d.log_prob(torch.tensor(0.0))
    (tensor(0.5772), tensor(-1.))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = ops.finfo(self.loc.dtype)
        low, high = limits.tiny, 1 - limits.eps
        if isinstance(loc, (int, float)) and isinstance(scale, (int, float)):
            base = Uniform(low, high, validate_args=validate_args)
        else:
            base = Uniform(
                ops.full_like(self.loc, low), ops.full_like(self.loc, high),
                validate_args=validate_args,
            )  # fmt: skip
        transforms = [
            ExpTransform().inv, AffineTransform(loc=0, scale=-ops.ones_like(self.scale)),
            ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Any:
        """loc and Euler's constant times scale."""
        return self.loc + self.scale * euler_constant

    mode = alias("loc", "The location.")

    @property
    def stddev(self) -> Any:
        """pi / sqrt(6) * scale."""
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        """The square of that."""
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        """The entropy."""
        return self.scale.log() + (1 + euler_constant)


class InverseGamma(_Transformed):
    """InverseGamma(concentration, rate, validate_args=None)

    The distribution of 1 / x for a gamma distributed x.

    >>> torch.distributions.InverseGamma(3.0, 2.0).mean
    tensor(1.)
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.positive, "rate": constraints.positive,
    }  # fmt: skip
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    concentration = alias("base_dist.concentration", "The concentration of the gamma distribution.")
    rate = alias("base_dist.rate", "The rate of the gamma distribution.")

    @property
    def mean(self) -> Any:
        """Finite for concentrations above 1."""
        found = self.rate / (self.concentration - 1)
        return ops.where(self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> Any:
        """rate / (concentration + 1)."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        """Finite for concentrations above 2."""
        a = self.concentration
        found = self.rate.square() / ((a - 1).square() * (a - 2))
        return ops.where(a > 2, found, math.inf)

    def entropy(self) -> Any:
        """The entropy."""
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


def _moments(a: Any, b: Any, n: int) -> Any:
    """The mean of x ** n of a Kumaraswamy distribution."""
    c = 1 + n / a
    return b * ops.exp(ops.lgamma(c) + ops.lgamma(b) - ops.lgamma(c + b))


class Kumaraswamy(_Transformed):
    """Kumaraswamy(concentration1, concentration0, validate_args=None)

    A distribution over [0, 1] much like the beta distribution, with a simple `cdf`:
    1 - (1 - x ** concentration1) ** concentration0.

    >>> d = torch.distributions.Kumaraswamy(2.0, 2.0)
    >>> d.mean, d.cdf(torch.tensor(0.5))
    (tensor(0.5333), tensor(0.4375))
    """

    arg_constraints: ClassVar[Any] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            ops.full_like(self.concentration0, 0), ops.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )  # fmt: skip
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """The first moment."""
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Any:
        """Where the density is highest, if neither concentration is below 1."""
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        found = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return ops.where(inside, found, math.nan)

    @property
    def variance(self) -> Any:
        """The second moment, less the squared mean."""
        return _moments(self.concentration1, self.concentration0, 2) - ops.pow(self.mean, 2)

    def entropy(self) -> Any:
        """The entropy."""
        a, b = self.concentration1, self.concentration0
        harmonic = ops.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - ops.log(a) - ops.log(b)


class Pareto(_Transformed):
    """Pareto(scale, alpha, validate_args=None)

    The distribution with a power as its tail: of x above `scale`, with density falling as
    x ** -(alpha + 1).

    >>> d = torch.distributions.Pareto(1.0, 3.0)
    >>> d.mean, d.log_prob(torch.tensor(2.0))
    (tensor(1.5000), tensor(-1.6740))
    """

    arg_constraints: ClassVar[Any] = {
        "alpha": constraints.positive, "scale": constraints.positive,
    }  # fmt: skip

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `scale` on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        """Finite for alpha above 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = alias("scale", "The scale.")

    @property
    def variance(self) -> Any:
        """Finite for alpha above 2."""
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Any:
        """The entropy."""
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(_Transformed):
    """Weibull(scale, concentration, validate_args=None)

    The distribution of lifetimes whose rate of failure is a power of the age.

    >>> d = torch.distributions.Weibull(1.0, 2.0)
    >>> d.mean, d.cdf(torch.tensor(1.0))
    (tensor(0.8862), tensor(0.6321))
    """

    arg_constraints: ClassVar[Any] = {
        "scale": constraints.positive, "concentration": constraints.positive,
    }  # fmt: skip
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ops.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.concentration_reciprocal = new.concentration.reciprocal()
        return new

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.scale * ops.exp(ops.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Any:
        """Where the density is highest."""
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Any:
        """The variance."""
        r = self.concentration_reciprocal
        return self.scale.pow(2) * (ops.exp(ops.lgamma(1 + 2 * r)) - ops.exp(2 * ops.lgamma(1 + r)))

    def entropy(self) -> Any:
        """The entropy."""
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + ops.log(self.scale * r) + 1


# --- relaxed choices, which can be differentiated -------------------------------------------------
class LogitRelaxedBernoulli(Odds):
    """LogitRelaxedBernoulli(temperature, probs=None, logits=None, validate_args=None)

    The log-odds of draws from `RelaxedBernoulli`.

    >>> relaxed_bernoulli = torch.distributions.relaxed_bernoulli
    >>> relaxed_bernoulli.LogitRelaxedBernoulli(torch.tensor(1.0), 0.5).log_prob(torch.tensor(0.0))
    tensor(-1.3863)
    """

    arg_constraints: ClassVar[Any] = ODDS
    support = constraints.real

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self.temperature = temperature
        self._take_odds(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        super()._expand_more(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(ops.rand(shape, dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class _Relaxed(_Transformed):
    """What both relaxed distributions show of the one they transform."""

    has_rsample = True

    temperature = alias("base_dist.temperature", "How far the draws are relaxed.")
    logits = alias("base_dist.logits", "Log-odds, or logarithms of probabilities.")
    probs = alias("base_dist.probs", "Probabilities.")


class RelaxedBernoulli(_Relaxed):
    """RelaxedBernoulli(temperature, probs=None, logits=None, validate_args=None)

    Numbers in (0, 1) that can be differentiated, and come close to draws from a Bernoulli
    distribution for a low `temperature`.

    >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(2.0), torch.tensor([0.5]))
    >>> d.log_prob(torch.tensor([0.5]))
    tensor([0.6931])
    """

    arg_constraints: ClassVar[Any] = ODDS
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(_OfChoices):
    """ExpRelaxedCategorical(temperature, probs=None, logits=None, validate_args=None)

    The logarithms of draws from `RelaxedOneHotCategorical`.

    >>> relaxed_categorical = torch.distributions.relaxed_categorical
    >>> relaxed_categorical.ExpRelaxedCategorical(torch.tensor(1.0), torch.ones(2)).event_shape
    torch.Size([2])
    """

    arg_constraints: ClassVar[Any] = CHOICE
    support = constraints.real_vector  # those whose exponentials sum to 1
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new.temperature = self.temperature

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(ops.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature  # with Gumbel noise
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        k = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        scale = ops.full_like(self.temperature, float(k)).lgamma() + self.temperature.log() * (
            k - 1
        )
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """RelaxedOneHotCategorical(temperature, probs=None, logits=None, validate_args=None)

    Vectors of proportions that can be differentiated, and come close to one-hot draws for a low
    `temperature`: the Gumbel-softmax distribution.

    >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(1.0), torch.ones(2))
    >>> d.log_prob(torch.tensor([0.5, 0.5]))
    tensor(0.)
    """

    arg_constraints: ClassVar[Any] = CHOICE
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
