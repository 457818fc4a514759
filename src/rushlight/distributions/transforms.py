"""Invertible maps with known Jacobians: what turns one distribution into another.

>>> t = torch.distributions.ComposeTransform([
...     torch.distributions.ExpTransform(), torch.distributions.AffineTransform(1.0, 2.0)])
>>> x = torch.tensor(0.0)
>>> y = t(x)
>>> y, t.inv(y), t.log_abs_det_jacobian(x, y)
(tensor(3.), tensor(0.), tensor(0.6931))
"""

from __future__ import annotations

import functools
import math
import operator
import weakref
from typing import Any

from rushlight.distributions import constraints
from rushlight.distributions.members import alias, inherit_docs
from rushlight.distributions.names import F, ops
from rushlight.distributions.utils import (
    _sum_rightmost,
    broadcast_all,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from rushlight.size import Size
from rushlight.tensor import Tensor

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
__dir__ = __all__.copy


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


class ComposeTransform(Transform):
    """ComposeTransform(parts, cache_size=0)

    Transforms after each other, the first one first.

    >>> double = torch.distributions.AffineTransform(0.0, 2.0)
    >>> torch.distributions.ComposeTransform([double, double])(torch.tensor(1.0))
    tensor(4.)
    """

    _made_of = ("parts",)

    def __init__(self, parts: Any, cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and bool(self.parts == other.parts)

    __hash__ = None

    @property
    def domain(self) -> Any:
        """What may go in, with the dimensions that later parts need."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _raised(self.parts[0].domain, event_dim)

    @property
    def codomain(self) -> Any:
        """What can come out, with the dimensions that earlier parts need."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _raised(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        return functools.reduce(operator.mul, (p.sign for p in self.parts), 1)

    @property
    def inv(self) -> Any:
        """The inverses, in the opposite order."""
        made = None if self._inv is None else self._inv()
        if made is None:
            made = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = weakref.ref(made)
            made._inv = weakref.ref(self)
        return made

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of the parts' logarithms."""
        if not self.parts:
            return ops.zeros_like(x)
        xs = [x]  # the input of each part, and the last output
        for part in self.parts[:-1]:
            xs.append(part(xs[-1]))
        xs.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, a, b in zip(self.parts, xs[:-1], xs[1:], strict=True):
            terms.append(
                _sum_rightmost(part.log_abs_det_jacobian(a, b), event_dim - part.domain.event_dim)
            )
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return type(self).__name__ + "(\n    " + ",\n    ".join(repr(p) for p in self.parts) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """IndependentTransform(base_transform, reinterpreted_batch_ndims, cache_size=0)

    A transform whose last batch dimensions belong to the event: the logarithms of its Jacobian are
    summed over them.

    >>> t = torch.distributions.IndependentTransform(torch.distributions.ExpTransform(), 1)
    >>> x = torch.tensor([1.0, 2.0])
    >>> t.log_abs_det_jacobian(x, t(x))
    tensor(3.)
    """

    _made_of = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(
        self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return bool(self.base_transform.bijective)

    sign = alias("base_transform.sign", "The base's sign.")

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The base's, summed over the dimensions of the event."""
        return _sum_rightmost(
            self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims
        )

    def __repr__(self) -> str:
        base, dims = self.base_transform, self.reinterpreted_batch_ndims
        return f"{type(self).__name__}({base!r}, {dims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """ReshapeTransform(in_shape, out_shape, cache_size=0)

    Gives the last dimensions of a tensor another shape.

    >>> torch.distributions.ReshapeTransform((2, 3), (6,))(torch.ones(4, 2, 3)).shape
    torch.Size([4, 6])
    """

    bijective = True

    _made_of = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Zeros."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _reshaped(shape: Any, old: Any, new: Any) -> Any:
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class ExpTransform(_Alike):
    """ExpTransform(cache_size=0)

    y = exp(x).

    >>> torch.distributions.ExpTransform()(torch.tensor(0.0))
    tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """x."""
        return x


class PowerTransform(Transform):
    """PowerTransform(exponent, cache_size=0)

    y = x ** exponent, for positive x.

    >>> torch.distributions.PowerTransform(2.0)(torch.tensor(3.0))
    tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    _made_of = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        """The sign of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PowerTransform):
            return False
        return bool(self.exponent.eq(other.exponent).all().item())

    __hash__ = None

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log |exponent * y / x|."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return ops.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class SigmoidTransform(_Alike):
    """SigmoidTransform(cache_size=0)

    y = 1 / (1 + exp(-x)), kept inside of (0, 1).

    >>> torch.distributions.SigmoidTransform()(torch.tensor(0.0))
    tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        limits = ops.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """-softplus(-x) - softplus(x)."""
        return -F.softplus(-x) - F.softplus(x)


def _clipped_sigmoid(x: Any) -> Any:
    limits = ops.finfo(x.dtype)
    return ops.clamp(ops.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class SoftplusTransform(_Alike):
    """SoftplusTransform(cache_size=0)

    y = log(1 + exp(x)), which is x where that is large.

    >>> torch.distributions.SoftplusTransform()(torch.tensor(0.0))
    tensor(0.6931)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """-softplus(-x)."""
        return -F.softplus(-x)


class TanhTransform(_Alike):
    """TanhTransform(cache_size=0)

    y = tanh(x). The inverse of what was rounded to 1 is infinite: use `cache_size=1`.

    >>> torch.distributions.TanhTransform()(torch.tensor(0.0))
    tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return ops.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log(1 - y * y), computed from x, which is more exact."""
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Alike):
    """AbsTransform(cache_size=0)

    y = |x|, whose inverse is taken to be positive.

    >>> torch.distributions.AbsTransform()(torch.tensor(-1.0))
    tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """AffineTransform(loc, scale, event_dim=0, cache_size=0)

    y = loc + scale * x. `event_dim` is how many dimensions make one event.

    >>> torch.distributions.AffineTransform(1.0, 2.0)(torch.tensor(3.0))
    tensor(7.)
    """

    bijective = True

    _made_of = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    event_dim = alias("_event_dim", "How many dimensions make one event.")

    @property
    def domain(self) -> Any:
        return _raised(constraints.real, self.event_dim)

    @property
    def codomain(self) -> Any:
        return _raised(constraints.real, self.event_dim)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _equal(self.loc, other.loc)
            and _equal(self.scale, other.scale)
        )

    __hash__ = None

    @property
    def sign(self) -> Any:
        """The sign of the scale."""
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return int(self.scale > 0) - int(self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log |scale|, summed over the event."""
        shape = x.shape
        if isinstance(self.scale, Tensor):
            result = ops.abs(self.scale).log()
        else:
            result = ops.full_like(x, math.log(abs(self.scale)))
        if self.event_dim:
            result = result.view((*result.size()[: -self.event_dim], -1)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        return ops.broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())
        )

    inverse_shape = forward_shape


def _equal(a: Any, b: Any) -> bool:
    same = a == b
    return bool(same.all().item() if isinstance(same, Tensor) else same)


class CorrCholeskyTransform(Transform):
    """CorrCholeskyTransform(cache_size=0)

    Vectors of n * (n - 1) / 2 numbers to Cholesky factors of correlation matrices of size n: tanh
    makes partial correlations of them, and each row takes its share of what is left of length 1.

    >>> torch.distributions.CorrCholeskyTransform()(torch.tensor([0.0, 0.0, 0.0]))
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        x = ops.tanh(x)
        eps = ops.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)  # of the row's length, after each column
        r = r + ops.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = F.pad((1 - ops.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        """From the lengths left in each row, and tanh.

        Args:
            x: the input.
            y: the output.
            intermediates: not used.
        """
        left = 1 - (y * y).cumsum(dim=-1)
        rows = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        return rows - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return (*shape[:-2], n * (n - 1) // 2)


class SoftmaxTransform(_Alike):
    """SoftmaxTransform(cache_size=0)

    Softmax along the last dimension. No bijection: only differences count.

    >>> torch.distributions.SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        p = (x - x.max(-1, True)[0]).exp()
        return p / p.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Alike):
    """StickBreakingTransform(cache_size=0)

    Vectors of n numbers to n + 1 probabilities: each number says which part of what is left of a
    stick is broken off.

    >>> torch.distributions.StickBreakingTransform()(torch.tensor([0.0, 0.0]))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _offset(self, x: Any) -> Any:
        """How many pieces are still to come: zeros in give pieces of one size."""
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x: Any) -> Any:
        z = _clipped_sigmoid(x - self._offset(x).log())
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        pieces = y[..., :-1]
        left = ops.clamp(1 - pieces.cumsum(-1), min=ops.finfo(y.dtype).tiny)
        return pieces.log() - left.log() + self._offset(pieces).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """From the pieces, and the sigmoid."""
        x = x - self._offset(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(_Alike):
    """LowerCholeskyTransform(cache_size=0)

    Matrices to lower triangular ones with a positive diagonal, by exp of the diagonal.

    >>> torch.distributions.LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Alike):
    """PositiveDefiniteTransform(cache_size=0)

    Matrices to positive definite ones, through their Cholesky factors.

    >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(ops.linalg.cholesky(y))


class _JoinedTransform(Transform):
    """Transforms of the parts of a tensor, along one of its dimensions."""

    transforms: list[Any]
    dim: int

    def _take(self, tseq: Any, dim: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if self._cache_size:
            tseq = [t.with_cache(self._cache_size) for t in tseq]
        self.transforms = list(tseq)
        self.dim = dim

    def _parts(self, x: Any) -> list[Any]:
        raise NotImplementedError

    def _joined(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        parts = zip(self.transforms, self._parts(x), strict=True)
        return self._joined([transform(part) for transform, part in parts])

    def _inverse(self, y: Any) -> Any:
        parts = zip(self.transforms, self._parts(y), strict=True)
        return self._joined([transform.inv(part) for transform, part in parts])

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_JoinedTransform):
    """CatTransform(tseq, dim=0, lengths=None, cache_size=0)

    Transforms of parts that stand behind each other along `dim`, as `cat` puts them. `lengths` are
    the sizes of the parts, 1 each if None.

    >>> D = torch.distributions
    >>> t = D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], lengths=[1, 2])
    >>> t(torch.tensor([0.0, 0.0, 1.0]))
    tensor([1., 1., 3.])
    """

    _made_of = ("transforms", "dim", "lengths")

    def __init__(self, tseq: Any, dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self._take(tseq, dim)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match number of transforms "
                f"({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        """The most dimensions that an event of a part has."""
        return int(max(t.event_dim for t in self.transforms))

    @lazy_property
    def length(self) -> int:
        """The size along `dim`."""
        return int(sum(self.lengths))

    def _parts(self, x: Any) -> list[Any]:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dims")
        if x.size(self.dim) != self.length:
            raise AssertionError(
                f"tensor size along dim {self.dim} is {x.size(self.dim)}, expected {self.length}"
            )
        return list(x.split(self.lengths, self.dim))

    def _joined(self, parts: list[Any]) -> Any:
        return ops.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Those of the parts, behind each other; summed if `dim` belongs to the event."""
        found = []
        for transform, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            term = transform.log_abs_det_jacobian(a, b)
            if transform.event_dim < self.event_dim:
                term = _sum_rightmost(term, self.event_dim - transform.event_dim)
            found.append(term)
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return ops.cat(found, dim=dim) if dim < 0 else sum(found)

    @property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_JoinedTransform):
    """StackTransform(tseq, dim=0, cache_size=0)

    Transforms of parts that lie next to each other along `dim`, as `stack` puts them.

    >>> D = torch.distributions
    >>> D.StackTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])(torch.zeros(2, 3))
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """

    _made_of = ("transforms", "dim")

    def __init__(self, tseq: Any, dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self._take(tseq, dim)

    def _parts(self, x: Any) -> list[Any]:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dims")
        if x.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"tensor size along dim {self.dim} is {x.size(self.dim)}, "
                f"expected {len(self.transforms)}"
            )
        return [x.select(self.dim, i) for i in range(x.size(self.dim))]

    def _joined(self, parts: list[Any]) -> Any:
        return ops.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Those of the parts, next to each other."""
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return self._joined([t.log_abs_det_jacobian(a, b) for t, a, b in parts])

    @property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """CumulativeDistributionTransform(distribution, cache_size=0)

    y = the probability of a draw from `distribution` that is at most x.

    >>> normal = torch.distributions.Normal(0.0, 1.0)
    >>> torch.distributions.CumulativeDistributionTransform(normal)(torch.tensor(0.0))
    tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    _made_of = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = alias("distribution.support", "The support of the distribution.")

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the density at x."""
        return self.distribution.log_prob(x)
