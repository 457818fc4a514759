"""Distributions over positive numbers, and over proportions, which are made of them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight.autograd import Function
from rushlight.distributions import constraints
from rushlight.distributions.distribution import EMPTY, Expands, ExponentialFamily
from rushlight.distributions.names import F, ops
from rushlight.distributions.utils import broadcast_all

__all__ = ["Beta", "Chi2", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma"]


class Exponential(Expands, ExponentialFamily):
    """Exponential(rate, validate_args=None)

    The exponential distribution: how long to wait for what happens `rate` times in a unit.

    >>> d = torch.distributions.Exponential(2.0)
    >>> d.mean, d.log_prob(torch.tensor(1.0)), d.cdf(torch.tensor(1.0))
    (tensor(0.5000), tensor(-1.3069), tensor(0.8647))
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """1 / rate."""
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        """0."""
        return ops.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        """1 / rate."""
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        """1 / rate ** 2."""
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        return self.rate.new(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - ops.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -ops.log1p(-value) / self.rate

    def entropy(self) -> Any:
        """1 - log(rate)."""
        return 1.0 - ops.log(self.rate)

    @property
    def _natural_params(self) -> Any:
        return (-self.rate,)

    def _log_normalizer(self, x: Any) -> Any:
        return -ops.log(-x)


def _standard_gamma(concentration: Any) -> Any:
    return ops._standard_gamma(concentration)


class Gamma(Expands, ExponentialFamily):
    """Gamma(concentration, rate, validate_args=None)

    The gamma distribution: for a whole `concentration` the sum of that many exponential ones.
    Gradients of draws are those of the implicit function that `cdf` defines.

    >>> d = torch.distributions.Gamma(2.0, 1.0)
    >>> d.mean, d.log_prob(torch.tensor(1.0)), d.cdf(torch.tensor(1.0))
    (tensor(2.), tensor(-1.), tensor(0.2642))
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.positive, "rate": constraints.positive,
    }  # fmt: skip
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """concentration / rate."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        """(concentration - 1) / rate, or 0."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        """concentration / rate ** 2."""
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=ops.finfo(value.dtype).tiny)  # 0 has no logarithm
        return value

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        value = ops.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return ops.xlogy(a, rate) + ops.xlogy(a - 1, value) - rate * value - ops.lgamma(a)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return ops.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        """The entropy."""
        a = self.concentration
        return a - ops.log(self.rate) + ops.lgamma(a) + (1.0 - a) * ops.digamma(a)

    @property
    def _natural_params(self) -> Any:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return ops.lgamma(x + 1) + (x + 1) * ops.log(-y.reciprocal())


class Chi2(Gamma):
    """Chi2(df, validate_args=None)

    The chi-squared distribution: the sum of `df` squared draws from the standard normal one.

    >>> torch.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.concentration * 2


class FisherSnedecor(Expands):
    """FisherSnedecor(df1, df2, validate_args=None)

    The F distribution: the ratio of two means of squared normal draws, of `df1` and `df2` of them.

    >>> torch.distributions.FisherSnedecor(3.0, 5.0).mean
    tensor(1.6667)
    """

    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _inside = ("_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """df2 / (df2 - 2), for df2 above 2."""
        df2 = ops.where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        """Where the density is highest, for df1 above 2."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return ops.where(self.df1 <= 2, math.nan, found)

    @property
    def variance(self) -> Any:
        """Defined for df2 above 4."""
        df1, df2 = self.df1, ops.where(self.df2 <= 4, math.nan, self.df2)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        tiny = ops.finfo(self.df2.dtype).tiny
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape)
        below.clamp_(min=tiny)
        ratio = above / below
        ratio.clamp_(min=tiny)
        return ratio

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        powers = a * ratio.log() + (a - 1) * ops.log(value)
        return powers - (a + b) * ops.log1p(ratio * value) - log_beta


class _Dirichlet(Function):
    """Draws, with the gradients that follow from each component's marginal distribution."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        x = ops._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


def _Dirichlet_backward(x: Any, concentration: Any, grad_output: Any) -> Any:  # PyTorch's name
    total = concentration.sum(-1, True).expand_as(concentration)
    slope = ops._dirichlet_grad(x, concentration, total)
    return slope * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(Expands, ExponentialFamily):
    """Dirichlet(concentration, validate_args=None)

    Vectors of proportions that sum to 1; the larger `concentration`, the more a component has.

    >>> d = torch.distributions.Dirichlet(torch.tensor([1.0, 3.0]))
    >>> d.mean, d.log_prob(torch.tensor([0.5, 0.5]))
    (tensor([0.2500, 0.7500]), tensor(-0.2877))
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return ops.xlogy(a - 1.0, value).sum(-1) + ops.lgamma(a.sum(-1)) - ops.lgamma(a).sum(-1)

    @property
    def mean(self) -> Any:
        """The concentrations, as proportions."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        """Where the density is highest; a corner if all concentrations are below 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        found = above / above.sum(-1, True)
        corner = (self.concentration < 1).all(dim=-1)
        found[corner] = F.one_hot(found[corner].argmax(dim=-1), found.shape[-1]).to(found)
        return found

    @property
    def variance(self) -> Any:
        """The variance of each component."""
        a = self.concentration
        total = a.sum(-1, True)
        return a * (total - a) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        """The entropy."""
        a = self.concentration
        total, k = a.sum(-1), a.size(-1)
        norm = ops.lgamma(a).sum(-1) - ops.lgamma(total)
        return norm - (k - total) * ops.digamma(total) - ((a - 1.0) * ops.digamma(a)).sum(-1)

    @property
    def _natural_params(self) -> Any:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - ops.lgamma(x.sum(-1))


class Beta(Expands, ExponentialFamily):
    """Beta(concentration1, concentration0, validate_args=None)

    The beta distribution of a proportion: the first of the two that a Dirichlet distribution gives.

    >>> d = torch.distributions.Beta(2.0, 2.0)
    >>> d.mean, d.log_prob(torch.tensor(0.5))
    (tensor(0.5000), tensor(0.4055))
    """

    arg_constraints: ClassVar[Any] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support = constraints.unit_interval
    has_rsample = True
    _inside = ("_dirichlet",)

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = ops.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Any:
        """The concentration at 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """The concentration at 0."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        """The proportion of the concentrations."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        """Where the density is highest."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        """The variance."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(ops.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        """The entropy."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> Any:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return ops.lgamma(x) + ops.lgamma(y) - ops.lgamma(x + y)
