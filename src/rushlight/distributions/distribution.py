"""The base of all distributions, and what families of them share."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight import autograd
from rushlight.autograd.grad_mode import no_grad
from rushlight.distributions import constraints
from rushlight.distributions.members import alias, inherit_docs
from rushlight.distributions.names import ops
from rushlight.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from rushlight.size import Size
from rushlight.tensor import Tensor

__all__ = ["Distribution"]
__dir__ = __all__.copy

EMPTY = Size()


class Distribution:
    """Distribution(batch_shape=torch.Size([]), event_shape=torch.Size([]), validate_args=None)

    The base of all distributions. `batch_shape` is that of the distributions, which may be many,
    and `event_shape` that of one draw from one of them.

    A subclass says what its parameters may be (`arg_constraints`), what it can give (`support`),
    and has some of the methods below. What the user passes is checked, unless `validate_args`
    is False.

    >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
    >>> d.batch_shape, d.event_shape
    (torch.Size([3]), torch.Size([]))
    >>> d.sample((2,)).shape
    torch.Size([2, 3])
    >>> d.log_prob(torch.zeros(3))
    tensor([-0.9189, -0.9189, -0.9189])
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inherit_docs(cls)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check what they are given.

        Args:
            value: True or False.

        >>> torch.distributions.Distribution.set_default_validate_args(True)
        """
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = EMPTY, event_shape: Any = EMPTY, validate_args: bool | None = None
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            limits = self.arg_constraints
        except NotImplementedError:
            limits = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. "
                "Please set `arg_constraints = {}` or initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in limits.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # it follows from one that was given
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} "
                    f"({type(value).__name__} of shape {tuple(value.shape)}) "
                    f"of distribution {self!r} to satisfy the constraint {constraint!r}, "
                    f"but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with a larger batch, whose parameters are expanded views.

        Args:
            batch_shape: the wanted shape of the batch.
        """
        raise NotImplementedError

    batch_shape = alias("_batch_shape", "The shape of the batch of distributions.")
    event_shape = alias("_event_shape", "The shape of one draw.")

    @property
    def arg_constraints(self) -> Any:
        """What each parameter may be, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that all draws satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """Where the density is highest."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws of shape `sample_shape + batch_shape + event_shape`, without a history.

        Args:
            sample_shape: how many draws, as a shape.
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = EMPTY) -> Any:
        """Draws that can be differentiated with respect to the parameters.

        Args:
            sample_shape: how many draws, as a shape.
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """`sample((n,))`; the older name.

        Args:
            n: how many draws.
        """
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning,
            stacklevel=2,
        )  # fmt: skip
        return self.sample(Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at `value`, or of the probability.

        Args:
            value: a tensor that broadcasts with a sample.
        """
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of a draw that is at most `value`.

        Args:
            value: a tensor that broadcasts with a sample.
        """
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The inverse of `cdf`: quantiles.

        Args:
            value: a tensor of probabilities.
        """
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values that can be drawn, along a new first dimension.

        Args:
            expand: whether they fill the batch; if not, its dimensions have size 1.
        """
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy, in nats: one number for each of the batch."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return ops.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = EMPTY) -> Any:
        """The shape of a sample of `sample_shape` draws."""
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        return Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Refuse a value that has another shape than samples, or cannot be drawn."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        split = value.dim() - len(self._event_shape)
        if value.shape[split:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}."
            )
        whole = self._batch_shape + self._event_shape
        for mine, theirs in zip(reversed(value.shape), reversed(whole), strict=False):
            if mine != 1 and theirs != 1 and mine != theirs:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.size()} vs {whole}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. "
                "Please initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                "Expected value argument "
                f"({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty instance for `expand` of `cls` to fill: a subclass with an `__init__` of its own
        has attributes that `cls` does not know."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]  # no instance
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        given = [name for name in self.arg_constraints if name in self.__dict__]
        shown = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in ((name, self.__dict__[name]) for name in given)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """ExponentialFamily(batch_shape=torch.Size([]), event_shape=torch.Size([]), validate_args=None)

    The base of distributions whose density is an exponential of natural parameters times
    statistics, over a normaliser. A subclass that gives `_natural_params`, `_log_normalizer` and
    `_mean_carrier_measure` gets its entropy and KL divergence by differentiation.

    >>> isinstance(torch.distributions.Normal(0., 1.), torch.distributions.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> Any:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy, by the gradient of the normaliser: that is the mean of the statistics."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = autograd.grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for p, g in zip(params, gradients, strict=True):
            result = result - (p * g).reshape((*self._batch_shape, -1)).sum(-1)
        return result


class Expands(Distribution):
    """Distributions whose batch is that of their parameters: `expand` follows from these."""

    _parameters: tuple[str, ...] | None = None  # if not those of `arg_constraints`
    _inside: tuple[str, ...] = ()  # attributes that are distributions of the same batch

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(_ours(type(self)), _instance)
        batch_shape = Size(batch_shape)
        limits = self.arg_constraints
        for name in self._parameters if self._parameters is not None else limits:
            if name in self.__dict__:
                value = self.__dict__[name]
                event_dim = limits[name].event_dim if name in limits else 0
                event = value.shape[value.ndim - event_dim :]
                new.__dict__[name] = value.expand(batch_shape + event)
        for name in self._inside:
            new.__dict__[name] = self.__dict__[name].expand(batch_shape)
        self._expand_more(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        """Give an expanded copy what is no parameter."""


def _ours(kind: type) -> type:
    """The class of this package that `kind` is, or is made of."""
    here = __name__.rpartition(".")[0] + "."
    return next(c for c in kind.__mro__ if c.__module__.startswith(here))


class Odds(Expands):
    """Distributions that are given `probs` or `logits`; each follows from the other."""

    _is_binary = True  # of probabilities of one outcome; else of all, along the last dimension

    def _take_odds(self, probs: Any, logits: Any, *others: Any) -> Any:
        """Keep what was given, broadcast with `others`, which are returned."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name = "logits" if probs is None else "probs"
        given = probs if logits is None else logits
        if self._is_binary:
            *others_too, given = broadcast_all(*others, given)
        else:
            if given.dim() < 1:
                raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
            total = (given.sum if name == "probs" else given.logsumexp)(-1, keepdim=True)
            given = given / total if name == "probs" else given - total
            others_too = list(others)
        self.__dict__[name] = self._param = given
        return others_too

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._param = new.__dict__["probs" if "probs" in new.__dict__ else "logits"]

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Any:
        """Log-odds, or logarithms of probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Any:
        """The shape of `probs`."""
        return self._param.size()
