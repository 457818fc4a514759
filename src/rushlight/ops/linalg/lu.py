"""LU: A = P L U, its packed form, and systems solved with it."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes, return_types
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op, wrap
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.linalg import common
from rushlight.ops.linalg.common import by_columns, column_scale, eye, mh, mt, row_scale
from rushlight.ops.out import write_out, write_outs
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn

_INT: Final = dtypes.int64.numpy


def split_factors(both: Any) -> tuple[Any, Any]:
    """L, with ones on its diagonal, and U."""
    m, n = both.shape[-2:]
    k = min(m, n)
    one = v.window(v.cast(eye(both, max(m, n)), raw_dtype(both)), (slice(0, m), slice(0, k)))
    low = v.triangle(v.window(both, (..., slice(0, k))), -1, True) + one
    return low, v.triangle(v.window(both, (..., slice(0, k), slice(None))), 0, False)


def permuting(order: Any, like: Any) -> Any:
    """The matrix P with A = P L U, from the order of rows: row i of L U is row order[i] of A."""
    at = v.iota(order, order.shape[-1], _INT)
    return v.cast(v.equal(row_scale(at), column_scale(order)), raw_dtype(like))


def product_vjp(gl: Any, gu: Any, low: Any, high: Any) -> Any:
    """The gradient of L U, as the product of both, from those of L and U.

    Of a tall matrix the lower rows of L are X inv(U), of a wide one the right columns of U are
    inv(L) X: their gradients go through the square part.
    """
    m, n = low.shape[-2], high.shape[-1]
    k = min(m, n)
    first, rest = slice(0, k), slice(k, None)
    every = slice(None)
    extra: Any = None
    if m > n:
        bottom = v.window(low, (..., rest, every))
        extra = mh(lapack.solve_triangular(high, mh(v.window(gl, (..., rest, every))), True, False))
        gu = gu - mh(bottom) @ extra
        low, gl = v.window(low, (..., first, every)), v.window(gl, (..., first, every))
    elif m < n:
        right = v.window(high, (..., rest))
        extra = lapack.solve_triangular(mh(low), v.window(gu, (..., rest)), True, True)
        gl = gl - extra @ mh(right)
        high, gu = v.window(high, (..., first)), v.window(gu, (..., first))
    inside = v.triangle(mh(low) @ gl, -1, True) + v.triangle(gu @ mh(high), 0, False)
    left = lapack.solve_triangular(mh(low), inside, True, True)
    found = mh(lapack.solve_triangular(high, mh(left), True, False))
    if extra is None:
        return found
    return v.concat([found, extra], -2 if m > n else -1)


def product_jvp(t: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The tangents of L and U from that of their product."""
    m, n = t.shape[-2:]
    k = min(m, n)
    first, rest, every = slice(0, k), slice(k, None), slice(None)
    top, up = v.window(low, (..., first, every)), v.window(high, (..., first))
    left = lapack.solve_triangular(top, v.window(t, (..., first, first)), False, True)
    inside = mt(lapack.solve_triangular(mt(up), mt(left), False, False))
    tl, tu = top @ v.triangle(inside, -1, True), v.triangle(inside, 0, False) @ up
    if m > n:
        moved = v.window(t, (..., rest, every)) - v.window(low, (..., rest, every)) @ tu
        tl = v.concat([tl, mt(lapack.solve_triangular(mt(up), mt(moved), False, False))], -2)
    elif m < n:
        moved = v.window(t, (..., rest)) - tl @ v.window(high, (..., rest))
        tu = v.concat([tu, lapack.solve_triangular(top, moved, False, True)], -1)
    return tl, tu


def join_factors(low: Any, high: Any, shape: tuple[int, ...]) -> Any:
    """The strict lower triangle of one and the upper triangle of the other, as one matrix."""
    m, n = shape[-2:]
    low, high = v.triangle(low, -1, True), v.triangle(high, 0, False)
    if m > n:
        nothing = v.window(low, (..., slice(n, m), slice(None))) * 0
        high = v.concat([high, nothing], -2)
    elif m < n:
        low = v.concat([low, v.window(high, (..., slice(m, n))) * 0], -1)
    return low + high


@op
class LuFactor(Op):
    """Both triangles in one matrix; the exchanges of rows; the order of rows; failures."""

    name, node = "linalg_lu_factor_ex", "LinalgLuFactorExBackward0"
    inputs, outputs, saves = ("A",), ("LU", "pivots", "order", "info"), ("LU", "order")

    def forward(self, x: Any) -> Any:
        return lapack.lu(x)

    def vjp(self, node: Node, g: Any, both: Any, order: Any) -> Any:
        low, high = split_factors(both)
        k = low.shape[-1]
        gl = v.triangle(v.window(g[0], (..., slice(0, k))), -1, True)
        gu = v.triangle(v.window(g[0], (..., slice(0, k), slice(None))), 0, False)
        return (permuting(order, both) @ product_vjp(gl, gu, low, high),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        both, pivots, order, info = y
        tl, tu = product_jvp(mt(permuting(order, both)) @ ts[0], *split_factors(both))
        return join_factors(tl, tu, both.shape), pivots * 0, order * 0, info * 0

    samples = drawn(square=[(2, 2, 2)], real=[(3, 3), (4, 2), (2, 4)], complex=[(3, 2), (2, 3)])


@op
class Lu(Op):
    """P, L and U."""

    name = "linalg_lu"
    inputs, outputs, saves = ("A",), ("P", "L", "U"), ("P", "L", "U")

    def forward(self, x: Any) -> Any:
        both, _, order, _ = lapack.lu(x)
        return (permuting(order, x), *split_factors(both))

    def vjp(self, node: Node, g: Any, p: Any, low: Any, high: Any) -> Any:
        return (p @ product_vjp(g[1], g[2], low, high),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        p, low, high = y
        return (p * 0, *product_jvp(mt(p) @ ts[0], low, high))

    samples = drawn(real=[(3, 3), (2, 4, 2), (2, 3)], complex=[(2, 2)])


@op
class LuSolve(Op):
    """The X of A X = B (X A = B unless `left`), or with Aᴴ if `adjoint`, for A as `LuFactor` left
    it. X A = B is solved as Aᴴ Xᴴ = Bᴴ."""

    name = "linalg_lu_solve"
    inputs, saves = ("LU", "order", "B"), ("LU", "order", "result")
    params = ("left", "adjoint")

    def __init__(self, left: bool = True, adjoint: bool = False) -> None:
        super().__init__()
        self.left = left
        self.adjoint = adjoint
        self.turned = adjoint == left

    def side(self, x: Any) -> Any:
        return x if self.left else mh(x)

    def solved(self, both: Any, order: Any, b: Any, turned: bool) -> Any:
        p = permuting(order, both)
        if turned:
            inside = lapack.solve_triangular(mh(both), b, False, False)
            return p @ lapack.solve_triangular(mh(both), inside, True, True)
        return lapack.solve_triangular(
            both, lapack.solve_triangular(both, mt(p) @ b, False, True), True, False
        )

    def forward(self, both: Any, order: Any, b: Any) -> Any:
        return self.side(by_columns(self.solved(both, order, self.side(b), self.turned)))

    def vjp(self, node: Node, g: Any, both: Any, order: Any, x: Any) -> Any:
        g, x = self.side(g), self.side(x)
        step = self.solved(both, order, g, not self.turned)
        if not node._needs_grad(0):
            return None, None, self.side(step)
        p, (low, high) = permuting(order, both), split_factors(both)
        if self.turned:
            inside = mt(p) @ x
            gl = inside @ mh(lapack.solve_triangular(low, mt(p) @ g, False, True))
            gu = (mh(low) @ inside) @ mh(step)
        else:
            gu = lapack.solve_triangular(mh(high), g, False, False) @ mh(x)
            gl = (mt(p) @ step) @ mh(high @ x)
        return -join_factors(gl, gu, both.shape), None, self.side(step)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        both, order, _ = xs
        x = self.side(y)
        t = None if ts[2] is None else self.side(ts[2])
        if ts[0] is not None:
            p, (low, high) = permuting(order, both), split_factors(both)
            moved = v.triangle(ts[0], -1, True) @ high + low @ v.triangle(ts[0], 0, False)
            moved = mh(moved) @ (mt(p) @ x) if self.turned else p @ (moved @ x)
            t = -moved if t is None else t - moved
        return self.side(self.solved(both, order, t, self.turned))

    @staticmethod
    def samples(draw: Any) -> Any:
        for left, adjoint in ((True, False), (True, True), (False, False), (False, True)):
            for square, any_ in ((draw.square, draw.real), (draw.complex_square, draw.complex)):
                both, _, order, _ = lapack.lu(square(3, 3)[::-1])
                shape = (3, 2) if left else (2, 3)
                yield LuSolve(left, adjoint), both, order, any_(*shape)


@op
class LuUnpack(Op):
    """P, L and U from what `LuFactor` left."""

    name = "lu_unpack"
    inputs, outputs = ("LU_data", "order"), ("P", "L", "U")
    complex_too = True

    def forward(self, both: Any, order: Any) -> Any:
        return (permuting(order, both), *split_factors(both))

    def vjp(self, node: Any, g: Any) -> Any:
        shapes = node._input_shapes
        return join_factors(g[1], g[2], shapes[0]), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        k = min(ts[0].shape[-2:])
        low = v.triangle(v.window(ts[0], (..., slice(0, k))), -1, True)
        return y[0] * 0, low, v.triangle(v.window(ts[0], (..., slice(0, k), slice(None))), 0, False)

    @staticmethod
    def samples(draw: Any) -> Any:
        for shape in ((3, 3), (4, 2), (2, 3)):
            yield LuUnpack(), draw.real(*shape), draw.permutation(shape[0])


# --- public ---------------------------------------------------------------------------------------
def _check(A: Any, function: str, pivot: bool) -> None:
    array = check_tensor(A, "linalg_" + function)
    if array.ndim < 2:
        title = "linalg.lu" if function == "lu" else "torch.lu_factor"
        raise RuntimeError(
            f"{title}: Expected tensor with 2 or more dimensions. Got size: {list(array.shape)} "
            "instead"
        )
    if not pivot:
        raise RuntimeError(f"linalg.{function}: LU without pivoting is not implemented on the CPU")
    common.lapack_only(array, "lu_cpu")


def _factor(A: Any, pivot: bool) -> Any:
    _check(A, "lu_factor", pivot)
    return apply(LuFactor(), A)


@function(method=False, free=False, namespace="linalg")
def lu_factor(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """The factors of A = P L U, both triangles in one matrix, and the exchanges of rows.

    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1., 2.], [4., 4.]]))
    >>> LU
    tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]])
    >>> pivots
    tensor([2, 2], dtype=torch.int32)
    """
    both, pivots, _, info = _factor(A, pivot)
    common.check_info("torch.linalg.lu_factor", info, "lu_factor", RuntimeError)
    return write_outs("linalg_lu_factor", return_types.linalg_lu_factor, (both, pivots), out)


@function(method=False, free=False, namespace="linalg")
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """As `lu_factor`, with a third result that says which pivot is zero (0: none).

    >>> torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    both, pivots, _, info = _factor(A, pivot)
    if check_errors:
        common.check_info("torch.linalg.lu_factor_ex", info, "lu_factor", RuntimeError)
    kind = return_types.linalg_lu_factor_ex
    return write_outs("linalg_lu_factor_ex", kind, (both, pivots, info), out)


@function(method=False, free=False, namespace="linalg", name="lu")
def linalg_lu(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """A permutation P, a lower triangle L and an upper triangle U with A = P L U.

    >>> torch.linalg.lu(torch.tensor([[2., 2.], [1., 4.]])).U
    tensor([[2., 2.],
            [0., 3.]])
    """
    _check(A, "lu", pivot)
    p, low, high = apply(Lu(), A)
    return write_outs("linalg_lu", return_types.linalg_lu, (p.detach(), low, high), out)


@function(returns="tuple[Tensor, Tensor]")
def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The older form of `linalg.lu_factor`. Deprecated, in PyTorch too.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.lu(torch.tensor([[2., 2.], [1., 4.]]))[0]
    tensor([[2.0000, 2.0000],
            [0.5000, 3.0000]])
    """
    common.warn_outdated("lu", "lu_factor")
    both, pivots, _, info = _factor(A, pivot)
    if get_infos:
        return write_outs("lu", return_types._lu_with_info, (both, pivots, info), out)
    return write_outs("lu", tuple, (both, pivots), out)


def _order_of(pivots: Any, n: int) -> Any:
    """The order of `n` rows after exchanges of the rows that `pivots` names (from 1)."""
    return wrap(lapack.row_order(pivots._array, n))


@function(method=False, free=False, namespace="linalg", name="lu_solve")
def linalg_lu_solve(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False, out: Any = None
) -> Any:
    """The X of A X = B (X A = B unless `left`) from the factors of A that `lu_factor` gives.

    >>> A = torch.tensor([[2., 0.], [0., 4.]])
    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(A), torch.ones(2, 1))
    tensor([[0.5000],
            [0.2500]])
    """
    array, right = (
        check_tensor(LU, "linalg_lu_solve", "LU"),
        check_tensor(B, "linalg_lu_solve", "B", 3),
    )
    if array.dtype != right.dtype:
        have, other = (dtypes.of(x.dtype).scalar_type for x in (array, right))
        raise RuntimeError(
            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
            f"{have} and B of type {other} instead"
        )
    common.check_square(array, "torch.linalg.lu_solve")
    common.check_sides(array, right, left, "linalg.lu_solve")
    order = _order_of(pivots, array.shape[-1])
    what = LuSolve(bool(left), bool(adjoint))
    return write_out("linalg_lu_solve", (LU, B), out, lambda: apply(what, LU, order, B))


@function()
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """The older form of `linalg.lu_solve`. Deprecated, in PyTorch too.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.lu_solve(torch.ones(1, 1), *torch.linalg.lu_factor(torch.tensor([[4.]])))
    tensor([[0.2500]])
    """
    common.warn_outdated("lu_solve", "lu_solve")
    check_tensor(b, "lu_solve", "input")
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)


@function(method=False)
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True,
    *, out: Any = None,
) -> Any:  # fmt: skip
    """P, L and U from the two results of `linalg.lu_factor`.

    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[2., 2.], [1., 4.]]))).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    array = check_tensor(LU_data, "lu_unpack", "LU_data")
    pivots = check_tensor(LU_pivots, "lu_unpack", "LU_pivots")
    if array.ndim < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(array.shape)} instead"
        )
    if pivots.dtype != dtypes.int32.numpy:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            "dtype.\nNote: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    if pivots.shape != (*array.shape[:-2], min(array.shape[-2:])):  # PyTorch reads beyond the end
        raise RuntimeError(
            f"torch.lu_unpack: LU_data of shape {list(array.shape)} has no pivots of shape "
            f"{list(pivots.shape)}"
        )
    order = _order_of(LU_pivots, array.shape[-2])
    p, low, high = apply(LuUnpack(), LU_data, order)
    nothing = LU_data.new_empty((0,))
    kept = (
        p.detach() if unpack_pivots else nothing,
        low if unpack_data else nothing,
        high if unpack_data else nothing,
    )
    return write_outs("lu_unpack", return_types.lu_unpack, kept, out)
