"""Transforms made of others: after each other, over the parts of a tensor, with other shapes."""

from __future__ import annotations

import functools
import operator
import weakref
from typing import Any

from rushlight.distributions import constraints
from rushlight.distributions.members import alias
from rushlight.distributions.names import ops
from rushlight.distributions.transforms.transform import Transform, _raised
from rushlight.distributions.utils import _sum_rightmost, lazy_property
from rushlight.size import Size


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
