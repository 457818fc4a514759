"""What every transform is, and the inverse of one."""

from __future__ import annotations

import weakref
from typing import Any

from rushlight.distributions import constraints
from rushlight.distributions.members import alias, inherit_docs


class Transform:
    """Transform(cache_size=0)

    The base of all transforms. A subclass has `domain` and `codomain`, `_call`, `_inverse` if it
    can be inverted, and `log_abs_det_jacobian` if it is a bijection.

    With `cache_size=1` the last input and output are kept, so that inverting what was just computed
    gives the very tensor it was computed from.

    >>> class Double(torch.distributions.Transform):
    ...     domain = codomain = torch.distributions.constraints.real
    ...     bijective = True
    ...     def _call(self, x):
    ...         return 2 * x
    ...     def _inverse(self, y):
    ...         return y / 2
    >>> Double()(torch.ones(2)), Double().inv(torch.ones(2))
    (tensor([2., 2.]), tensor([0.5000, 0.5000]))
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    _made_of: tuple[str, ...] = ()  # the attributes that the constructor takes, in order

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inherit_docs(cls)

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None  # a weak reference: the inverse holds this transform
        self._cached_x_y: Any = (None, None)
        super().__init__()

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        state["_inv"] = None  # weak references cannot be pickled
        return state

    @property
    def event_dim(self) -> int:
        """How many dimensions of the input make one event."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse, whose inverse is this transform."""
        made = None if self._inv is None else self._inv()
        if made is None:
            made = _InverseTransform(self)
            self._inv = weakref.ref(made)
        return made

    @property
    def sign(self) -> Any:
        """1 if the transform increases, -1 if it decreases."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with another size of cache.

        Args:
            cache_size: 0 or 1.
        """
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__ or self._made_of:
            made_of: Any = [getattr(self, name) for name in self._made_of]
            make: Any = type(self)
            return make(*made_of, cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)

    __hash__ = None  # type: ignore[assignment]  # equal transforms may have different hashes

    def __call__(self, x: Any) -> Any:
        """The transform of `x`."""
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        """The inverse of `y`."""
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of |dy/dx|, or of the determinant for events of several numbers.

        Args:
            x: the input.
            y: the output.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the output for an input of a shape.

        Args:
            shape: of the input.
        """
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the input for an output of a shape.

        Args:
            shape: of the output.
        """
        return shape


class _Alike(Transform):
    """Transforms without parameters: all of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = None


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Any) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Any = transform

    domain = alias("_inv.codomain", "What may go in: what the transform gives.")
    codomain = alias("_inv.domain", "What can come out: what the transform takes.")

    @property
    def bijective(self) -> bool:
        return bool(self._inv.bijective)

    sign = alias("_inv.sign", "The sign of the transform.")
    inv = alias("_inv", "The transform itself.")

    def __getstate__(self) -> Any:
        return self.__dict__.copy()

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and bool(self._inv == other._inv)

    __hash__ = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


def _raised(limit: Any, event_dim: int) -> Any:
    """A constraint with as many dimensions an event as are wanted."""
    missing = event_dim - limit.event_dim
    return constraints.independent(limit, missing) if missing > 0 else limit
