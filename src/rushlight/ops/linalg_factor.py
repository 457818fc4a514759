"""Triangular factors: Cholesky's, QR and Householder's reflectors. LU is in `linalg_lu`; the public
functions are in `linalg_factor_api`."""

from __future__ import annotations

from typing import Any, Final

from rushlight.arrays import vocabulary as v
from rushlight.arrays.vocabulary import concat, triangle, window
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.linalg_parts import (
    eye,
    half_diagonal,
    hermitian,
    lower_solve,
    mh,
    mt,
    on_subspace,
    positive,
    square,
    upper_solve,
)
from rushlight.ops.reducing import raw_dtype
from rushlight.ops.table import op, word_for

__all__ = ["Cholesky", "CholeskyEx", "Geqrf", "HouseholderProduct", "Ormqr", "Qr"]

_ALL: Final = slice(None)


class Choleskies(Op):
    """The lower triangle L with L Lᴴ = A (Lᴴ if `upper`) of a positive matrix."""

    params = ("upper",)

    def __init__(self, upper: bool = False) -> None:
        super().__init__()
        self.upper = upper

    def forward(self, x: Any) -> Any:
        return v.cholesky(x, self.upper)

    def vjp(self, node: Node, g: Any, y: Any) -> Any:
        low, gl = (mh(y), mh(g[0])) if self.upper else (y, g[0])
        inside = mh(low) @ gl
        middle = (triangle(inside, 0, True) + mh(triangle(inside, -1, True))) / 2
        left = upper_solve(mh(low), middle)
        return (mh(upper_solve(mh(low), mh(left))),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        low = mh(y[0]) if self.upper else y[0]
        left = lower_solve(low, ts[0])
        middle = mh(lower_solve(low, mh(left)))
        step = low @ half_diagonal(triangle(middle, 0, True))
        return mh(step) if self.upper else step, y[1] * 0


@op
class CholeskyEx(Choleskies):
    """As `torch.linalg` records it."""

    name, node = "linalg_cholesky_ex", "LinalgCholeskyExBackward0"
    outputs, saves = ("L", "info"), ("L",)

    @staticmethod
    def samples(draw: Any) -> Any:
        kind = on_subspace(CholeskyEx, hermitian)
        yield kind(), positive(draw, 3, 3)
        yield kind(True), positive(draw, 2, 2, 2)
        yield kind(), draw.real(0, 0)
        yield kind(), positive(draw, 3, 3, complex=True)
        yield kind(True), positive(draw, 2, 2, complex=True)


@op
class Cholesky(Choleskies):
    """As `torch.cholesky` records it."""

    name, outputs, saves = "cholesky", ("result", "info"), ("result",)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield on_subspace(Cholesky, hermitian)(), positive(draw, 3, 3)


@op
class Qr(Op):
    """A = Q R with orthonormal columns in Q and an upper triangle R.

    Note [Wide matrices]
        With fewer rows than columns, A = [X Y] and R = [U V]: X = Q U is square, and V = Qᴴ Y.
    """

    name = "linalg_qr"
    inputs, outputs, saves = ("A",), ("Q", "R"), ("Q", "R")
    params = ("mode",)

    def __init__(self, mode: str = "reduced") -> None:
        super().__init__()
        self.mode = mode

    def forward(self, x: Any) -> Any:
        return v.qr(x, self.mode)

    def refuse(self, shape: tuple[int, ...]) -> None:
        m, n = shape[-2:]
        if self.mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                "Please use linalg.qr(A, mode='reduced') if you are going to differentiate "
                "through linalg.qr."
            )
        if self.mode == "complete" and m > n:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
            )

    def vjp(self, node: Node, g: Any, q: Any, r: Any) -> Any:
        shapes = node.shapes
        assert shapes is not None
        self.refuse(shapes[0])
        gq, gr = g
        m, n = shapes[0][-2:]
        if m >= n:
            return (_qr_back(gq, gr, q, r),)
        gv, gu = window(gr, (..., slice(m, n))), window(gr, (..., slice(0, m)))
        right, u = window(r, (..., slice(m, n))), window(r, (..., slice(0, m)))
        return (concat([_qr_back(gq + q @ right @ mh(gv), gu, q, u), q @ gv], -1),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        self.refuse(xs[0].shape)
        (q, r), t = y, ts[0]
        m, n = t.shape[-2:]
        if m >= n:
            return _qr_forth(t, q, r)
        right, u = window(r, (..., slice(m, n))), window(r, (..., slice(0, m)))
        tq, tu = _qr_forth(window(t, (..., slice(0, m))), q, u)
        tv = mh(q) @ (window(t, (..., slice(m, n))) - tq @ right)
        return tq, concat([tu, tv], -1)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Qr(), square(draw, 3, 3)
        yield Qr(), draw.real(4, 2)
        yield Qr(), draw.real(2, 4)
        yield Qr("complete"), square(draw, 2, 2, 2)
        yield Qr("complete"), draw.real(2, 3)
        yield Qr(), draw.real(0, 2)
        yield Qr(), draw.complex(3, 2)
        yield Qr(), draw.complex(2, 3)


def _qr_back(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    """The gradient of a matrix that is no wider than tall."""
    middle = half_diagonal(triangle(gr @ mh(r) - mh(q) @ gq, 0, False))
    whole = gq + q @ (middle + mh(middle))
    return mh(upper_solve(r, mh(whole)))


def _qr_forth(t: Any, q: Any, r: Any) -> Any:
    """The tangents of Q and R for such a matrix."""
    step = mt(lower_solve(mt(r), mt(t)))
    inside = mh(q) @ step
    upper = half_diagonal(triangle(inside + mh(inside), 0, False))
    return step - q @ upper, upper @ r


# --- reflectors -----------------------------------------------------------------------------------
class Geqrf(Op):
    """QR as LAPACK leaves it. It has no derivative, in PyTorch neither, so the laws of the table
    are not for it."""

    name, outputs = "geqrf", ("a", "tau")

    def forward(self, x: Any) -> Any:
        return v.householder_qr(x)

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


class Reflectors(Op):
    """An op of Q = H₁ H₂ …, where Hᵢ = 1 - τᵢ vᵢ vᵢᴴ, and vᵢ stands below the diagonal of A."""

    def columns(self, a: Any, tau: Any) -> list[tuple[Any, Any]]:
        """The reflectors: each vᵢ as a column, and τᵢ."""
        m, n = a.shape[-2:]
        one = v.cast(eye(a, max(m, n)), raw_dtype(a))
        ones = window(one, (slice(0, m), slice(0, n)))
        below = triangle(a, -1, True) + ones
        return [
            (window(below, (..., slice(i, i + 1))), window(tau, (..., slice(i, i + 1), None)))
            for i in range(tau.shape[-1])
        ]

    def reflected(self, found: list[tuple[Any, Any]], x: Any, adjoint: bool = False) -> list[Any]:
        """Q x, and what it is before each reflection: [x, Hₖ x, Hₖ₋₁ Hₖ x, …, Q x]."""
        steps = [x]
        for w, t in found if adjoint else reversed(found):
            x = x - (conj(t) if adjoint else t) * (w @ (mh(w) @ x))
            steps.append(x)
        return steps

    def pulled(self, a: Any, tau: Any, x: Any, g: Any, adjoint: bool = False) -> tuple[Any, ...]:
        """The gradients of A, τ and x from that of Q x (Qᴴ x if `adjoint`)."""
        found = self.columns(a, tau)
        steps = self.reflected(found, x, adjoint)
        k = len(found)
        gvs, gts = [], []
        order = range(k - 1, -1, -1) if adjoint else range(k)
        for at, i in enumerate(order):  # the last reflection first
            w, t = found[i]
            before = steps[k - 1 - at]
            s = conj(t) if adjoint else t
            seen, back = mh(w) @ before, mh(w) @ g
            gs = -v.total(back * conj(seen), (-1,), True)
            gts.append(conj(gs) if adjoint else gs)
            gvs.append(-(conj(s) * (g @ mh(seen)) + s * (before @ mh(back))))
            g = g - conj(s) * (w @ back)
        if adjoint:
            gvs, gts = gvs[::-1], gts[::-1]
        n = a.shape[-1]
        if k == 0:
            return a * 0, tau, g
        left = triangle(concat(gvs, -1), -1, True)
        if k < n:
            left = concat([left, window(a, (..., slice(k, n))) * 0], -1)
        return left, window(concat(gts, -2), (..., 0)), g

    def pushed(self, ts: tuple[Any, ...], xs: tuple[Any, ...], adjoint: bool) -> Any:
        """The tangent of Q x (Qᴴ x if `adjoint`) from those of A, τ and x."""
        (ta, ttau, tx), (a, tau, x) = ts, xs
        below = None if ta is None else triangle(ta, -1, True)
        found = list(enumerate(self.columns(a, tau)))
        t = x * 0 if tx is None else tx
        for i, (w, factor) in found if adjoint else reversed(found):
            part = (..., slice(i, i + 1))
            s = conj(factor) if adjoint else factor
            moved = w @ (mh(w) @ t)
            if below is not None:
                tw = window(below, part)
                moved = moved + tw @ (mh(w) @ x) + w @ (mh(tw) @ x)
            t = t - s * moved
            if ttau is not None:
                ts = window(ttau, (*part, None))
                t = t - (conj(ts) if adjoint else ts) * (w @ (mh(w) @ x))
            x = x - s * (w @ (mh(w) @ x))
        return t


@op
class HouseholderProduct(Reflectors):
    """The first columns of Q."""

    name = "linalg_householder_product"
    inputs, saves = ("input", "tau"), ("input", "tau")

    def start(self, a: Any) -> Any:
        m, n = a.shape[-2:]
        one = v.cast(eye(a, m), raw_dtype(a))
        return v.broadcast(window(one, (_ALL, slice(0, n))), a.shape)

    def forward(self, a: Any, tau: Any) -> Any:
        return v.copy(self.reflected(self.columns(a, tau), self.start(a))[-1])

    def vjp(self, node: Node, g: Any, a: Any, tau: Any) -> Any:
        return self.pulled(a, tau, self.start(a), g)[:2]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.pushed((ts[0], ts[1], None), (*xs, self.start(xs[0])), False)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield HouseholderProduct(), draw.real(4, 3), draw.real(3)
        yield HouseholderProduct(), draw.real(2, 3, 3), draw.real(2, 2)
        yield HouseholderProduct(), draw.real(3, 2), draw.real(0)
        yield HouseholderProduct(), draw.complex(3, 2), draw.complex(2)


@op
class Ormqr(Reflectors):
    """Q x (x Q unless `left`), or with Qᴴ if `transpose`."""

    name, params = "ormqr", ("left", "transpose")
    inputs, saves = ("self", "tau", "other"), ("self", "tau", "other")

    def __init__(self, left: bool = True, transpose: bool = False) -> None:
        super().__init__()
        self.left = left
        self.transpose = transpose
        self.adjoint = transpose == left  # x Q is (Qᴴ xᴴ)ᴴ

    def forward(self, a: Any, tau: Any, x: Any) -> Any:
        if not self.left:
            x = mh(x)
        y = self.reflected(self.columns(a, tau), x, self.adjoint)[-1]
        return v.copy(y if self.left else mh(y))

    def vjp(self, node: Node, g: Any, a: Any, tau: Any, x: Any) -> Any:
        if self.left:
            return self.pulled(a, tau, x, g, self.adjoint)
        ga, gt, gx = self.pulled(a, tau, mh(x), mh(g), self.adjoint)
        return ga, gt, mh(gx)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a, tau, x = xs
        if self.left:
            return self.pushed(ts, xs, self.adjoint)
        t = None if ts[2] is None else mh(ts[2])
        return mh(self.pushed((ts[0], ts[1], t), (a, tau, mh(x)), self.adjoint))

    @staticmethod
    def samples(draw: Any) -> Any:
        for left in (True, False):
            shape = (3, 4) if left else (4, 3)
            for transpose in (False, True):
                yield Ormqr(left, transpose), draw.real(3, 2), draw.real(2), draw.real(*shape)
                xs = draw.complex(3, 2), draw.complex(2), draw.complex(*shape)
                yield Ormqr(left, transpose), *xs


# --- words ----------------------------------------------------------------------------------------
@word_for("cholesky")
def _cholesky(x: Any, upper: bool) -> Any:
    return apply(CholeskyEx(upper), x)


@word_for("qr")
def _qr(x: Any, mode: str) -> Any:
    return apply(Qr(mode), x)
