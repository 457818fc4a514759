"""`renorm`: slices of a tensor that are longer than a limit, shortened to it."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.ops.checks import check_tensor, one_dim, raw_dtype
from rushlight.ops.numbers import Number
from rushlight.ops.reduction.vector_norm import norm_of, norm_tangent, slope_of
from rushlight.ops.registry import function, op

_TINY: Final = 1e-7  # PyTorch's, against division by zero


@op
class Renorm(Op):
    """`self` with each slice scaled whose norm of order `p` over `dims` is above `maxnorm`."""

    name, params = "renorm", ("p", "dims", "maxnorm")
    saved_names = "p maxnorm"
    saves = ("self",)
    lies = "rows"
    p: float
    dims: tuple[int, ...]
    maxnorm: float

    def norm(self, x: Any) -> Any:
        return norm_of(x, self.p, self.dims, True)

    def factor(self, n: Any) -> Any:
        over = v.greater(n, self.maxnorm)
        return v.where(over, self.maxnorm / (v.where(over, n, 1) + _TINY), 1)

    def slope(self, n: Any) -> Any:
        """The derivative of the factor by the norm."""
        over = v.greater(n, self.maxnorm)
        # what is not chosen must not overflow: in the next derivative it is multiplied by zero
        above = v.where(over, n, 1) + _TINY
        return v.where(over, -self.maxnorm / (above * above), 0)

    def forward(self, x: Any) -> Any:
        return v.cast(x * self.factor(self.norm(x)), raw_dtype(x))

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        n = self.norm(x)
        slope = slope_of(x, n, self.p, self.dims)
        found = g * self.factor(n)
        if slope is None:
            return (found,)
        along = conj(x) * g
        along = v.real(along) if is_complex(along) else along
        return (found + slope * (v.reduce_sum(along, self.dims, True) * self.slope(n)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, t = xs[0], ts[0]
        n = self.norm(x)
        slope = slope_of(x, n, self.p, self.dims)
        found = t * self.factor(n)
        if slope is None:
            return found
        return found + x * (self.slope(n) * norm_tangent(t, slope, self.dims, True))

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Renorm(2.0, (-1,), 1.0), draw.real(3, 4)
        yield Renorm(1.0, (-2,), 2.0), draw.real(3, 4)
        yield Renorm(3.0, (-3, -1), 0.5), draw.real(2, 2, 2)
        yield Renorm(2.0, (-1,), 100.0), draw.real(2, 2)
        yield Renorm(2.0, (-1,), 1.0), draw.complex(2, 3)


@function(out=True, inplace=True)
def renorm(input: Any, p: Number, dim: int, maxnorm: Number) -> Any:
    """A copy in which each slice along `dim` whose norm of order `p` is above `maxnorm` is scaled
    down to it.

    >>> torch.renorm(torch.tensor([[3., 4.], [0., 1.]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    check_tensor(input, "renorm")
    array = input._array
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if array.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {array.ndim} dimensions"
        )
    kept = one_dim(dim, array.ndim)
    dtype = dtypes.of(array.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{dtype.scalar_type}"
        )
    dims = tuple(d for d in range(-array.ndim, 0) if d != kept)
    return Renorm(float(p), dims, float(maxnorm)), (input,)
