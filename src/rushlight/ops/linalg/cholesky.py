"""Cholesky's factor of a positive matrix, and inverses and systems from that factor."""

from __future__ import annotations

from typing import Any

from rushlight import return_types
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.each_member import batch_leading
from rushlight.ops.linalg import common
from rushlight.ops.linalg.common import (
    half_diagonal,
    hermitian,
    lower_solve,
    mh,
    mt,
    upper_solve,
)
from rushlight.ops.linalg.solve import check_right_side
from rushlight.ops.out import write_out, write_outs
from rushlight.ops.registry import function, op


# --- the factor -----------------------------------------------------------------------------------
class Choleskies(Op):
    """The lower triangle L with L Lᴴ = A (Lᴴ if `upper`) of a positive matrix."""

    params = ("upper",)
    upper: bool = False

    def forward(self, x: Any) -> Any:
        return lapack.cholesky(x, self.upper)

    def vjp(self, node: Node, g: Any, y: Any) -> Any:
        low, gl = (mh(y), mh(g[0])) if self.upper else (y, g[0])
        inside = mh(low) @ gl
        middle = (v.triangle(inside, 0, True) + mh(v.triangle(inside, -1, True))) / 2
        left = upper_solve(mh(low), middle)
        return (mh(upper_solve(mh(low), mh(left))),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        low = mh(y[0]) if self.upper else y[0]
        left = lower_solve(low, ts[0])
        middle = mh(lower_solve(low, mh(left)))
        step = low @ half_diagonal(v.triangle(middle, 0, True))
        return mh(step) if self.upper else step, y[1] * 0


@op
class CholeskyEx(Choleskies):
    """As `torch.linalg` records it."""

    name, node = "linalg_cholesky_ex", "LinalgCholeskyExBackward0"
    word = "cholesky"
    outputs, saves = ("L", "info"), ("L",)
    vmap_rule = batch_leading

    @staticmethod
    def samples(draw: Any) -> Any:
        kind = common.on_subspace(CholeskyEx, hermitian)
        yield kind(), common.positive(draw, 3, 3)
        yield kind(True), common.positive(draw, 2, 2, 2)
        yield kind(), draw.real(0, 0)
        yield kind(), common.positive(draw, 3, 3, complex=True)
        yield kind(True), common.positive(draw, 2, 2, complex=True)


@op
class Cholesky(Choleskies):
    """As `torch.cholesky` records it."""

    name, outputs, saves = "cholesky", ("result", "info"), ("result",)
    vmap_rule = batch_leading

    @staticmethod
    def samples(draw: Any) -> Any:
        yield common.on_subspace(Cholesky, hermitian)(), common.positive(draw, 3, 3)
        yield common.on_subspace(Cholesky, hermitian)(), common.positive(draw, 3, 3, complex=True)


def _factor(A: Any, upper: bool, op: Any, function: str) -> Any:
    """The factor, and `info`."""
    common.check_square(A._array, function)
    if op is Cholesky:
        common.lapack_only(A._array, "cholesky_cpu")
    common.floating(A._array, function, "cholesky_cpu")
    return apply(op(bool(upper)), A)


def _sure_factor(A: Any, upper: bool, op: Any, function: str) -> Any:
    found, info = _factor(A, upper, op, function)
    common.check_info(function, info, "cholesky")
    return found


@function(method=False, free=False, namespace="linalg", name="cholesky")
def linalg_cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """The lower triangle L with L Lᴴ = A of a positive matrix, or the upper one, Lᴴ.

    >>> torch.linalg.cholesky(torch.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    check_tensor(A, "linalg_cholesky", "input")
    return write_out(
        "linalg_cholesky", (A,), out, lambda: _sure_factor(A, upper, CholeskyEx, "linalg.cholesky")
    )


@function(method=False, free=False, namespace="linalg")
def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As `cholesky`, with the order of the first minor that is not positive (0: none), in place of
    an error.

    >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
    tensor(1, dtype=torch.int32)
    """
    check_tensor(A, "linalg_cholesky_ex", "input")
    results = _factor(A, upper, CholeskyEx, "linalg.cholesky")
    if check_errors:
        common.check_info("linalg.cholesky_ex", results[1], "cholesky")
    return write_outs("linalg_cholesky_ex", return_types.linalg_cholesky_ex, results, out)


@function()
def cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """The older form of `linalg.cholesky`. Deprecated, in PyTorch too.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.cholesky(torch.tensor([[4.]]))
    tensor([[2.]])
    """
    common.warn_outdated("cholesky", "cholesky")
    check_tensor(input, "cholesky", "input")
    return write_out(
        "cholesky", (input,), out, lambda: _sure_factor(input, upper, Cholesky, "cholesky")
    )


# --- what it is good for --------------------------------------------------------------------------
class Factored(Op):
    """An op of a triangular factor L (U = Lᴴ if `upper`) of a positive matrix K = L Lᴴ."""

    params = ("upper",)
    upper: bool = False

    def factor_vjp(self, gk: Any, factor: Any) -> Any:
        """The gradient of the factor from the gradient of K. PyTorch gives both triangles of it."""
        both = gk + mh(gk)
        return factor @ both if self.upper else both @ factor

    def factor_jvp(self, t: Any, factor: Any) -> Any:
        """The tangent of K from that of the factor."""
        half = mh(t) @ factor if self.upper else t @ mh(factor)
        return half + mh(half)


def _upper(x: Any) -> Any:
    return v.triangle(x, 0, False)


@op
class CholeskySolve(Factored):
    """The X of K X = B."""

    name = word = "cholesky_solve"
    inputs, saves = ("self", "input2"), ("input2", "result")

    def forward(self, b: Any, factor: Any) -> Any:
        return lapack.cholesky_solve(b, factor, self.upper)

    def vjp(self, node: Node, g: Any, factor: Any, x: Any) -> Any:
        step = self.forward(g, factor)
        return step, self.factor_vjp(-(step @ mh(x)), factor) if node._needs_grad(1) else None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        if ts[1] is not None:
            moved = self.factor_jvp(ts[1], xs[1]) @ y
            t = -moved if t is None else t - moved
        return self.forward(t, xs[1])

    @staticmethod
    def samples(draw: Any) -> Any:
        low, high = (
            common.on_subspace(CholeskySolve, common.lower, 1),
            common.on_subspace(CholeskySolve, _upper, 1),
        )
        yield low(), draw.real(3, 2), common.lower(draw.square(3, 3))
        yield high(True), draw.real(3, 2), _upper(draw.square(3, 3))
        yield low(), draw.real(2, 2, 1), common.lower(draw.square(2, 2))
        yield low(), draw.complex(2, 3), common.lower(draw.complex_square(2, 2))


@function()
def cholesky_solve(input: Any, L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """The X of A X = B from the triangular factor of a positive matrix A.

    Args:
        input: the right-hand side, or a batch of them.

    >>> torch.cholesky_solve(torch.ones(1, 1), torch.tensor([[2.]]))
    tensor([[0.2500]])
    """
    b, factor = (
        check_tensor(input, "cholesky_solve", "input"),
        check_tensor(L, "cholesky_solve", "L", 2),
    )
    for name, array in (("b", b), ("u", factor)):
        if array.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {array.ndim} dimensions instead"
            )
    check_right_side(input, L, "cholesky_solve")
    what = CholeskySolve(bool(upper))
    return write_out("cholesky_solve", (input, L), out, lambda: apply(what, input, L))


@op
class CholeskyInverse(Factored):
    """The inverse of K."""

    name, saves = "cholesky_inverse", ("self", "result")

    def forward(self, factor: Any) -> Any:
        if self.upper:
            half, _ = lapack.inv(v.triangle(factor, 0, False))
            return mt(conj(half) @ mt(half))  # transposed: in columns
        half, _ = lapack.inv(v.triangle(factor, 0, True))
        return mt(mt(half) @ conj(half))

    def vjp(self, node: Node, g: Any, factor: Any, y: Any) -> Any:
        return (self.factor_vjp(-(y @ g @ y), factor),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return -(y @ self.factor_jvp(ts[0], xs[0]) @ y)

    @staticmethod
    def samples(draw: Any) -> Any:
        low, high = (
            common.on_subspace(CholeskyInverse, common.lower),
            common.on_subspace(CholeskyInverse, _upper),
        )
        yield low(), common.lower(draw.square(3, 3))
        yield high(True), _upper(draw.square(2, 2, 2))
        yield low(), common.lower(draw.complex_square(2, 2))


@function()
def cholesky_inverse(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """The inverse of a positive matrix from its triangular factor.

    Args:
        input: the Cholesky factor.

    >>> torch.cholesky_inverse(torch.tensor([[2.]]))
    tensor([[0.2500]])
    """
    array = check_tensor(input, "cholesky_inverse", "input")
    common.check_square(array, "cholesky_inverse")
    common.lapack_only(array, "cholesky_inverse_out_cpu")
    what = CholeskyInverse(bool(upper))
    return write_out("cholesky_inverse", (input,), out, lambda: _sure_inverse(what, input))


def _sure_inverse(what: CholeskyInverse, factor: Any) -> Any:
    raw = v.diagonal(bottom(factor._array), 0, -2, -1)
    if has_values(raw) and bool(v.reduce_any(raw == 0, None, False)):
        # which number of the diagonal is the first zero, from 1
        missing = (factor.detach().diagonal(0, -2, -1) == 0).int()
        common.check_info("cholesky_inverse", missing.amax(-1) * (missing.argmax(-1) + 1), "inv")
    return apply(what, factor)
