"""Distributions over the real line, or a part of it, with a location and a scale."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight.autograd.grad_mode import no_grad
from rushlight.distributions import constraints
from rushlight.distributions.distribution import EMPTY, Expands, ExponentialFamily
from rushlight.distributions.members import alias
from rushlight.distributions.names import ops
from rushlight.distributions.positive import Chi2
from rushlight.distributions.utils import _expanded, _standard_normal, broadcast_all, lazy_property

__all__ = [
    "Cauchy", "GeneralizedPareto", "Laplace", "Normal", "StudentT", "Uniform", "VonMises",
]  # fmt: skip


class LocationScale(Expands):
    """Distributions with `loc` and `scale`."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True
    loc: Any
    scale: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = alias("loc", "The location.")
    mode = alias("loc", "The location.")

    def _standardized(self, value: Any) -> Any:
        """`value`, checked, with location 0 and scale 1."""
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(LocationScale, ExponentialFamily):
    """Normal(loc, scale, validate_args=None)

    The normal distribution, with mean `loc` and standard deviation `scale`.

    >>> d = torch.distributions.Normal(0.0, 1.0)
    >>> d.log_prob(torch.tensor(0.0)), d.cdf(torch.tensor(0.0)), d.entropy()
    (tensor(-0.9189), tensor(0.5000), tensor(1.4189))
    >>> _ = torch.manual_seed(0)
    >>> d.sample((3,))
    tensor([ 1.5410, -0.2934, -2.1788])
    """

    _mean_carrier_measure = 0

    stddev = alias("scale", "The scale.")

    @property
    def variance(self) -> Any:
        """The squared scale."""
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`, without a history."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.normal(_expanded(self.loc, shape), _expanded(self.scale, shape))

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        squares = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -squares - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + ops.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * ops.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        """The entropy: log(scale) and a constant."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + ops.log(self.scale)

    @property
    def _natural_params(self) -> Any:
        precision = self.scale.pow(2).reciprocal()
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x.pow(2) / y + 0.5 * ops.log(-math.pi / y)


class Laplace(LocationScale):
    """Laplace(loc, scale, validate_args=None)

    The Laplace distribution: exponential to both sides of `loc`.

    >>> d = torch.distributions.Laplace(0.0, 1.0)
    >>> d.log_prob(torch.tensor(1.0)), d.variance
    (tensor(-1.6931), tensor(2.))
    """

    @property
    def variance(self) -> Any:
        """Twice the squared scale."""
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        """The square root of that."""
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        # -1 is left out: its logarithm would be infinite
        lowest = ops.finfo(self.loc.dtype).eps - 1
        u = ops.empty(shape, dtype=self.loc.dtype, device=self.loc.device).uniform_(lowest, 1)
        return self.loc - self.scale * u.sign() * ops.log1p(-u.abs())

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return -ops.log(2 * self.scale) - ops.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * ops.expm1(-away.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * ops.log1p(-2 * away.abs())

    def entropy(self) -> Any:
        """The entropy: log(scale) and a constant."""
        return 1 + ops.log(2 * self.scale)


class Cauchy(LocationScale):
    """Cauchy(loc, scale, validate_args=None)

    The Cauchy distribution around `loc`; `scale` is half its width at half its height. It has no
    mean.

    >>> d = torch.distributions.Cauchy(0.0, 1.0)
    >>> d.log_prob(torch.tensor(0.0)), d.icdf(torch.tensor(0.75)), d.mean
    (tensor(-1.1447), tensor(1.), tensor(nan))
    """

    @property
    def mean(self) -> Any:
        """NaN: there is none."""
        return ops.full_like(self.loc, math.nan, memory_format=ops.contiguous_format)

    @property
    def variance(self) -> Any:
        """Infinite."""
        return ops.full_like(self.loc, math.inf, memory_format=ops.contiguous_format)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.loc.new(shape).cauchy_() * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        return -math.log(math.pi) - self.scale.log() - (self._standardized(value) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        return ops.atan(self._standardized(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return ops.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        """The entropy: log(scale) and a constant."""
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(LocationScale):
    """StudentT(df, loc=0.0, scale=1.0, validate_args=None)

    Student's distribution with `df` degrees of freedom.

    >>> d = torch.distributions.StudentT(3.0)
    >>> d.log_prob(torch.tensor(0.0)), d.variance
    (tensor(-1.0009), tensor(3.))
    """

    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    _inside = ("_chi2",)

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        Expands.__init__(self, self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """The location, for more than one degree of freedom."""
        found = self.loc.clone(memory_format=ops.contiguous_format)
        found[self.df <= 1] = math.nan
        return found

    @property
    def variance(self) -> Any:
        """Finite for more than two degrees of freedom."""
        df = self.df
        found = ops.where(df > 2, self.scale.pow(2) * df / (df - 2), math.inf)
        return ops.where(df <= 1, math.nan, found)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        return self.loc + self.scale * (x * ops.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        y = self._standardized(value)
        half = 0.5 * self.df
        norm = (
            self.scale.log() + 0.5 * (self.df.log() + math.log(math.pi))
            + ops.lgamma(half) - ops.lgamma(half + 0.5)
        )  # fmt: skip
        return -0.5 * (self.df + 1.0) * ops.log1p(y**2.0 / self.df) - norm

    def entropy(self) -> Any:
        """The entropy."""
        half = 0.5 * self.df
        log_beta = ops.lgamma(half) + math.lgamma(0.5) - ops.lgamma(half + 0.5)
        slope = ops.digamma(half + 0.5) - ops.digamma(half)
        return self.scale.log() + (half + 0.5) * slope + 0.5 * self.df.log() + log_beta


class Uniform(Expands):
    """Uniform(low, high, validate_args=None)

    The uniform distribution over [low, high).

    >>> d = torch.distributions.Uniform(0.0, 2.0)
    >>> d.log_prob(torch.tensor(1.0)), d.cdf(torch.tensor(1.0))
    (tensor(-0.6931), tensor(0.5000))
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        """`low` is less than `high`."""
        return {
            "low": constraints.less_than(self.high), "high": constraints.greater_than(self.low),
        }  # fmt: skip

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `low` to `high`."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        """NaN: no value is likelier than another."""
        return math.nan * self.high

    @property
    def stddev(self) -> Any:
        """The width over the square root of 12."""
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        """The squared width over 12."""
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        u = ops.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        inside = self.low.le(value) & self.high.gt(value)
        return ops.log(inside.type_as(self.low)) - ops.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        """The logarithm of the width."""
        return ops.log(self.high - self.low)


class GeneralizedPareto(LocationScale):
    """GeneralizedPareto(loc, scale, concentration, validate_args=None)

    The distribution of what exceeds a high threshold `loc`; tails are heavy for a positive
    `concentration`, exponential for 0, and end for a negative one.

    >>> d = torch.distributions.GeneralizedPareto(0.0, 1.0, 0.25)
    >>> d.mean, d.cdf(torch.tensor(1.0))
    (tensor(1.3333), tensor(0.5904))
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        Expands.__init__(self, self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `loc` on, to an end where the concentration is negative."""
        k = self.concentration
        end = ops.where(k < 0, self.loc - self.scale / k, math.inf)
        return constraints.interval(self.loc, end)

    def _shape_parameter(self) -> tuple[Any, Any]:
        """Where the concentration is 0, and the concentration with 1 there, to divide by."""
        k = self.concentration
        zero = ops.isclose(k, ops.zeros_like(k))
        return zero, ops.where(zero, ops.ones_like(k), k)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        z = self._standardized(value)
        zero, k = self._shape_parameter()
        return -self.scale.log() - ops.where(zero, z, (1 + 1 / k) * ops.log1p(k * z))

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of a draw above `value`.

        Args:
            value: a tensor that broadcasts with a sample.
        """
        z = self._standardized(value)
        zero, k = self._shape_parameter()
        return -ops.where(zero, z, ops.log1p(k * z) / k)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of `cdf`.

        Args:
            value: a tensor that broadcasts with a sample.
        """
        return ops.log1p(-ops.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return ops.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        zero, k = self._shape_parameter()
        tail = ops.log1p(-value)
        return self.loc + self.scale * ops.where(zero, -tail, ops.expm1(-k * tail) / k)

    @property
    def mean(self) -> Any:
        """NaN for concentrations of 1 and more."""
        k = self.concentration
        safe = ops.where(k < 1, k, 0.5)  # a value that does not spoil the gradient
        return ops.where(k < 1, self.loc + self.scale / (1 - safe), math.nan)

    @property
    def variance(self) -> Any:
        """NaN for concentrations of 1/2 and more."""
        k = self.concentration
        safe = ops.where(k < 0.5, k, 0.25)
        found = self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe))
        return ops.where(k < 0.5, found, math.nan)

    def entropy(self) -> Any:
        """The entropy, of the batch's shape."""
        return (ops.log(self.scale) + self.concentration + 1).expand(self._batch_shape)


class VonMises(Expands):
    """VonMises(loc, concentration, validate_args=None)

    The distribution of angles around `loc`, in radians; the larger `concentration`, the closer.

    >>> d = torch.distributions.VonMises(0.0, 2.0)
    >>> d.log_prob(torch.tensor(0.0)), d.variance
    (tensor(-0.6619), tensor(0.3022))
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, EMPTY, validate_args)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # log I0(k) = log(i0e(k)) + k, which does not overflow
        return k * (ops.cos(value - self.loc) - 1) - (
            math.log(2 * math.pi) + ops.special.i0e(k).log()
        )

    # Draws are computed in double precision: in single, those of a large concentration repeat.
    @lazy_property
    def _loc(self) -> Any:
        return self.loc.double()

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.double()

    @lazy_property
    def _proposal_r(self) -> Any:
        k = self._concentration
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # the other form loses all digits for small k
        return ops.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`, by the rejection method of Best and Fisher
        (1979).

        Args:
            sample_shape: how many draws, as a shape.
        """
        with no_grad():
            shape = self._extended_shape(sample_shape)
            k, r = self._concentration.expand(shape), self._proposal_r.expand(shape)
            angle = ops.empty(shape, dtype=k.dtype, device=k.device)
            done = ops.zeros(shape, dtype=ops.bool, device=k.device)
            while not done.all():
                u1, u2, u3 = ops.rand((3, *shape), dtype=k.dtype, device=k.device).unbind()
                z = ops.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                if accept.any():
                    angle = ops.where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                    done = done | accept
            found = (angle + math.pi + self._loc) % (2 * math.pi) - math.pi
            return found.to(self.loc.dtype)

    mean = alias("loc", "The location, on the circle.")
    mode = alias("loc", "The location.")

    @lazy_property
    def variance(self) -> Any:
        """The variance on the circle: 1 - I1(k) / I0(k)."""
        k = self.concentration
        return 1 - ops.special.i1e(k) / ops.special.i0e(k)
