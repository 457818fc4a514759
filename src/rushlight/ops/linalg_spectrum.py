"""Eigenvalues and singular values, and what is made of them: pseudo-inverse, least squares. The
public functions are in `linalg_spectrum_api`.

Note [Phases]
    Eigenvectors and singular vectors are known up to a sign, complex ones up to a phase. The rules
    give the derivative of anything that does not depend on that choice, as PyTorch's do.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.vocabulary import (
    concat,
    full,
    greater,
    imag,
    largest,
    maximum,
    pinv,
    real,
    total,
    where,
    window,
)
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.linalg_parts import (
    LinAlgError,
    columns,
    diag,
    diagonal_of,
    eye,
    hermitian,
    mh,
    on_subspace,
    positive,
    quotient,
    rows,
    square,
)
from rushlight.ops.reducing import raw_dtype
from rushlight.ops.table import op, word_for

__all__ = ["Eig", "Eigh", "Lstsq", "Pinv", "Svd"]

_SOME: Final = ("gels", "gelsd", "gelss")  # the drivers of `lstsq` that tell the residuals


def gaps(values: Any) -> Any:
    """values[j] - values[i] at (i, j), and 1 on the diagonal."""
    return where(eye(values, values.shape[-1]), 1, columns(values) - rows(values))


def off_diagonal(x: Any) -> Any:
    """A square matrix with zeros on its diagonal."""
    return where(eye(x, x.shape[-1]), 0, x)


def failed(function: str, x: Any) -> Exception:
    """PyTorch's error for a decomposition that LAPACK gave up."""
    where_ = "(Batch element 0): " if x.ndim > 2 else ""
    return LinAlgError(
        f"{function}: {where_}The algorithm failed to converge because the input matrix "
        "contained non-finite values."
    )


@op
class Eigh(Op):
    """Eigenvalues and eigenvectors of a Hermitian matrix; one of its triangles is read."""

    name = "linalg_eigh"
    inputs, outputs = ("A",), ("eigenvalues", "eigenvectors")
    saves, params = ("eigenvalues", "eigenvectors"), ("lower",)

    def __init__(self, lower: bool = True) -> None:
        super().__init__()
        self.lower = lower

    def forward(self, x: Any) -> Any:
        return v.eigh(x, self.lower)

    def vjp(self, node: Node, g: Any, values: Any, vectors: Any) -> Any:
        inside = mh(vectors) @ g[1]
        inside = quotient(off_diagonal(inside - mh(inside)) / 2, gaps(values))
        return (vectors @ (inside + diag(g[0])) @ mh(vectors),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        values, vectors = y
        inside = mh(vectors) @ ts[0] @ vectors
        moved = diagonal_of(inside)
        step = vectors @ quotient(off_diagonal(inside), gaps(values))
        return real(moved) if is_complex(moved) else moved, step

    @staticmethod
    def samples(draw: Any) -> Any:
        kind = on_subspace(Eigh, hermitian)
        yield kind(), positive(draw, 3, 3)
        yield kind(False), positive(draw, 2, 2, 2)
        yield kind(), draw.real(0, 0)


@op
class Eig(Op):
    """Eigenvalues and eigenvectors of any square matrix, all complex."""

    name = "linalg_eig"
    outputs, saves = ("eigenvalues", "eigenvectors"), ("eigenvalues", "eigenvectors")

    def forward(self, x: Any) -> Any:
        return v.eig(x)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        return RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")

    def vjp(self, node: Node, g: Any, values: Any, vectors: Any) -> Any:
        inside = mh(vectors) @ g[1]
        stretch = real(diagonal_of(inside))  # eigenvectors have length 1
        inside = inside - (mh(vectors) @ vectors) * columns(stretch)
        inside = quotient(off_diagonal(inside), conj(gaps(values))) + diag(g[0])
        return (v.solve(mh(vectors), inside @ mh(vectors))[0],)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        values, vectors = y
        t = v.cast(ts[0], raw_dtype(vectors))
        inside = v.solve(vectors, t @ vectors)[0]
        step = vectors @ quotient(off_diagonal(inside), gaps(values))
        stretch = real(total(conj(vectors) * step, (-2,), True))
        return diagonal_of(inside), step - vectors * stretch

    @staticmethod
    def samples(draw: Any) -> Any:
        # nearly symmetric: real eigenvalues, so that no phase is chosen
        yield Eig(), positive(draw, 3, 3) + 0.05 * draw.real(3, 3)
        yield Eig(), positive(draw, 2, 2, 2) + 0.05 * draw.real(2, 2, 2)
        yield Eig(), draw.real(0, 0)


@op
class Svd(Op):
    """A = U diag(S) Vᴴ. With `full_matrices` U and V are square, and the gradients of the columns
    that S does not reach are not looked at."""

    name = "linalg_svd"
    inputs, outputs, saves = ("A",), ("U", "S", "Vh"), ("U", "S", "Vh")
    params = ("full_matrices",)

    def __init__(self, full_matrices: bool = False) -> None:
        super().__init__()
        self.full_matrices = full_matrices

    def forward(self, x: Any) -> Any:
        return v.svd(x, self.full_matrices)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        return failed("linalg.svd", xs[0]) if "SVD" in str(error) else error

    def narrowed(self, u: Any, s: Any, vh: Any) -> tuple[Any, Any]:
        """U and V without the columns that S does not reach."""
        k = s.shape[-1]
        if self.full_matrices:
            u, vh = window(u, (..., slice(0, k))), window(vh, (..., slice(0, k), slice(None)))
        return u, mh(vh)

    def vjp(self, node: Node, g: Any, u: Any, s: Any, vh: Any) -> Any:
        right = self.narrowed(u, s, vh)
        gu, gv = self.narrowed(g[0], s, g[2])
        u, w = right
        m, n, k = u.shape[-2], w.shape[-2], s.shape[-1]
        of_u, of_v = mh(u) @ gu, mh(w) @ gv
        apart = gaps(s * s)
        inside = quotient(off_diagonal(of_u - mh(of_u)), apart) * columns(s)
        inside = inside + rows(s) * quotient(off_diagonal(of_v - mh(of_v)), apart) + diag(g[1])
        if is_complex(u):  # see Note [Phases]
            phase = imag(diagonal_of(of_u)) - imag(diagonal_of(of_v))
            inside = inside + 1j * diag(quotient(phase, 2 * s))
        found = u @ inside @ mh(w)
        if m > k:
            found = found + quotient(gu - u @ of_u, columns(s)) @ mh(w)
        if n > k:
            found = found + u @ mh(quotient(gv - w @ of_v, columns(s)))
        return (found,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        s, t = y[1], ts[0]
        u, w = self.narrowed(*y)
        m, n, k = u.shape[-2], w.shape[-2], s.shape[-1]
        inside = mh(u) @ t @ w
        apart = gaps(s * s)
        a, b = inside * columns(s), rows(s) * inside
        moved = diagonal_of(inside)
        of_u = quotient(off_diagonal(a + mh(a)), apart)
        of_v = quotient(off_diagonal(b + mh(b)), apart)
        if is_complex(moved):
            phase = 1j * diag(quotient(imag(moved), 2 * s))
            of_u, of_v, moved = of_u + phase, of_v - phase, real(moved)
        tu, tv = u @ of_u, w @ of_v
        if m > k:
            tu = tu + quotient(t @ w - u @ inside, columns(s))
        if n > k:
            tv = tv + quotient(mh(t) @ u - w @ mh(inside), columns(s))
        if self.full_matrices:
            tu = concat([tu, window(y[0], (..., slice(k, None))) * 0], -1)
            rest = window(mh(y[2]), (..., slice(k, None))) * 0
            tv = concat([tv, rest], -1)
        return tu, moved, mh(tv)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Svd(), square(draw, 3, 3)
        yield Svd(), draw.real(4, 2)
        yield Svd(), draw.real(2, 2, 3)
        yield Svd(True), square(draw, 3, 3)
        yield Svd(), draw.real(0, 2)


@op
class Pinv(Op):
    """The pseudo-inverse. Singular values up to max(atol, rtol · the largest) count as zero."""

    name = "linalg_pinv"
    inputs, saves = ("self", "atol", "rtol"), ("self", "result")
    params = ("hermitian",)

    def __init__(self, hermitian: bool = False) -> None:
        super().__init__()
        self.hermitian = hermitian

    def forward(self, x: Any, atol: Any, rtol: Any) -> Any:
        m, n = x.shape[-2:]
        if m == 0 or n == 0:
            return full(x, (*x.shape[:-2], n, m), 0, raw_dtype(x))
        if self.hermitian:
            values, u = v.eigh(x, True)
            sizes, vh = v.absolute(values), mh(u)
        else:
            u, values, vh = v.svd(x, False)
            sizes = values
        # tolerances may be arrays, one number a matrix
        atol = rows(atol) if hasattr(atol, "shape") else atol
        rtol = rows(rtol) if hasattr(rtol, "shape") else rtol
        least = maximum(atol, rtol * largest(sizes, (-1,), True))
        kept = greater(sizes, least)
        inverse = where(kept, 1 / where(kept, values, 1), 0)
        return mh(vh) @ (rows(inverse) * mh(u))

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        return failed("linalg.svd", xs[0]) if "SVD" in str(error) else error

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        return pinv_back(g, x, y), None, None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return pinv_forth(ts[0], xs[0], y)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Pinv(), square(draw, 3, 3), 0.0, 1e-15
        yield Pinv(), draw.real(4, 2), 0.0, 1e-15
        yield Pinv(), draw.real(2, 2, 3), 0.0, 1e-15
        yield Pinv(), draw.real(0, 2), 0.0, 1e-15
        yield Pinv(), draw.complex(3, 2), 0.0, 1e-15


def pinv_back(g: Any, x: Any, y: Any) -> Any:
    """The gradient of a matrix `x` from that of its pseudo-inverse `y`, of whatever rank."""
    gh, yh = mh(g), mh(y)
    found = -(yh @ g @ yh)
    left = gh @ y @ yh
    right = yh @ y @ gh
    return found + (left - x @ (y @ left)) + (right - (right @ y) @ x)


def pinv_forth(t: Any, x: Any, y: Any) -> Any:
    """The tangent of the pseudo-inverse."""
    th, yh = mh(t), mh(y)
    left, right = y @ yh @ th, th @ yh @ y
    return -(y @ t @ y) + (left - (left @ x) @ y) + (right - y @ (x @ right))


@op
class Lstsq(Op):
    """The X that makes A X - B shortest: its solution, residuals, and the rank of A."""

    name = "linalg_lstsq"
    inputs = ("self", "b")
    outputs = ("solution", "residuals", "rank", "singular_values")
    saves, params = ("self", "b", "solution"), ("rcond", "driver", "vector")

    def __init__(self, rcond: float, driver: str, vector: bool = False) -> None:
        super().__init__()
        self.rcond = rcond
        self.driver = driver
        self.vector = vector  # B has one dimension less

    def wide(self, b: Any) -> Any:
        return rows(b) if self.vector else b

    def slim(self, x: Any) -> Any:
        return window(x, (..., 0)) if self.vector else x

    def tells(self, a: Any) -> bool:
        """Whether residuals are told: they are of an overdetermined system of full rank."""
        return self.driver in _SOME and bool(a.shape[-2] > a.shape[-1])

    def forward(self, a: Any, b: Any) -> Any:
        b = self.wide(b)
        x, rank, values = v.least_squares(a, b, self.rcond)
        nothing = full(values, (0,), 0, raw_dtype(values))
        residuals = nothing
        if self.tells(a):
            gap = v.absolute(a @ x - b)
            residuals = total(gap * gap, (-2,), False)
        told = values if self.driver in ("gelsd", "gelss") else nothing
        return self.slim(x), residuals, rank, told

    def vjp(self, node: Node, g: Any, a: Any, b: Any, x: Any) -> Any:
        gx, b, x = self.wide(g[0]), self.wide(b), self.wide(x)
        y = pinv(a)
        ga = pinv_back(gx @ mh(b), a, y)
        gb = mh(y) @ gx
        if self.tells(a):
            gap = 2 * columns(g[1]) * (a @ x - b)
            ga, gb = ga + gap @ mh(x), gb - gap
        return ga, self.slim(gb)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        (a, b), (ta, tb) = xs, ts
        ta, tb = a * 0 if ta is None else ta, b * 0 if tb is None else tb
        x, residuals, rank, values = y
        b, tb, x = self.wide(b), self.wide(tb), self.wide(x)
        p = pinv(a)
        t = pinv_forth(ta, a, p) @ b + p @ tb
        if self.tells(a):
            step = conj(a @ x - b) * (ta @ x - tb)
            residuals = 2 * total(real(step) if is_complex(step) else step, (-2,), False)
        return self.slim(t), residuals, rank * 0, values * 0

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Lstsq(1e-15, "gelsy"), draw.real(4, 2), draw.real(4, 3)
        yield Lstsq(1e-15, "gelsy"), draw.real(2, 3), draw.real(2, 1)
        yield Lstsq(1e-15, "gels"), draw.real(2, 4, 2), draw.real(2, 4, 1)
        yield Lstsq(1e-15, "gels", True), draw.real(3, 2), draw.real(3)
        yield Lstsq(1e-15, "gels"), draw.complex(3, 2), draw.complex(3, 1)


# --- words ----------------------------------------------------------------------------------------
@word_for("eigh")
def _eigh(x: Any, lower: bool) -> Any:
    return apply(Eigh(lower), x)


@word_for("eig")
def _eig(x: Any) -> Any:
    return apply(Eig(), x)


@word_for("svd")
def _svd(x: Any, full: bool) -> Any:
    return apply(Svd(full), x)


@word_for("pinv")
def _pinv(x: Any) -> Any:
    longest = max(x.shape[-2:])
    return apply(Pinv(), x, 0.0, longest * dtypes.finfo(dtypes.of(x.array.dtype)).eps)
