"""Distributions of trials: outcomes, and how many there are of them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight.autograd.grad_mode import no_grad
from rushlight.distributions import constraints
from rushlight.distributions.distribution import EMPTY, Expands, ExponentialFamily, Odds
from rushlight.distributions.members import alias
from rushlight.distributions.names import F, ops
from rushlight.distributions.positive import Gamma
from rushlight.distributions.utils import (
    _expanded,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)

__all__ = [
    "Bernoulli", "Binomial", "ContinuousBernoulli", "Geometric", "NegativeBinomial", "Poisson",
]  # fmt: skip

ODDS: Any = {"probs": constraints.unit_interval, "logits": constraints.real}


def _cross_entropy(logits: Any, value: Any) -> Any:
    return F.binary_cross_entropy_with_logits(logits, value, reduction="none")


class Bernoulli(Odds, ExponentialFamily):
    """Bernoulli(probs=None, logits=None, validate_args=None)

    1 with probability `probs`, else 0.

    >>> d = torch.distributions.Bernoulli(0.25)
    >>> d.log_prob(torch.tensor(1.0)), d.variance
    (tensor(-1.3863), tensor(0.1875))
    """

    arg_constraints: ClassVar[Any] = ODDS
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_odds(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = alias("probs", "The probability of 1.")

    @property
    def mode(self) -> Any:
        """The likelier value; NaN if neither is."""
        found = (self.probs >= 0.5).to(self.probs)
        found[self.probs == 0.5] = math.nan
        return found

    @property
    def variance(self) -> Any:
        """p * (1 - p)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`."""
        with no_grad():
            return ops.bernoulli(_expanded(self.probs, self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return -_cross_entropy(*broadcast_all(self.logits, value))

    def entropy(self) -> Any:
        """The entropy."""
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        """0 and 1, along a new first dimension."""
        return _enumerated(self, ops.arange(2, **_like(self._param)), expand)

    @property
    def _natural_params(self) -> Any:
        return (ops.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return ops.log1p(ops.exp(x))


def _like(x: Any) -> Any:
    return {"dtype": x.dtype, "device": x.device}


def _enumerated(distribution: Any, values: Any, expand: bool) -> Any:
    """Values along a new first dimension, before those of the batch."""
    values = values.view((-1, *(1,) * len(distribution._batch_shape)))
    return values.expand((-1, *distribution._batch_shape)) if expand else values


class Binomial(Odds):
    """Binomial(total_count=1, probs=None, logits=None, validate_args=None)

    How many of `total_count` trials succeed.

    >>> d = torch.distributions.Binomial(4, torch.tensor(0.5))
    >>> d.mean, d.log_prob(torch.tensor(2.0)).exp()
    (tensor(2.), tensor(0.3750))
    """

    arg_constraints: ClassVar[Any] = {"total_count": constraints.nonnegative_integer, **ODDS}
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (self.total_count,) = self._take_odds(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From 0 to `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        """n * p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        """The likeliest count."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        """n * p * (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.binomial(_expanded(self.total_count, shape), _expanded(self.probs, shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        # n * log(1 + exp(logits)), safe from overflow
        softplus = _clamp_by_zero(logits) * n + n * ops.log1p(ops.exp(-ops.abs(logits)))
        norm = softplus - ops.lgamma(n + 1)
        return value * logits - ops.lgamma(value + 1) - ops.lgamma(n - value + 1) - norm

    def entropy(self) -> Any:
        """The entropy, summed over all counts."""
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(ops.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """0 to `total_count`, along a new first dimension."""
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return _enumerated(self, ops.arange(1 + count, **_like(self._param)), expand)


def _clamp_by_zero(x: Any) -> Any:
    """`x.clamp(min=0)`, whose gradient at 0 is 1/2."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Geometric(Odds):
    """Geometric(probs=None, logits=None, validate_args=None)

    How many trials fail before the first that succeeds.

    >>> d = torch.distributions.Geometric(0.25)
    >>> d.mean, d.log_prob(torch.tensor(0.0)).exp()
    (tensor(3.), tensor(0.2500))
    """

    arg_constraints: ClassVar[Any] = ODDS
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_odds(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            wrong = self.probs[self.probs <= 0]
            if wrong.numel():
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape "
                    f"{tuple(self.probs.shape)}) of distribution {self!r} to be positive "
                    f"but found invalid values:\n{wrong}"
                )

    @property
    def mean(self) -> Any:
        """1 / p - 1."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        """0."""
        return ops.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        """(1 / p - 1) / p."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`."""
        shape = self._extended_shape(sample_shape)
        tiny = ops.finfo(self.probs.dtype).tiny
        with no_grad():
            u = self.probs.new(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        sure = (probs == 1) & (value == 0)  # 0 * log(0)
        failing = ops.where(sure, ops.zeros_like(probs), probs)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Any:
        """The entropy."""
        return _cross_entropy(self.logits, self.probs) / self.probs


class NegativeBinomial(Odds):
    """NegativeBinomial(total_count, probs=None, logits=None, validate_args=None)

    How many trials succeed, with probability `probs` each, before `total_count` have failed.

    >>> d = torch.distributions.NegativeBinomial(2.0, 0.5)
    >>> d.mean, d.log_prob(torch.tensor(0.0)).exp()
    (tensor(2.), tensor(0.2500))
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (self.total_count,) = self._take_odds(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """n * p / (1 - p)."""
        return self.total_count * ops.exp(self.logits)

    @property
    def mode(self) -> Any:
        """The likeliest count."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        """The mean over 1 - p."""
        return self.mean / ops.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        # a rate of its own for each draw; a count of 0 is made by the Poisson distribution
        return Gamma(self.total_count, ops.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`."""
        with no_grad():
            return ops.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        powers = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = ops.lgamma(n + value) - ops.lgamma(1.0 + value) - ops.lgamma(n)
        return powers + ways.masked_fill(n + value == 0.0, 0.0)


class Poisson(Expands, ExponentialFamily):
    """Poisson(rate, validate_args=None)

    How often something happens in a unit of time, if it does so `rate` times on average.

    >>> d = torch.distributions.Poisson(4.0)
    >>> d.mean, d.log_prob(torch.tensor(4.0))
    (tensor(4.), tensor(-1.6329))
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = alias("rate", "The rate.")

    @property
    def mode(self) -> Any:
        """The likeliest count."""
        return self.rate.floor()

    variance = alias("rate", "The rate.")

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`."""
        with no_grad():
            return ops.poisson(_expanded(self.rate, self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> Any:
        return (ops.log(self.rate),)

    def _log_normalizer(self, x: Any) -> Any:
        return ops.exp(x)


class ContinuousBernoulli(Odds, ExponentialFamily):
    """ContinuousBernoulli(probs=None, logits=None, lims=(0.499, 0.501), validate_args=None)

    The distribution over [0, 1] with a density proportional to p ** x * (1 - p) ** (1 - x), for
    pixels of pictures. Between `lims` the formulas divide 0 by 0, and series take their place.

    >>> d = torch.distributions.ContinuousBernoulli(torch.tensor(0.25))
    >>> d.mean, d.cdf(torch.tensor(0.5))
    (tensor(0.4102), tensor(0.6340))
    """

    arg_constraints: ClassVar[Any] = ODDS
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: Any = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._take_odds(probs, logits)
        if probs is not None:
            if validate_args is not None and not ODDS["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.__dict__["probs"] = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        super()._expand_more(new, batch_shape)
        new._lims = self._lims

    @lazy_property
    def probs(self) -> Any:
        """Probabilities, away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Any:
        return ops.max(ops.le(self.probs, self._lims[0]), ops.gt(self.probs, self._lims[1]))

    def _cut_probs(self) -> Any:
        """The probabilities, with harmless ones where series take their place."""
        limit = self._lims[0] * ops.ones_like(self.probs)
        return ops.where(self._outside_unstable_region(), self.probs, limit)

    def _either(self, formula: Any, series: Any) -> Any:
        return ops.where(self._outside_unstable_region(), formula, series)

    def _cont_bern_log_norm(self) -> Any:
        """The logarithm of what normalises the density."""
        p = self._cut_probs()
        low = ops.where(ops.le(p, 0.5), p, ops.zeros_like(p))
        high = ops.where(ops.ge(p, 0.5), p, ops.ones_like(p))
        odds = ops.log(ops.abs(ops.log1p(-p) - ops.log(p)))
        width = ops.where(ops.le(p, 0.5), ops.log1p(-2.0 * low), ops.log(2.0 * high - 1.0))
        x = ops.pow(self.probs - 0.5, 2)
        return self._either(odds - width, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        """The mean."""
        p = self._cut_probs()
        found = p / (2.0 * p - 1.0) + 1.0 / (ops.log1p(-p) - ops.log(p))
        x = self.probs - 0.5
        return self._either(found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * ops.pow(x, 2)) * x)

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return ops.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        """The variance."""
        p = self._cut_probs()
        found = p * (p - 1.0) / ops.pow(1.0 - 2.0 * p, 2)
        found = found + 1.0 / ops.pow(ops.log1p(-p) - ops.log(p), 2)
        x = ops.pow(self.probs - 0.5, 2)
        return self._either(found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`, without a history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        return self.icdf(ops.rand(self._extended_shape(sample_shape), **_like(self.probs)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return -_cross_entropy(*broadcast_all(self.logits, value)) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        powers = ops.pow(p, value) * ops.pow(1.0 - p, 1.0 - value)
        found = self._either((powers + p - 1.0) / (2.0 * p - 1.0), value)
        found = ops.where(ops.ge(value, 1.0), ops.ones_like(found), found)
        return ops.where(ops.le(value, 0.0), ops.zeros_like(found), found)

    def icdf(self, value: Any) -> Any:
        p = self._cut_probs()
        found = ops.log1p(-p + value * (2.0 * p - 1.0)) - ops.log1p(-p)
        return self._either(found / (ops.log(p) - ops.log1p(-p)), value)

    def entropy(self) -> Any:
        """The entropy."""
        failing = ops.log1p(-self.probs)
        odds = failing - ops.log(self.probs)
        return self.mean * odds - self._cont_bern_log_norm() - failing

    @property
    def _natural_params(self) -> Any:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        outside = ops.max(ops.le(x, self._lims[0] - 0.5), ops.gt(x, self._lims[1] - 0.5))
        cut = ops.where(outside, x, (self._lims[0] - 0.5) * ops.ones_like(x))
        found = ops.log(ops.abs(ops.special.expm1(cut))) - ops.log(ops.abs(cut))
        series = 0.5 * x + ops.pow(x, 2) / 24.0 - ops.pow(x, 4) / 2880.0
        return ops.where(outside, found, series)
