"""Running sums, products and extremes along a dimension.

Note [Recurrences]
    The derivatives of `cumprod` and `logcumsumexp` are linear recurrences, s[i] = a[i] s[i-1] +
    b[i]. `recurrence` solves one by doubling: log2(n) steps, each over whole arrays. It divides by
    nothing, so zeros do no harm, and it is made of primitives, so it can be differentiated again.
"""

from __future__ import annotations

import math
from typing import Any

from rushlight import dtypes, return_types
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented
from rushlight.ops.each_member import batch_leading
from rushlight.ops.out import write_outs
from rushlight.ops.reduction.family import (
    check_dim,
    declare,
    equal_with_nan,
    narrow,
    numpy_names,
    shift,
    widen,
)
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import drawn


def recurrence(a: Any, b: Any) -> Any:
    """s[i] = a[i] s[i-1] + b[i] along the last axis, from s[-1] = 0; see Note [Recurrences]."""
    step, n = 1, b.shape[-1]
    while step < n:
        b = b + a * shift(b, step, 0)
        a = a * shift(a, step, 1)
        step *= 2
    return b


def back_recurrence(a: Any, b: Any) -> Any:
    """s[i] = a[i] s[i+1] + b[i]."""
    return v.flip(recurrence(v.flip(a, (-1,)), v.flip(b, (-1,))), (-1,))


def sooner(x: Any, value: Any) -> Any:
    """x[i+1] at each i along the last axis, `value` at the end."""
    return v.flip(shift(v.flip(x, (-1,)), 1, value), (-1,))


def complex_logaddexp(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)) from the one with the larger real part."""
    less_first = v.less(v.real(a), v.real(b))
    low, high = v.where(less_first, a, b), v.where(less_first, b, a)
    stuck = v.logical_and(v.isinf(v.real(low)), v.equal(v.real(low), v.real(high)))
    return v.where(stuck, low, v.log(1 + v.exp(v.where(stuck, 0, low - high))) + high)


class Scan(Op):
    """An op along the dimension `dim`, of which a 0-d tensor has one of size 1."""

    params = ("dim", "dtype")
    saved_names = "dim"
    lies = "rows"
    vmap_rule = batch_leading
    dim: int
    dtype: Any = None

    def line(self, x: Any) -> Any:
        """`x` in the dtype asked for, with `dim` as its last axis."""
        if self.dtype is not None:
            x = v.cast(x, self.dtype)
        return v.swap(x, self.dim, -1) if x.ndim else v.reshape(x, (1,))

    def unline(self, z: Any, shape: tuple[int, ...]) -> Any:
        """The inverse of `line`."""
        return v.swap(z, self.dim, -1) if shape else v.reshape(z, ())

    samples = drawn(real=[(-1, (2, 3)), (-2, (5, 2)), (-1, ()), (-1, (2, 0))], complex=[(-1, (3,))])


@op
class CumSum(Scan):
    """The running sum along `dim`."""

    name = "cumsum"

    def mover(self, rule: str) -> Any:
        plain = self.dtype is None
        return kernels.bound(kernels.running, False, rule == "vjp", self.dim) if plain else None

    def forward(self, x: Any) -> Any:
        z = self.line(x)
        return self.unline(v.cumsum(z, -1), x.shape)

    def vjp(self, node: Node, g: Any) -> Any:
        z = self.line(g)
        z = v.flip(v.cumsum(v.flip(z, (-1,)), -1), (-1,))
        return (self.unline(z, g.shape),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0])


@op
class CumProd(Scan):
    """The running product along `dim`."""

    name, saves = "cumprod", ("self", "result")

    def mover(self, rule: str) -> Any:
        plain = self.dtype is None and rule == "forward"
        return kernels.bound(kernels.running, True, False, self.dim) if plain else None

    def forward(self, x: Any) -> Any:
        z = self.line(x)
        return self.unline(v.cumprod(z, -1), x.shape)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        if 0 in x.shape:
            return (g,)
        z, y, g = self.line(x), widen(self.line(y)), self.line(g)
        before = shift(y, 1, 1)
        after = back_recurrence(sooner(conj(widen(z)), 0), widen(g))
        return (v.contiguous(self.unline(narrow(conj(before) * after, g), x.shape)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        if 0 in y.shape:
            return ts[0]
        before = shift(widen(self.line(y)), 1, 1)
        moved = recurrence(widen(self.line(xs[0])), widen(self.line(ts[0])) * before)
        return self.unline(narrow(moved, y), y.shape)


@op
class LogCumSumExp(Scan):
    """The logarithm of the running sum of exponentials along `dim`."""

    name, saves = "logcumsumexp", ("self", "result")

    def forward(self, x: Any) -> Any:
        z = self.line(x)
        y = widen(z)
        n = y.shape[-1]
        if is_complex(y):  # one by one: the order decides on which branch of the logarithm it ends
            parts = [v.window(y, (..., slice(i, i + 1))) for i in range(n)]
            for i in range(1, n):
                parts[i] = complex_logaddexp(parts[i - 1], parts[i])
            y = v.concat(parts, -1) if parts else y
        else:
            step = 1
            while step < n:
                y = v.logaddexp(y, shift(y, step, -math.inf))
                step *= 2
        return v.copy(self.unline(narrow(y, z), x.shape))

    def ratios(self, y: Any) -> Any:
        """exp(y[i] - y[i+1]), at most 1; 1 where both are the same infinity, 0 at the end."""
        after = sooner(y, math.inf)
        level = v.equal(y, after)
        return v.where(level, 1, v.exp(v.where(level, 0, y) - v.where(level, 0, after)))

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        if 0 in x.shape:
            return (g,)
        x, y = widen(self.line(x)), widen(self.line(y))
        later = back_recurrence(conj(self.ratios(y)), widen(self.line(g)))
        return (v.contiguous(self.unline(narrow(conj(v.exp(x - y)) * later, g), g.shape)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        if 0 in y.shape:
            return ts[0]
        shape, like = y.shape, y
        t, x, y = widen(self.line(ts[0])), widen(self.line(xs[0])), widen(self.line(y))
        earlier = shift(self.ratios(y), 1, 0)
        return self.unline(narrow(recurrence(earlier, t * v.exp(x - y)), like), shape)


# --- running extremes -----------------------------------------------------------------------------
class Champion(Scan):
    """The running largest (or smallest) along `dim`, and the last place where it stood."""

    outputs, saves = ("values", "indices"), ("indices",)
    most: bool = True

    def forward(self, x: Any) -> Any:
        z = self.line(x)
        y = v.running(z, -1, self.most)
        places = v.iota(z, z.shape[-1], dtypes.int64.numpy)
        index = v.running(v.where(equal_with_nan(z, y), places, 0), -1, True)
        return v.copy(self.unline(y, x.shape)), v.copy(self.unline(index, x.shape))

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        kinds = node._input_dtypes
        assert kinds is not None
        if g[0].ndim == 0:
            return (g[0],)
        return (v.scatter_add(v.full(g[0], g[0].shape, 0, kinds[0]), self.dim, index, g[0]),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        return (v.gather(t, self.dim, y[1]) if t.ndim else t), y[1] * 0

    samples = drawn(real=[(-1, (2, 3)), (-2, (3, 2)), (-1, ())])


@op
class CumMax(Champion):
    """The running largest along `dim`, and where."""

    name, most = "cummax", True


@op
class CumMin(Champion):
    """The running smallest along `dim`, and where."""

    name, most = "cummin", False


# --- public ---------------------------------------------------------------------------------------
def _negative(axis: int, x: Any) -> int:
    return axis - max(x._array.ndim, 1) if axis >= 0 else axis


def _declare_scan(cls: Any, word: str, gives: str) -> None:
    """The function and the primitive of `cumsum` or `cumprod`."""
    name = cls.name

    def fn(input: Any, dim: Any, *, dtype: Any = None) -> Any:
        array = check_tensor(input, name)
        want = dtypes.sum_dtype(array.dtype) if dtype is None else dtype.numpy
        at = check_dim(name, dim, array.ndim)
        return cls(at, None if want is array.dtype else want), (input,)

    def implement(x: Any, axis: int) -> Any:
        return apply(cls(_negative(axis, x)), x)

    declare(
        fn, name, f"The running {word} along a dimension.",
        f"torch.{name}(torch.tensor([1., 2., 3.]), 0)", gives, out=True, inplace=True,
    )  # fmt: skip
    implements(name)(implement)


_declare_scan(CumSum, "sum", "tensor([1., 3., 6.])")
_declare_scan(CumProd, "product", "tensor([1., 2., 6.])")


@function(out=True)
@numpy_names
def logcumsumexp(input: Any, dim: Any) -> Any:
    """The logarithm of the running sum of exponentials along a dimension, without overflow.

    >>> torch.logcumsumexp(torch.tensor([0., 0., 0.]), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    array = check_tensor(input, "logcumsumexp")
    if array.dtype.kind in "iub":
        raise not_implemented("logcumsumexp_out_cpu", array.dtype)
    return LogCumSumExp(check_dim("logcumsumexp", dim, array.ndim)), (input,)


def _declare_champion(cls: Any, kind: Any, word: str, example: str, gives: str) -> None:
    """The function of `cummax` or `cummin`."""
    name = cls.name

    def fn(input: Any, dim: Any, *, out: Any = None) -> Any:
        array = check_tensor(input, name)
        if array.dtype.kind == "c":
            raise not_implemented(f"{name}_cpu", array.dtype)
        return write_outs(name, kind, apply(cls(check_dim(name, dim, array.ndim)), input), out)

    declare(
        fn, name, f"The {word} element so far along a dimension, and its index.", example, gives,
    )  # fmt: skip


_declare_champion(
    CumMax, return_types.cummax, "largest",
    "torch.cummax(torch.tensor([1., 3., 2.]), 0).values", "tensor([1., 3., 3.])",
)  # fmt: skip
_declare_champion(
    CumMin, return_types.cummin, "smallest",
    "torch.cummin(torch.tensor([2., 3., 1.]), 0).indices", "tensor([0, 0, 2])",
)  # fmt: skip


@implements("running")
def _implement_running(x: Any, axis: int, most: bool) -> Any:
    return apply((CumMax if most else CumMin)(_negative(axis, x)), x)[0]
