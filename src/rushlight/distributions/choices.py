"""Distributions of choices among several: which one, and how often each."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from rushlight.autograd.grad_mode import no_grad
from rushlight.distributions import constraints
from rushlight.distributions.counts import Binomial, _enumerated
from rushlight.distributions.distribution import EMPTY, Expands, Odds
from rushlight.distributions.members import alias
from rushlight.distributions.names import F, ops
from rushlight.distributions.utils import broadcast_all
from rushlight.size import Size

__all__ = [
    "Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough",
]  # fmt: skip

CHOICE: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}


class Categorical(Odds):
    """Categorical(probs=None, logits=None, validate_args=None)

    The index of a choice. `probs`, along the last dimension, need not sum to 1.

    >>> d = torch.distributions.Categorical(torch.tensor([1.0, 3.0]))
    >>> d.probs, d.log_prob(torch.tensor(1)), d.entropy()
    (tensor([0.2500, 0.7500]), tensor(-0.2877), tensor(0.5623))
    """

    arg_constraints: ClassVar[Any] = CHOICE
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_odds(probs, logits)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        super()._expand_more(new, batch_shape)
        new._num_events = self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The indices."""
        return constraints.integer_interval(0, self._num_events - 1)

    def _undefined(self) -> Any:
        return ops.full(
            self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mean(self) -> Any:
        """NaN: indices have no mean."""
        return self._undefined()

    @property
    def mode(self) -> Any:
        """The likeliest index."""
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        """NaN: indices have no variance."""
        return self._undefined()

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape`."""
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        with no_grad():
            drawn = ops.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        index, logits = value.long().unsqueeze(-1), self.logits
        if value.shape != logits.shape[:-1]:
            index, logits = ops.broadcast_tensors(index, logits)
            index = index[..., :1]
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Any:
        """The entropy."""
        logits = ops.clamp(self.logits, min=ops.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All indices, along a new first dimension."""
        indices = ops.arange(self._num_events, dtype=ops.long, device=self._param.device)
        return _enumerated(self, indices, expand)


class _OfChoices(Expands):
    """Distributions over vectors with a place for each choice."""

    arg_constraints: ClassVar[Any] = CHOICE
    _inside = ("_categorical",)
    _categorical: Any

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    probs = alias("_categorical.probs", "Probabilities.")
    logits = alias("_categorical.logits", "Their logarithms.")
    param_shape = alias("_categorical.param_shape", "The shape of `probs`.")


class OneHotCategorical(_OfChoices):
    """OneHotCategorical(probs=None, logits=None, validate_args=None)

    A choice as a vector: 1 at its index, and 0 elsewhere.

    >>> d = torch.distributions.OneHotCategorical(torch.tensor([1.0, 3.0]))
    >>> d.mode, d.log_prob(torch.tensor([0.0, 1.0]))
    (tensor([0., 1.]), tensor(-0.2877))
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    _param = alias("_categorical._param", "The parameter of the categorical distribution.")
    mean = alias("_categorical.probs", "The probabilities.")

    @property
    def mode(self) -> Any:
        """The likeliest choice."""
        return self._one_hot(self._categorical.mode)

    def _one_hot(self, index: Any) -> Any:
        return F.one_hot(index, self._categorical._num_events).to(self._categorical._param)

    @property
    def variance(self) -> Any:
        """p * (1 - p)."""
        return self._categorical.probs * (1 - self._categorical.probs)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape + event_shape`."""
        return self._one_hot(self._categorical.sample(Size(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        """The entropy."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All choices, along a new first dimension."""
        n = self.event_shape[0]
        values = ops.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *(1,) * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategoricalStraightThrough(probs=None, logits=None, validate_args=None)

    The same, with draws whose gradient is taken to be that of the probabilities.

    >>> p = torch.tensor([0.25, 0.75], requires_grad=True)
    >>> d = torch.distributions.OneHotCategoricalStraightThrough(p)
    >>> (d.rsample() * torch.tensor([1.0, 0.0])).sum().backward()
    >>> p.grad
    tensor([ 0.7500, -0.2500])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws with the gradient of the probabilities."""
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(_OfChoices):
    """Multinomial(total_count=1, probs=None, logits=None, validate_args=None)

    How often each choice is made in `total_count` draws.

    >>> d = torch.distributions.Multinomial(4, torch.tensor([1.0, 1.0]))
    >>> d.mean, d.log_prob(torch.tensor([2.0, 2.0])).exp()
    (tensor([2., 2.]), tensor(0.3750))
    """

    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new.total_count = self.total_count
        new._binomial = self._binomial.expand(batch_shape + self.event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum to `total_count`."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        """n * p."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        """n * p * (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape + event_shape`."""
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        last = draws.permute(*range(1, draws.dim()), 0)  # the draws of one sample together
        counts = last.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, last, ops.ones_like(last))
        return counts.type_as(self.probs)

    def entropy(self) -> Any:
        """The entropy."""
        n = ops.tensor(self.total_count)
        ways = self._binomial.enumerate_support(expand=False)[1:]
        expected = (ops.exp(self._binomial.log_prob(ways)) * ops.lgamma(ways + 1)).sum([0, -1])
        return n * self._categorical.entropy() - ops.lgamma(n + 1) + expected

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of `value`."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        ways = ops.lgamma(value.sum(-1) + 1) - ops.lgamma(value + 1).sum(-1)
        never = (value == 0) & (logits == -math.inf)  # 0 * log(0)
        return ways + (logits.masked_fill(never, 0) * value).sum(-1)
