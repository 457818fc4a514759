"""From a constraint to a transform that satisfies it: `biject_to`, `transform_to`.

Parameters are learnt as plain numbers, and made valid by such a transform.

>>> C = torch.distributions.constraints
>>> torch.distributions.transform_to(C.positive)(torch.tensor(0.0))
tensor(1.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Which transform belongs to which constraint.

    >>> registry = torch.distributions.constraint_registry.ConstraintRegistry()
    >>> @registry.register(torch.distributions.constraints.positive)
    ... def square(constraint):
    ...     return torch.distributions.PowerTransform(2.0)
    >>> registry(torch.distributions.constraints.positive)
    PowerTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[Any, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Say which transform belongs to a class of constraints; without `factory`, as a decorator.

        Args:
            constraint: a class of constraints, or an instance, whose class is meant.
            factory: a function of a constraint that gives a transform.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform for a constraint.

        Args:
            constraint: an instance of a registered class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*limits: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register a bijection, which will do as a transform too."""

    def register(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        for limit in limits:
            biject_to.register(limit, factory)
            transform_to.register(limit, factory)
        return factory

    return register


def _one(
    registry: ConstraintRegistry, limit: Any
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register what is for one of them only."""

    def register(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        registry.register(limit, factory)
        return factory

    return register


@_both(constraints.real)
def _transform_to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_one(biject_to, constraints.independent)
def _biject_to_independent(constraint: Any) -> Any:
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_one(transform_to, constraints.independent)
def _transform_to_independent(constraint: Any) -> Any:
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_both(constraints.positive, constraints.nonnegative)
def _transform_to_positive(constraint: Any) -> Any:
    return transforms.ExpTransform()


def _exp_from(bound: Any, sign: int) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, sign)]
    )


@_both(constraints.greater_than, constraints.greater_than_eq)
def _transform_to_greater_than(constraint: Any) -> Any:
    return _exp_from(constraint.lower_bound, 1)


@_both(constraints.less_than)
def _transform_to_less_than(constraint: Any) -> Any:
    return _exp_from(constraint.upper_bound, -1)


@_both(constraints.interval, constraints.half_open_interval)
def _transform_to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if _is_number(low, 0) and _is_number(high, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


def _is_number(bound: Any, number: int) -> bool:
    return isinstance(bound, (int, float)) and bound == number


@_one(biject_to, constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@_one(transform_to, constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@_one(transform_to, constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@_one(transform_to, constraints.positive_definite)
@_one(transform_to, constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _transform_to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


def _cat(registry: ConstraintRegistry) -> Callable[[Any], Any]:
    def of(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    return of


def _stack(registry: ConstraintRegistry) -> Callable[[Any], Any]:
    def of(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.StackTransform(parts, constraint.dim)

    return of


for _registry in (biject_to, transform_to):
    _registry.register(constraints.cat, _cat(_registry))
    _registry.register(constraints.stack, _stack(_registry))
