"""Linear systems: inverses, solutions, determinants. The public functions are in
`linalg_solve_api`."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.arrays import vocabulary as v
from rushlight.arrays.vocabulary import copy, imag, inv, real, solve, total, triangle, window
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.linalg_parts import (
    lower,
    lower_solve,
    mh,
    mt,
    on_subspace,
    rows,
    square,
    upper_solve,
)
from rushlight.ops.table import op, word_for

__all__ = [
    "CholeskyInverse", "CholeskySolve", "Cofactors", "Det", "Inv", "Slogdet", "Solve",
    "SolveTriangular", "TriangularSolve",
]  # fmt: skip


@op
class Inv(Op):
    """The inverse of a square matrix."""

    name, node = "linalg_inv_ex", "LinalgInvExBackward0"
    inputs, outputs, saves = ("A",), ("inverse", "info"), ("inverse",)

    def forward(self, x: Any) -> Any:
        return inv(x)

    def vjp(self, node: Node, g: Any, y: Any) -> Any:
        return (-(mh(y) @ g[0] @ mh(y)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return -(y[0] @ ts[0] @ y[0]), y[1] * 0

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Inv(), square(draw, 3, 3)
        yield Inv(), square(draw, 2, 1, 2, 2)
        yield Inv(), draw.real(0, 0)
        yield Inv(), square(draw, 2, 2, complex=True)


@op
class Solve(Op):
    """The X of A X = B (X A = B unless `left`); with `vector`, B has one dimension less."""

    name, node = "linalg_solve_ex", "LinalgSolveExBackward0"
    inputs, outputs, saves = ("A", "B"), ("result", "info"), ("A", "result")
    reads: ClassVar = {0: ("A", "result"), 1: ("A",)}
    params = ("left", "vector")

    def __init__(self, left: bool = True, vector: bool = False) -> None:
        super().__init__()
        self.left = left
        self.vector = vector

    def solved(self, a: Any, b: Any) -> Any:
        if self.left:
            return solve(a, b)
        x, info = solve(mt(a), mt(b))
        return mt(x), info

    def forward(self, a: Any, b: Any) -> Any:
        if not self.vector:
            return self.solved(a, b)
        x, info = self.solved(a, rows(b))
        return window(x, (..., 0)), info

    def vjp(self, node: Node, g: Any, a: Any, x: Any) -> Any:
        g = rows(g[0]) if self.vector else g[0]
        step, _ = self.solved(mh(a), g)
        ga: Any = None
        if node.needs(0):
            turned = mh(rows(x) if self.vector else x)
            ga = -(step @ turned if self.left else turned @ step)
        return ga, window(step, (..., 0)) if self.vector else step

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x = rows(y[0]) if self.vector else y[0]
        t: Any = None if ts[1] is None else rows(ts[1]) if self.vector else ts[1]
        if ts[0] is not None:
            moved = ts[0] @ x if self.left else x @ ts[0]
            t = -moved if t is None else t - moved
        step, _ = self.solved(xs[0], t)
        return window(step, (..., 0)) if self.vector else step, y[1] * 0

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Solve(), square(draw, 3, 3), draw.real(3, 2)
        yield Solve(left=False), square(draw, 3, 3), draw.real(2, 3)
        yield Solve(vector=True), square(draw, 3, 3), draw.real(3)
        yield Solve(vector=True), square(draw, 2, 2, 2), draw.real(2)
        yield Solve(), square(draw, 2, 1, 2, 2), draw.real(3, 2, 2)
        yield Solve(), draw.real(0, 0), draw.real(0, 2)
        yield Solve(), square(draw, 2, 2, complex=True), draw.complex(2, 3)
        yield Solve(left=False), square(draw, 2, 2, complex=True), draw.complex(3, 2)


@op
class SolveTriangular(Op):
    """The X of A X = B (X A = B unless `left`) for a triangle A, with ones on it if `unit`."""

    name, node = "linalg_solve_triangular", "LinalgSolveTriangularBackward0"
    inputs, saves = ("self", "B"), ("self", "result")
    reads: ClassVar = {0: ("self", "result"), 1: ("self",)}
    params = ("upper", "left", "unit")

    def __init__(self, upper: bool, left: bool = True, unit: bool = False) -> None:
        super().__init__()
        self.upper = upper
        self.left = left
        self.unit = unit

    def read(self, a: Any) -> Any:
        """The part of A that is read."""
        return triangle(a, (1 if self.upper else -1) if self.unit else 0, not self.upper)

    def forward(self, a: Any, b: Any) -> Any:
        if self.left:
            return v.solve_triangular(a, b, self.upper, self.unit)
        return mt(v.solve_triangular(mt(a), mt(b), not self.upper, self.unit))

    def vjp(self, node: Node, g: Any, a: Any, x: Any) -> Any:
        if self.left:
            step = v.solve_triangular(mh(a), g, not self.upper, self.unit)
        else:
            step = mt(v.solve_triangular(conj(a), mt(g), self.upper, self.unit))
        if not node.needs(0):
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
        yield SolveTriangular(True), square(draw, 3, 3), draw.real(3, 2)
        yield SolveTriangular(False), square(draw, 3, 3), draw.real(3, 2)
        yield SolveTriangular(True, False), square(draw, 3, 3), draw.real(2, 3)
        yield SolveTriangular(False, True, True), square(draw, 3, 3), draw.real(3, 2)
        yield SolveTriangular(True), square(draw, 2, 1, 2, 2), draw.real(3, 2, 2)
        yield SolveTriangular(True), draw.real(0, 0), draw.real(0, 2)
        yield SolveTriangular(True), square(draw, 2, 2, complex=True), draw.complex(2, 3)
        yield SolveTriangular(True, False), square(draw, 2, 2, complex=True), draw.complex(3, 2)


@op
class TriangularSolve(Op):
    """The older form: the right side first, A transposed at will, and A as a second result."""

    name = "triangular_solve"
    inputs, outputs = ("self", "A"), ("solution", "cloned_coefficient")
    saves = ("A", "solution")
    reads: ClassVar = {0: ("A",), 1: ("A", "solution")}
    params = ("upper", "transpose", "unitriangular")

    def __init__(self, upper: bool = True, transpose: bool = False, unit: bool = False) -> None:
        super().__init__()
        self.upper = upper
        self.transpose = transpose
        self.unitriangular = unit

    def rule(self) -> SolveTriangular:
        """The same system as `linalg.solve_triangular` has it."""
        return SolveTriangular(self.upper != self.transpose, True, self.unitriangular)

    def turned(self, a: Any) -> Any:
        return mt(a) if self.transpose else a

    def forward(self, b: Any, a: Any) -> Any:
        return self.rule().forward(self.turned(a), b), copy(a)

    def vjp(self, node: Node, g: Any, a: Any, x: Any) -> Any:
        rule = self.rule()
        step = v.solve_triangular(mh(self.turned(a)), g[0], not rule.upper, rule.unit)
        if not node.needs(1):
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
            yield TriangularSolve(*parameters), draw.real(3, 2), square(draw, 3, 3)
        yield TriangularSolve(True, True), draw.complex(2, 3), square(draw, 2, 2, complex=True)


class Factored(Op):
    """An op of a triangular factor L (U = Lᴴ if `upper`) of a positive matrix K = L Lᴴ."""

    params = ("upper",)

    def __init__(self, upper: bool = False) -> None:
        super().__init__()
        self.upper = upper

    def solved(self, factor: Any, b: Any) -> Any:
        """inv(K) @ b."""
        if self.upper:
            return upper_solve(factor, lower_solve(mh(factor), b))
        return upper_solve(mh(factor), lower_solve(factor, b))

    def pulled(self, gk: Any, factor: Any) -> Any:
        """The gradient of the factor from the gradient of K. PyTorch gives both triangles of it."""
        both = gk + mh(gk)
        return factor @ both if self.upper else both @ factor

    def pushed(self, t: Any, factor: Any) -> Any:
        """The tangent of K from that of the factor."""
        half = mh(t) @ factor if self.upper else t @ mh(factor)
        return half + mh(half)


@op
class CholeskySolve(Factored):
    """The X of K X = B."""

    name = "cholesky_solve"
    inputs, saves = ("self", "input2"), ("input2", "result")

    def forward(self, b: Any, factor: Any) -> Any:
        return self.solved(factor, b)

    def vjp(self, node: Node, g: Any, factor: Any, x: Any) -> Any:
        step = self.solved(factor, g)
        return step, self.pulled(-(step @ mh(x)), factor) if node.needs(1) else None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        if ts[1] is not None:
            moved = self.pushed(ts[1], xs[1]) @ y
            t = -moved if t is None else t - moved
        return self.solved(xs[1], t)

    @staticmethod
    def samples(draw: Any) -> Any:
        low, high = on_subspace(CholeskySolve, lower, 1), on_subspace(CholeskySolve, _upper, 1)
        yield low(), draw.real(3, 2), lower(square(draw, 3, 3))
        yield high(True), draw.real(3, 2), _upper(square(draw, 3, 3))
        yield low(), draw.real(2, 2, 1), lower(square(draw, 2, 2))
        yield low(), draw.complex(2, 3), lower(square(draw, 2, 2, complex=True))


@op
class CholeskyInverse(Factored):
    """The inverse of K."""

    name, saves = "cholesky_inverse", ("self", "result")

    def forward(self, factor: Any) -> Any:
        if self.upper:
            half, _ = inv(triangle(factor, 0, False))
            return half @ mh(half)
        half, _ = inv(triangle(factor, 0, True))
        return mh(half) @ half

    def vjp(self, node: Node, g: Any, factor: Any, y: Any) -> Any:
        return (self.pulled(-(y @ g @ y), factor),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return -(y @ self.pushed(ts[0], xs[0]) @ y)

    @staticmethod
    def samples(draw: Any) -> Any:
        low, high = on_subspace(CholeskyInverse, lower), on_subspace(CholeskyInverse, _upper)
        yield low(), lower(square(draw, 3, 3))
        yield high(True), _upper(square(draw, 2, 2, 2))
        yield low(), lower(square(draw, 2, 2, complex=True))


def _upper(x: Any) -> Any:
    return triangle(x, 0, False)


# --- determinants ---------------------------------------------------------------------------------
@op
class Cofactors(Op):
    """The derivative of the determinant by each element."""

    name, saves = "linalg_cofactors", ("self", "result")

    def forward(self, x: Any) -> Any:
        return v.cofactors(x)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        turned = mh(inv(x)[0])
        whole = total(conj(y) * g, (-2, -1), True)
        return (turned * whole - conj(y) @ mt(g) @ turned,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        turned = mt(inv(xs[0])[0])
        return y * total(turned * ts[0], (-2, -1), True) - turned @ mt(ts[0]) @ y

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Cofactors(), square(draw, 3, 3)
        yield Cofactors(), square(draw, 2, 2, 2, complex=True)
        yield Cofactors(), draw.real(1, 1)


@op
class Det(Op):
    """The determinant; its gradient is right for matrices without inverse too."""

    name = "linalg_det"
    inputs, saves = ("A",), ("A",)

    def forward(self, x: Any) -> Any:
        return v.det(x)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (rows(rows(g)) * conj(v.cofactors(x)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return total(v.cofactors(xs[0]) * ts[0], (-2, -1), False)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Det(), square(draw, 3, 3)
        yield Det(), square(draw, 2, 1, 2, 2)
        yield Det(), draw.real(0, 0)
        yield Det(), square(draw, 2, 2, complex=True)


@op
class Slogdet(Op):
    """The sign of the determinant and the logarithm of its magnitude."""

    name = "linalg_slogdet"
    inputs, outputs, saves = ("A",), ("sign", "logabsdet"), ("A", "sign")

    def forward(self, x: Any) -> Any:
        return v.slogdet(x)

    def vjp(self, node: Node, g: Any, x: Any, sign: Any) -> Any:
        step = g[1]
        if is_complex(sign):  # a phase moves; a sign of 1 or -1 does not
            step = step - 1j * imag(conj(g[0]) * sign)
        return (rows(rows(step)) * mh(inv(x)[0]),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        step = total(mt(inv(xs[0])[0]) * ts[0], (-2, -1), False)
        if is_complex(step):
            return 1j * imag(step) * y[0], real(step)
        return step * 0, step

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Slogdet(), square(draw, 3, 3)
        yield Slogdet(), square(draw, 2, 1, 2, 2)
        yield Slogdet(), draw.real(0, 0)
        yield Slogdet(), square(draw, 2, 2, complex=True)


# --- words ----------------------------------------------------------------------------------------
@word_for("inv")
def _inv(x: Any) -> Any:
    return apply(Inv(), x)


@word_for("solve")
def _solve(a: Any, b: Any) -> Any:
    return apply(Solve(), a, b)


@word_for("solve_triangular")
def _solve_triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    return apply(SolveTriangular(upper, True, unit), a, b)


@word_for("det")
def _det(x: Any) -> Any:
    return apply(Det(), x)


@word_for("slogdet")
def _slogdet(x: Any) -> Any:
    return apply(Slogdet(), x)


@word_for("cofactors")
def _cofactors(x: Any) -> Any:
    return apply(Cofactors(), x)
