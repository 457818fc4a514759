"""Vector norms and the distance between two tensors."""

from __future__ import annotations

import math
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.elementwise import result_dtype
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.errors import broadcast_mismatch
from rushlight.ops.apply import run
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.numbers import Number
from rushlight.ops.reduction.family import Fold, dims_of, equal_with_nan, narrow, widen
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn


def norm_of(x: Any, p: float, dims: tuple[int, ...] | None, keep: bool) -> Any:
    """(sum of |x|^p)^(1/p) over `dims`, and its limits at 0 and at the infinities."""
    if p == 2 and not is_complex(x):
        return v.sqrt(v.reduce_sum(x * x, dims, keep))
    a = v.absolute(x)
    if p == math.inf:
        return v.reduce_max(a, dims, keep)
    if p == -math.inf:
        return v.reduce_min(a, dims, keep)
    if p == 0:
        return v.reduce_sum(v.cast(v.not_equal(a, 0), raw_dtype(a)), dims, keep)
    if p == 1:
        return v.reduce_sum(a, dims, keep)
    if p == 2:
        return v.sqrt(v.reduce_sum(a * a, dims, keep))
    return v.power(v.reduce_sum(v.power(a, p), dims, keep), 1 / p)


def safe(y: Any) -> Any:
    """`y` with 1 for 0, to divide by where the quotient is not used."""
    return v.where(v.equal(y, 0), 1, y)


def divide_or_zero(x: Any, y: Any) -> Any:
    """x / y, and 0 where `y` is 0."""
    return v.where(v.equal(y, 0), 0, x / safe(y))


def sign_or_phase(x: Any) -> Any:
    """x / |x|; 0 at 0, and at NaN as in PyTorch."""
    if is_complex(x):
        return divide_or_zero(x, v.absolute(x))
    dtype = raw_dtype(x)
    return v.cast(v.greater(x, 0), dtype) - v.cast(v.less(x, 0), dtype)


def slope_of(x: Any, y: Any, p: float, dims: tuple[int, ...] | None) -> Any:
    """The derivative of the norm `y` (its axes kept) by each element of `x`; None: zero."""
    if p == 0:
        return None
    if p == 1:
        return sign_or_phase(x)
    if p == 2:
        return divide_or_zero(x, y)
    a = v.absolute(x)
    if p in (math.inf, -math.inf):
        hits = v.cast(equal_with_nan(a, y), raw_dtype(a))
        return sign_or_phase(x) * (hits / v.reduce_sum(hits, dims, True))
    if p < 1:
        steep = v.where(v.equal(a, 0), 0, v.power(safe(a), p - 1))
        return sign_or_phase(x) * steep * v.power(y, 1 - p)
    if p < 2:
        return sign_or_phase(x) * divide_or_zero(v.power(a, p - 1), v.power(y, p - 1))
    return x * divide_or_zero(v.power(a, p - 2), v.power(y, p - 1))


def norm_tangent(t: Any, slope: Any, dims: tuple[int, ...] | None, keep: bool) -> Any:
    """How a norm moves when its input moves along `t`."""
    step = conj(slope) * t
    return v.reduce_sum(v.real(step) if is_complex(step) else step, dims, keep)


@op
class VectorNorm(Fold):
    """The norm of order `ord` over `dims`, in `dtype` (None: as it is)."""

    name, node = "linalg_vector_norm", "LinalgVectorNormBackward0"
    saved_names = "ord dim=dims* keepdim"
    saves = ("self", "result")
    params = ("ord", "dims", "keepdim", "dtype")

    def __init__(
        self, ord: float, dims: tuple[int, ...] | None, keepdim: bool, dtype: Any = None
    ) -> None:
        super().__init__(dims, keepdim)
        self.ord = ord
        self.dtype = dtype

    def forward(self, x: Any) -> Any:
        if self.dtype is not None:
            x = v.cast(x, self.dtype)
        return narrow(norm_of(widen(x), self.ord, self.dims, self.keepdim), x)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        slope = slope_of(x, self.back(y, x.shape), self.ord, self.dims)
        return (None if slope is None else self.back(g, x.shape) * slope,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x = xs[0]
        slope = slope_of(x, self.back(y, x.shape), self.ord, self.dims)
        return y * 0 if slope is None else norm_tangent(ts[0], slope, self.dims, self.keepdim)

    @staticmethod
    def samples(draw: Any) -> Any:
        for p in (2.0, 1.0, 3.0, 1.5, 0.5, -1.0, math.inf, -math.inf):
            yield VectorNorm(p, (-1,), False), draw.real(2, 3)
        yield VectorNorm(2.0, None, False), draw.real(2, 3)
        yield VectorNorm(2.0, (-2,), True), draw.real(3, 2)
        yield VectorNorm(2.0, None, False), draw.real()
        yield VectorNorm(2.0, (-1,), False), draw.complex(2, 3)
        yield VectorNorm(3.0, (-1,), False), draw.complex(2, 3)


def _check_identity(array: Any, ord: float, dims: tuple[int, ...] | None) -> None:
    start = f"linalg.vector_norm cannot compute the {ord:g} norm on "
    if dims is None:
        if array.size == 0:
            raise RuntimeError(
                start + "an empty tensor because the operation does not have an identity"
            )
        return
    for d in dims:
        if array.shape[d] == 0:
            raise RuntimeError(
                f"{start}the dimension {d + array.ndim}because this dimension is empty and the "
                "operation does not have an identity"
            )


@function(out=True, method=False, free=False, namespace="linalg")
def vector_norm(
    x: Any, ord: Number = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The vector norm of order `ord` of all elements, or along dimensions.

    >>> torch.linalg.vector_norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    array = check_tensor(x, "linalg_vector_norm")
    have = dtypes.of(array.dtype)
    if not (have.is_floating_point or have.is_complex):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{have.scalar_type}"
        )
    if dtype is not None and dtype is not have:
        if dtype.is_complex != have.is_complex:
            kind = "complex" if have.is_complex else "real"
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got "
                f"{dtype.scalar_type}"
            )
        if dtypes.promote_types(have, dtype) is not dtype:
            raise RuntimeError(
                f"linalg.vector_norm: the dtype of the input ({have.scalar_type}) should be "
                f"convertible without narrowing to the specified dtype ({dtype.scalar_type})"
            )
    dims = dims_of("linalg_vector_norm", dim, array.ndim)
    if ord in (math.inf, -math.inf) or ord < 0:
        _check_identity(array, ord, dims)
    want = None if dtype is None or dtype is have else dtype.numpy
    return VectorNorm(ord, dims, keepdim, want), (x,)


# --- distance -------------------------------------------------------------------------------------
@op
class Dist(Fold):
    """The norm of order `p` of self - other."""

    name, inputs = "dist", ("self", "other")
    saved_names = "p"
    saves = ("self", "other", "result")
    params = ("p", "dims", "keepdim")

    def __init__(
        self, p: float, dims: tuple[int, ...] | None = None, keepdim: bool = False
    ) -> None:
        super().__init__(dims, keepdim)
        self.p = p

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        if isinstance(error, ValueError):
            return RuntimeError(broadcast_mismatch(xs[0].shape, xs[1].shape))
        return super().explain(error, xs)

    def forward(self, a: Any, b: Any) -> Any:
        d = a - b
        return narrow(norm_of(widen(d), self.p, self.dims, self.keepdim), d)

    def vjp(self, node: Node, g: Any, a: Any, b: Any, y: Any) -> Any:
        d = a - b
        slope = slope_of(d, self.back(y, d.shape), self.p, self.dims)
        if slope is None:
            return None, None
        step = self.back(g, d.shape) * slope
        return step, (-step if node._needs_grad(1) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        d = xs[0] - xs[1]
        t = d * 0 if ts[0] is None else ts[0]
        if ts[1] is not None:
            t = t - ts[1]
        slope = slope_of(d, self.back(y, d.shape), self.p, self.dims)
        return y * 0 if slope is None else norm_tangent(t, slope, self.dims, self.keepdim)

    samples = drawn(
        real=[(2.0, (2, 3), (2, 3)), (3.0, (2, 3), (3,)), (1.0, (3,), (2, 1))],
        complex=[(2.0, (3,), (3,))],
    )


@function()
def dist(input: Any, other: Any, p: Number = 2) -> Any:
    """The norm of order `p` of the difference.

    >>> torch.dist(torch.tensor([1., 2.]), torch.tensor([4., 6.]))
    tensor(5.)
    """
    check_tensor(input, "dist")
    check_tensor(other, "dist")
    common = result_dtype((input, other))
    if not (common.is_floating_point or common.is_complex):
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{common.scalar_type} instead."
        )
    if input._array.dtype != other._array.dtype:
        input, other = v.cast(input, common.numpy), v.cast(other, common.numpy)
    return run(Dist(p), (input, other))


@op
class CDist(Op):
    """The distance of order `p` between each row of `x1` and each row of `x2`."""

    name, node = "cdist", "CdistBackward0"
    inputs, saves = ("x1", "x2"), ("x1", "x2", "result")
    params = ("p",)
    lies = "rows"
    p: float

    def gaps(self, a: Any, b: Any) -> Any:
        """Each row less each row: (..., rows of a, rows of b, columns)."""
        every = slice(None)
        return v.window(a, (..., every, None, every)) - v.window(b, (..., None, every, every))

    def forward(self, a: Any, b: Any) -> Any:
        return self.size(self.gaps(a, b))

    def size(self, d: Any) -> Any:
        """The norms of differences along the last axis."""
        if d.shape[-1] == 0:
            return v.reduce_sum(d, (-1,), False)
        return narrow(norm_of(widen(d), self.p, (-1,), False), d)

    def slope(self, d: Any, y: Any) -> Any:
        y = v.window(y, (..., None))
        if self.p == math.inf:  # ties do not share here: PyTorch gives each the whole
            return sign_or_phase(d) * v.cast(v.equal(v.absolute(d), y), raw_dtype(d))
        return slope_of(d, y, self.p, (-1,))

    def vjp(self, node: Node, g: Any, a: Any, b: Any, y: Any) -> Any:
        slope = self.slope(self.gaps(a, b), y)
        if slope is None:
            return a * 0, b * 0
        step = v.window(g, (..., None)) * slope
        return (
            v.reduce_sum(step, (-2,), False) if node._needs_grad(0) else None,
            -v.reduce_sum(step, (-3,), False) if node._needs_grad(1) else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a, b = xs
        slope = self.slope(self.gaps(a, b), y)
        if slope is None:
            return y * 0
        t = self.gaps(a * 0 if ts[0] is None else ts[0], b * 0 if ts[1] is None else ts[1])
        return v.reduce_sum(t * slope, (-1,), False)

    @staticmethod
    def samples(draw: Any) -> Any:
        for p in (2.0, 1.0, 3.0, 0.5, math.inf):
            yield CDist(p), draw.real(3, 2), draw.real(4, 2)
        yield CDist(2.0), draw.real(2, 3, 2), draw.real(1, 4, 2)
        yield CDist(2.0), draw.real(0, 2), draw.real(4, 2)


@function(method=False)
def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """The distance between each row of `x1` and each row of `x2`. `compute_mode` is checked, and
    changes nothing: distances are always taken from the differences.

    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
             "donot_use_mm_for_euclid_dist")  # fmt: skip
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    a, b = check_tensor(x1, "cdist"), check_tensor(x2, "cdist")
    if a.dtype.kind in "iubc" or b.dtype.kind in "iubc":
        which, bad = ("X1", a) if a.dtype.kind in "iubc" else ("X2", b)
        raise RuntimeError(
            f"cdist only supports floating-point dtypes, {which} got: "
            f"{dtypes.of(bad.dtype).scalar_type}"
        )
    for which, array in (("X1", a), ("X2", b)):
        if array.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {which} got: {array.ndim}D"
            )
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return run(CDist(float(p)), (x1, x2))
