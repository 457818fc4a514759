"""Words for linear algebra and Fourier transforms: what LAPACK and FFT libraries compute.

Part of the vocabulary, which exports them; nobody else imports this file. All work on batches of
matrices, in the last two axes. None looks for a reason to fail: where a matrix has no inverse or no
factor, `info` says so (LAPACK's number, counting from 1; 0 is success) and ops raise if they like.

Note [On the host]
    SciPy's LAPACK takes NumPy's arrays. Arrays on other devices are brought to the host and the
    results are taken back: right, if not quick.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from rushlight.arrays.host import from_host, to_host
from rushlight.arrays.kinds import word

__all__ = [
    "cholesky", "cofactors", "det", "eig", "eigh", "fourier", "householder_qr", "inv",
    "least_squares", "lu", "pinv", "qr", "row_order", "slogdet", "solve", "solve_triangular", "svd",
]  # fmt: skip

Array = Any
F = TypeVar("F", bound=Callable[..., Any])
_INFO: Final = np.int32


def _on_host(fn: F) -> F:
    """See Note [On the host]."""

    @functools.wraps(fn)
    def call(x: Any, *args: Any) -> Any:
        if isinstance(x, np.ndarray):
            return fn(x, *args)
        args = tuple(to_host(a) if hasattr(a, "get") else a for a in args)
        found = fn(to_host(x), *args)
        if isinstance(found, tuple):
            return tuple(from_host(np.asarray(y), x) for y in found)
        return from_host(np.asarray(found), x)

    return call  # type: ignore[return-value]  # the same function


def _lapack(name: str, x: Array) -> Any:
    """A routine of LAPACK's for the dtype of `x`."""
    return importlib.import_module("scipy.linalg.lapack").get_lapack_funcs((name,), (x,))[0]


def _fine(x: Array) -> Array:
    """No failures, for a batch of matrices."""
    return np.zeros(x.shape[:-2], _INFO)


def _each(x: Array) -> Array:
    """A batch of matrices in one axis, to walk over."""
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


@word
@_on_host
def cholesky(x: Array, upper: bool) -> tuple[Array, Array]:
    """The triangular factor, and `info`: the order of the first minor that is not positive. Only
    one triangle of `x` is read."""
    try:
        found = np.linalg.cholesky(x, upper=upper)
    except np.linalg.LinAlgError:
        potrf = _lapack("potrf", x)
    else:
        lost = np.isnan(np.diagonal(found, 0, -2, -1))  # not every LAPACK looks for them
        if not lost.any():
            return found, _fine(x)
        return found, np.where(lost.any(-1), lost.argmax(-1) + 1, 0).astype(_INFO)
    found, info = np.empty_like(_each(x)), []
    for i, one in enumerate(_each(x)):
        found[i], failed = potrf(one, lower=not upper, clean=1)
        info.append(failed)
    return found.reshape(x.shape), np.asarray(info, _INFO).reshape(x.shape[:-2])


@word
@_on_host
def inv(x: Array) -> tuple[Array, Array]:
    """The inverse, and `info`: which pivot is zero. A matrix without inverse gives infinities."""
    try:
        return np.linalg.inv(x), _fine(x)
    except np.linalg.LinAlgError:
        info = lu(x)[3]
    good = np.where((info == 0)[..., None, None], x, np.eye(x.shape[-1], dtype=x.dtype))
    return np.where((info == 0)[..., None, None], np.linalg.inv(good), np.inf).astype(x.dtype), info


@word
@_on_host
def solve(a: Array, b: Array) -> tuple[Array, Array]:
    """The matrix x with a @ x = b, and `info` as of `inv`. Batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    try:
        return np.linalg.solve(a, b), np.zeros(batch, _INFO)
    except np.linalg.LinAlgError:
        info = lu(a)[3]
    good = np.where((info == 0)[..., None, None], a, np.eye(a.shape[-1], dtype=a.dtype))
    found = np.where((info == 0)[..., None, None], np.linalg.solve(good, b), np.inf)
    return found.astype(a.dtype), np.broadcast_to(info, batch).copy()


@word
@_on_host
def solve_triangular(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """The matrix x with a @ x = b, of which one triangle of `a` is read (not its diagonal, which is
    1, if `unit`). A zero on the diagonal gives infinities. Batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*batch, *b.shape[-2:]), b.dtype)
    if out.size == 0:
        return out
    (trsm,) = importlib.import_module("scipy.linalg.blas").get_blas_funcs(("trsm",), (a, b))
    flat = _each(out)
    lefts = _each(np.broadcast_to(a, (*batch, *a.shape[-2:])))
    rights = _each(np.broadcast_to(b, out.shape))
    for i in range(len(flat)):
        # transposed, rows are the columns that BLAS wants: nothing is copied
        flat[i] = trsm(1, lefts[i].T, rights[i], lower=upper, trans_a=1, diag=unit)
    return out


@word
@_on_host
def det(x: Array) -> Array:
    """The determinant."""
    return np.asarray(np.linalg.det(x))


@word
@_on_host
def slogdet(x: Array) -> tuple[Array, Array]:
    """The determinant: its sign (complex: of magnitude 1) and the logarithm of its magnitude."""
    sign, log = np.linalg.slogdet(x)
    return np.asarray(sign), np.asarray(log)


@word
@_on_host
def cofactors(x: Array) -> Array:
    """The matrix of cofactors, which is det(x) · inv(x)ᵀ, for matrices without inverse too."""
    u, s, vh = np.linalg.svd(x)
    one = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([one, s[..., :-1]], -1), -1)[..., : s.shape[-1]]
    after = np.cumprod(np.concatenate([one, s[..., :0:-1]], -1), -1)[..., : s.shape[-1]]
    others = before * after[..., ::-1]
    turn = np.asarray(np.linalg.det(u) * np.linalg.det(vh))
    return turn[..., None, None] * (u.conj() @ (others[..., None] * vh.conj()))


@word
@_on_host
def eigh(x: Array, lower: bool) -> tuple[Array, Array]:
    """Eigenvalues in rising order and eigenvectors of a Hermitian matrix, of which one triangle is
    read. NaN where the matrix has them."""
    try:
        values, vectors = np.linalg.eigh(x, "L" if lower else "U")
        return values, vectors
    except np.linalg.LinAlgError:
        values, vectors = np.full(x.shape[:-1], np.nan, x.real.dtype), np.full_like(x, np.nan)
    if x.ndim > 2:
        for i, one in enumerate(x):
            values[i], vectors[i] = eigh(one, lower)
    return values, vectors


@word
@_on_host
def eig(x: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of any square matrix; always complex."""
    values, vectors = np.linalg.eig(x)
    wanted = np.result_type(x.dtype, np.complex64)
    return values.astype(wanted), vectors.astype(wanted)


@word
@_on_host
def svd(x: Array, full: bool) -> tuple[Array, Array, Array]:
    """Left singular vectors, singular values in falling order, right singular vectors as rows."""
    u, s, vh = np.linalg.svd(x, full)
    return u, s, vh


@word
@_on_host
def qr(x: Array, mode: str) -> tuple[Array, Array]:
    """Orthonormal columns and an upper triangle, "reduced" or "complete"; that alone ("r")."""
    if mode == "r":
        return np.empty((0,), x.dtype), np.linalg.qr(x, "r")
    q, r = np.linalg.qr(x, mode)  # type: ignore[call-overload]  # one of those words
    return q, r


@word
@_on_host
def householder_qr(x: Array) -> tuple[Array, Array]:
    """The same decomposition in LAPACK's own form: triangle and reflectors in one, factors."""
    h, tau = np.linalg.qr(x, "raw")
    return h.swapaxes(-1, -2).copy("C"), tau


@word
@_on_host
def lu(x: Array) -> tuple[Array, Array, Array, Array]:
    """Both triangles in one, the exchanges of rows (from 1), the order of rows that they lead to,
    and `info`: which pivot is zero."""
    m, n = x.shape[-2:]
    batch = x.shape[:-2]
    both = _each(x).copy("C")
    pivots = np.tile(np.arange(min(m, n), dtype=_INFO), (len(both), 1))
    info = np.zeros(len(both), _INFO)
    if x.size:
        getrf = _lapack("getrf", x)
        for i, one in enumerate(both):
            both[i], pivots[i], info[i] = getrf(one)
    pivots = (pivots + 1).reshape(*batch, min(m, n)).astype(_INFO)
    return both.reshape(x.shape), pivots, row_order(pivots, m), info.reshape(batch)


@word
@_on_host
def row_order(pivots: Array, n: int) -> Array:
    """Where each of `n` rows comes from after exchanges of rows (from 1)."""
    order = np.tile(np.arange(n), (*pivots.shape[:-1], 1))
    for a in range(pivots.shape[-1]):
        b = pivots[..., a : a + 1].astype(np.int64) - 1
        here, there = order[..., a : a + 1].copy(), np.take_along_axis(order, b, -1)
        np.put_along_axis(order, b, here, -1)
        order[..., a : a + 1] = there
    return order


@word
@_on_host
def pinv(x: Array) -> Array:
    """The pseudo-inverse; singular values below the largest times eps times the longer side are
    taken for zero."""
    return np.linalg.pinv(x, max(x.shape[-2:]) * np.finfo(x.dtype).eps)


@word
@_on_host
def least_squares(a: Array, b: Array, rcond: float) -> tuple[Array, Array, Array]:
    """The shortest x that makes a @ x - b shortest, the rank of `a`, its singular values.
    Batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    lefts = _each(np.broadcast_to(a, (*batch, *a.shape[-2:])))
    rights = _each(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    found = np.zeros((len(lefts), a.shape[-1], b.shape[-1]), b.dtype)
    ranks = np.zeros(len(lefts), np.int64)
    values = np.zeros((len(lefts), min(a.shape[-2:])), a.real.dtype)
    for i in range(len(lefts)):
        found[i], _, ranks[i], values[i] = np.linalg.lstsq(lefts[i], rights[i], rcond)
    return (
        found.reshape(*batch, *found.shape[1:]),
        ranks.reshape(batch),
        values.reshape(*batch, values.shape[-1]),
    )


@word
@_on_host
def fourier(x: Array, axis: int, inverse: bool) -> Array:
    """The sum of x[n] exp(∓2πi k n / N) along an axis (plus: inverse), not scaled. Complex."""
    if inverse:
        return np.fft.ifft(x, axis=axis, norm="forward")
    return np.fft.fft(x, axis=axis)
