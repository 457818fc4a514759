"""Inverses and linear systems, triangular ones too. Those by a positive matrix's factor are in
`linalg_cholesky`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes, return_types
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.each_member import batch_leading
from rushlight.ops.linalg import common
from rushlight.ops.linalg.common import by_columns, mh, mt, row_scale
from rushlight.ops.out import write_out, write_outs
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.view.expand import broadcast_shape


# --- inverses -------------------------------------------------------------------------------------
@op
class Inv(Op):
    """The inverse of a square matrix."""

    name, node = "linalg_inv_ex", "LinalgInvExBackward0"
    word = "inv"
    inputs, outputs, saves = ("A",), ("inverse", "info"), ("inverse",)
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return lapack.inv(x)

    def vjp(self, node: Node, g: Any, y: Any) -> Any:
        return (-(mh(y) @ g[0] @ mh(y)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return -(y[0] @ ts[0] @ y[0]), y[1] * 0

    samples = drawn(square=[(3, 3), (2, 1, 2, 2)], real=[(0, 0)], complex_square=[(2, 2)])


def _invert(A: Any, function: str) -> Any:
    common.check_square(A._array, function)
    common.floating(A._array, function)
    return apply(Inv(), A)


@function(method=False, free=False, namespace="linalg")
def inv(A: Any, *, out: Any = None) -> Any:
    """The inverse of a square matrix, or of each of a batch.

    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return write_out("linalg_inv_ex", (A,), out, lambda: _sure_inverse(A))


def _sure_inverse(A: Any) -> Any:
    inverse, info = _invert(A, "linalg.inv")
    common.check_info("linalg.inv", info, "inv")
    return inverse


@function(method=False, free=False, namespace="linalg")
def inv_ex(A: Any, *, check_errors: bool = False, out: Any = None) -> Any:
    """The inverse, and which pivot is zero (0: none), in place of an error.

    >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    results = _invert(A, "linalg.inv")
    if check_errors:
        common.check_info("linalg.inv_ex", results[1], "inv")
    return write_outs("linalg_inv_ex", return_types.linalg_inv_ex, results, out)


@function()
def inverse(input: Any, *, out: Any = None) -> Any:
    """Another name of `linalg.inv`.

    >>> torch.inverse(torch.tensor([[4.]]))
    tensor([[0.2500]])
    """
    return inv(input, out=out)


# --- systems --------------------------------------------------------------------------------------
@op
class Solve(Op):
    """The X of A X = B (X A = B unless `left`); with `vector`, B has one dimension less."""

    name, node = "linalg_solve_ex", "LinalgSolveExBackward0"
    word = "solve"
    saved_names = "left"
    inputs, outputs, saves = ("A", "B"), ("result", "info"), ("A", "result")
    reads: ClassVar = {0: ("A", "result"), 1: ("A",)}
    params = ("left", "vector")
    left: bool = True
    vector: bool = False

    def solve_side(self, a: Any, b: Any) -> Any:
        if self.left:
            return lapack.solve(a, b)
        x, info = lapack.solve(mt(a), mt(b))
        return mt(x), info

    def forward(self, a: Any, b: Any) -> Any:
        if not self.vector:
            return self.solve_side(a, b)
        x, info = self.solve_side(a, row_scale(b))
        # PyTorch lays a batch of vectors out as if it were a matrix
        x = v.window(x, (..., 0))
        return by_columns(x) if self.left and x.ndim > 1 else x, info

    def vjp(self, node: Node, g: Any, a: Any, x: Any) -> Any:
        g = row_scale(g[0]) if self.vector else g[0]
        step, _ = self.solve_side(mh(a), g)
        ga: Any = None
        if node._needs_grad(0):
            turned = mh(row_scale(x) if self.vector else x)
            ga = -(step @ turned if self.left else turned @ step)
        return ga, v.window(step, (..., 0)) if self.vector else step

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x = row_scale(y[0]) if self.vector else y[0]
        t: Any = None if ts[1] is None else row_scale(ts[1]) if self.vector else ts[1]
        if ts[0] is not None:
            moved = ts[0] @ x if self.left else x @ ts[0]
            t = -moved if t is None else t - moved
        step, _ = self.solve_side(xs[0], t)
        return v.window(step, (..., 0)) if self.vector else step, y[1] * 0

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Solve(), draw.square(3, 3), draw.real(3, 2)
        yield Solve(False), draw.square(3, 3), draw.real(2, 3)
        yield Solve(True, True), draw.square(3, 3), draw.real(3)
        yield Solve(True, True), draw.square(2, 2, 2), draw.real(2)
        yield Solve(), draw.square(2, 1, 2, 2), draw.real(3, 2, 2)
        yield Solve(), draw.real(0, 0), draw.real(0, 2)
        yield Solve(), draw.complex_square(2, 2), draw.complex(2, 3)
        yield Solve(False), draw.complex_square(2, 2), draw.complex(3, 2)


def _solve_for(A: Any, B: Any, left: bool, function: str) -> Any:
    a, b = check_tensor(A, function, "A"), check_tensor(B, function, "B", 2)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{dtypes.of(a.dtype).scalar_type} and B of type {dtypes.of(b.dtype).scalar_type} "
            "instead"
        )
    common.check_square(a, "linalg.solve")
    common.floating(a, "linalg.solve", "lu_cpu")
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and a.shape[:-1] == b.shape)
    common.check_sides(a, v.window(b, (..., None)) if vector else b, left, "linalg.solve")
    return apply(Solve(bool(left), vector), A, B)


@function(method=False, free=False, namespace="linalg")
def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """The X of A X = B, or of X A = B unless `left`; B may be a vector.

    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    return write_out("linalg_solve", (A, B), out, lambda: _sure_solution(A, B, left))


def _sure_solution(A: Any, B: Any, left: bool) -> Any:
    result, info = _solve_for(A, B, left, "linalg_solve")
    common.check_info("torch.linalg.solve", info, "solve")
    return result


@function(method=False, free=False, namespace="linalg")
def solve_ex(
    A: Any, B: Any, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """As `solve`, with a second result that says which pivot is zero (0: none), in place of an
    error.

    >>> torch.linalg.solve_ex(torch.eye(2), torch.ones(2)).info
    tensor(0, dtype=torch.int32)
    """
    results = _solve_for(A, B, left, "linalg_solve_ex")
    if check_errors:
        common.check_info("torch.linalg.solve_ex", results[1], "solve")
    return write_outs("linalg_solve_ex", return_types.linalg_solve_ex, results, out)


# --- triangles ------------------------------------------------------------------------------------
@op
class SolveTriangular(Op):
    """The X of A X = B (X A = B unless `left`) for a triangle A, with ones on it if `unit`."""

    name, node = "linalg_solve_triangular", "LinalgSolveTriangularBackward0"
    inputs, saves = ("self", "B"), ("self", "result")
    reads: ClassVar = {0: ("self", "result"), 1: ("self",)}
    params = ("upper", "left", "unit")
    upper: bool
    left: bool = True
    unit: bool = False

    def read(self, a: Any) -> Any:
        """The part of A that is read."""
        return v.triangle(a, (1 if self.upper else -1) if self.unit else 0, not self.upper)

    def forward(self, a: Any, b: Any) -> Any:
        if self.left:
            return lapack.solve_triangular(a, b, self.upper, self.unit)
        return by_columns(mt(lapack.solve_triangular(mt(a), mt(b), not self.upper, self.unit)))

    def vjp(self, node: Node, g: Any, a: Any, x: Any) -> Any:
        if self.left:
            step = lapack.solve_triangular(mh(a), g, not self.upper, self.unit)
        else:
            step = mt(lapack.solve_triangular(conj(a), mt(g), self.upper, self.unit))
        if not node._needs_grad(0):
            return None, step
        return -self.read(step @ mh(x) if self.left else mh(x) @ step), step

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[1]
        if ts[0] is not None:
            moved = self.read(ts[0]) @ y if self.left else y @ self.read(ts[0])
            t = -moved if t is None else t - moved
        return self.forward(xs[0], t)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield SolveTriangular(True), draw.square(3, 3), draw.real(3, 2)
        yield SolveTriangular(False), draw.square(3, 3), draw.real(3, 2)
        yield SolveTriangular(True, False), draw.square(3, 3), draw.real(2, 3)
        yield SolveTriangular(False, True, True), draw.square(3, 3), draw.real(3, 2)
        yield SolveTriangular(True), draw.square(2, 1, 2, 2), draw.real(3, 2, 2)
        yield SolveTriangular(True), draw.real(0, 0), draw.real(0, 2)
        yield SolveTriangular(True), draw.complex_square(2, 2), draw.complex(2, 3)
        yield SolveTriangular(True, False), draw.complex_square(2, 2), draw.complex(3, 2)


@function(method=False, free=False, namespace="linalg")
def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Any:
    """The X of A X = B (X A = B unless `left`) for a triangle A; its other triangle is not read.

    >>> torch.linalg.solve_triangular(torch.tensor([[2.]]), torch.tensor([[1.]]), upper=True)
    tensor([[0.5000]])
    """
    a = check_tensor(A, "linalg_solve_triangular", "input")
    b = check_tensor(B, "linalg_solve_triangular", "B", 2)
    common.check_square(a, "linalg.solve_triangular")
    common.check_sides(a, b, left, "linalg.solve_triangular")
    common.lapack_only(a, "triangular_solve_cpu")
    what = SolveTriangular(bool(upper), bool(left), bool(unitriangular))
    if a.dtype != b.dtype:
        B = B.to(dtypes.of(a.dtype))
    return write_out("linalg_solve_triangular", (A, B), out, lambda: apply(what, A, B))


@implements("solve_triangular")
def _solve_triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    return apply(SolveTriangular(upper, True, unit), a, b)


def check_right_side(B: Any, A: Any, function: str) -> None:
    """PyTorch's checks of the older functions, which take the right side first."""
    a, b = A._array, B._array
    common.check_square(a, "")
    if b.shape[-2] != a.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {function}: each A matrix is {a.shape[-2]} by "
            f"{a.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{dtypes.of(b.dtype).scalar_type} and A of type {dtypes.of(a.dtype).scalar_type} "
            "instead."
        )
    common.lapack_only(a, function + "_cpu")
    broadcast_shape(b.shape[:-2], a.shape[:-2])


@op
class TriangularSolve(Op):
    """The older form: the right side first, A transposed at will, and A as a second result."""

    name = "triangular_solve"
    inputs, outputs = ("self", "A"), ("solution", "cloned_coefficient")
    saves = ("A", "solution")
    reads: ClassVar = {0: ("A",), 1: ("A", "solution")}
    params = ("upper", "transpose", "unitriangular")
    upper: bool = True
    transpose: bool = False
    unitriangular: bool = False

    def rule(self) -> SolveTriangular:
        """The same system as `linalg.solve_triangular` has it."""
        return SolveTriangular(self.upper != self.transpose, True, self.unitriangular)

    def turned(self, a: Any) -> Any:
        return mt(a) if self.transpose else a

    def forward(self, b: Any, a: Any) -> Any:
        return self.rule().forward(self.turned(a), b), by_columns(a, True)

    def vjp(self, node: Node, g: Any, a: Any, x: Any) -> Any:
        rule = self.rule()
        step = lapack.solve_triangular(mh(self.turned(a)), g[0], not rule.upper, rule.unit)
        if not node._needs_grad(1):
            return step, None
        return step, g[1] - self.turned(rule.read(step @ mh(x)))

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a = xs[1]
        t = None if ts[1] is None else self.turned(ts[1])
        moved = self.rule().jvp((t, ts[0]), (self.turned(a), xs[0]), y[0])
        return moved, a * 0 if ts[1] is None else ts[1]

    @staticmethod
    def samples(draw: Any) -> Any:
        for parameters in ((True,), (False,), (True, True), (False, True, True)):
            yield TriangularSolve(*parameters), draw.real(3, 2), draw.square(3, 3)
        yield TriangularSolve(True, True), draw.complex(2, 3), draw.complex_square(2, 2)


@function()
def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False,
    *, out: Any = None,
) -> Any:  # fmt: skip
    """The X of A X = b for a triangle A, and a copy of A. Deprecated, in PyTorch too: write
    `linalg.solve_triangular`.

    Args:
        input: the right-hand side, or a batch of them.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.triangular_solve(torch.ones(1, 1), torch.tensor([[2.]])).solution
    tensor([[0.5000]])
    """
    common.warn_outdated("triangular_solve", "solve_triangular")
    b, a = (
        check_tensor(input, "triangular_solve", "input"),
        check_tensor(A, "triangular_solve", "A", 2),
    )
    for name, array in (("b", b), ("A", a)):
        if array.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it "
                f"has {array.ndim} dimensions instead"
            )
    check_right_side(input, A, "triangular_solve")
    what = TriangularSolve(bool(upper), bool(transpose), bool(unitriangular))
    if a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shape(b.shape[:-2], a.shape[:-2])
        A = A.expand((*batch, *a.shape[-2:]))
    results = apply(what, input, A)
    return write_outs("triangular_solve", return_types.triangular_solve, results, out)
