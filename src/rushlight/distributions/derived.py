"""Distributions made of others: of several as one, transformed, and mixtures."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.autograd.grad_mode import no_grad
from rushlight.distributions import constraints
from rushlight.distributions.choices import Categorical
from rushlight.distributions.distribution import EMPTY, Distribution
from rushlight.distributions.members import alias
from rushlight.distributions.names import ops
from rushlight.distributions.transforms import ComposeTransform, Transform
from rushlight.distributions.utils import _sum_rightmost
from rushlight.size import Size

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """Independent(base_distribution, reinterpreted_batch_ndims, validate_args=None)

    A distribution whose last batch dimensions belong to the event: logarithms of probabilities are
    summed over them.

    >>> D = torch.distributions
    >>> d = D.Independent(D.Normal(torch.zeros(3), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(torch.zeros(3))
    (torch.Size([]), torch.Size([3]), tensor(-2.7568))
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        ndims = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > ndims:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {ndims}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = ndims - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with a larger batch."""
        new = self._get_checked_instance(Independent, _instance)
        batch_shape = Size(batch_shape)
        taken = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(batch_shape + taken)
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def has_rsample(self) -> bool:
        """Whether the base has it."""
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:
        """Whether the base has it, and no batch dimension was taken."""
        return self.reinterpreted_batch_ndims <= 0 and bool(self.base_dist.has_enumerate_support)

    @constraints.dependent_property
    def support(self) -> Any:
        """The base's, of whole events."""
        found = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            return constraints.independent(found, self.reinterpreted_batch_ndims)
        return found

    mean = alias("base_dist.mean", "The base's mean.")
    mode = alias("base_dist.mode", "The base's mode.")
    variance = alias("base_dist.variance", "The base's variance.")

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws from the base."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`."""
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """The entropy."""
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """TransformedDistribution(base_distribution, transforms, validate_args=None)

    The distribution of draws from another after a transform, or a list of them.

    >>> D = torch.distributions
    >>> d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()])
    >>> d.log_prob(torch.tensor(1.0)), d.cdf(torch.tensor(1.0))
    (tensor(-0.9189), tensor(0.5000))
    """

    arg_constraints: ClassVar[Any] = {}
    transforms: list[Any]
    base_dist: Any

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        chain = ComposeTransform(self.transforms)
        if len(base_shape) < chain.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{chain.domain.event_dim}, but got {base_shape}."
            )
        shape = chain.forward_shape(base_shape)
        expanded = chain.inverse_shape(shape)
        if base_shape != expanded:
            batch = expanded[: len(expanded) - base_event_dim]
            base_distribution = base_distribution.expand(batch)
        taken = chain.domain.event_dim - base_event_dim
        if taken > 0:
            base_distribution = Independent(base_distribution, taken)
        self.base_dist = base_distribution
        grown = chain.codomain.event_dim - chain.domain.event_dim
        event_dim = max(chain.codomain.event_dim, base_event_dim + grown)
        shape = Size(shape)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with a larger batch."""
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """What the last transform can give, of whole events."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        missing = len(self.event_shape) - found.event_dim
        return constraints.independent(found, missing) if missing > 0 else found

    @property
    def has_rsample(self) -> bool:
        """Whether the base has it."""
        return bool(self.base_dist.has_rsample)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws from the base, transformed."""
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`: the base's, less those of the Jacobians."""
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        result: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            result = result - _sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        inner = event_dim - len(self.base_dist.event_shape)
        return result + _sum_rightmost(self.base_dist.log_prob(y), inner)

    def _monotonize_cdf(self, value: Any) -> Any:
        """Probabilities, of the other side where the transforms decrease."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        value = self.base_dist.icdf(self._monotonize_cdf(value))
        for transform in self.transforms:
            value = transform(value)
        return value


class MixtureSameFamily(Distribution):
    """MixtureSameFamily(mixture_distribution, component_distribution, validate_args=None)

    Draws from one of several distributions of a kind, along the last batch dimension of
    `component_distribution`; which one, `mixture_distribution` says, a Categorical.

    >>> D = torch.distributions
    >>> d = D.MixtureSameFamily(
    ...     D.Categorical(torch.ones(2)), D.Normal(torch.tensor([-1.0, 1.0]), 1.0))
    >>> d.mean, d.variance, d.log_prob(torch.tensor(0.0))
    (tensor(0.), tensor(2.), tensor(-1.4189))
    """

    arg_constraints: ClassVar[Any] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an "
                " instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        mixed = mixture_distribution.batch_shape
        parts = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixed), reversed(parts), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape`({parts})"
                )
        choices = mixture_distribution.logits.shape[-1]
        there = component_distribution.batch_shape[-1]
        if choices is not None and there is not None and choices != there:
            raise ValueError(
                f"`mixture_distribution component` ({choices}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({there})"
            )
        self._num_component = choices
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape=parts, event_shape=event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with a larger batch."""
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            (*batch_shape, self._num_component)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = alias("_mixture_distribution", "Says which component is drawn from.")
    component_distribution = alias("_component_distribution", "The components.")

    @property
    def mean(self) -> Any:
        """The mean of the components' means."""
        weights = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return ops.sum(weights * self.component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        """The mean of the components' variances, and the variance of their means."""
        weights = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        dim = -1 - self._event_ndims
        within = ops.sum(weights * self.component_distribution.variance, dim=dim)
        apart = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return within + ops.sum(weights * apart, dim=dim)

    def cdf(self, x: Any) -> Any:
        """The probability of a draw that is at most `x`.

        Args:
            x: a tensor that broadcasts with a sample.
        """
        probs = self.component_distribution.cdf(self._pad(x))
        return ops.sum(probs * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Any:
        """The logarithm of the density at `x`.

        Args:
            x: a tensor that broadcasts with a sample.
        """
        if self._validate_args:
            self._validate_sample(x)
        of_parts = self.component_distribution.log_prob(self._pad(x))
        of_choice = ops.log_softmax(self.mixture_distribution.logits, dim=-1)
        return ops.logsumexp(of_parts + of_choice, dim=-1)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape + event_shape`."""
        with no_grad():
            sample_len, batch_len = len(sample_shape), len(self.batch_shape)
            dim = sample_len + batch_len
            event_shape = self.event_shape
            choice = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            # the index of the component, in every place of the event
            index = choice.reshape(choice.shape + Size([1] * (len(event_shape) + 1)))
            index = index.repeat(Size([1] * len(choice.shape)) + Size([1]) + event_shape)
            return ops.gather(drawn, dim, index).squeeze(dim)

    def _pad(self, x: Any) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Any) -> Any:
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = x.shape
        return x.reshape(
            shape[:-1] + Size(missing * [1]) + shape[-1:] + Size(self._event_ndims * [1])
        )

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
