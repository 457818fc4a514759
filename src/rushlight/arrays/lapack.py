"""Primitives of linear algebra and Fourier transforms: what LAPACK and FFT libraries compute.

Part of the vocabulary. All work on batches of matrices, in the last two axes. None looks for a
reason to fail: where a matrix has no inverse or no factor, `info` says so (LAPACK's number,
counting from 1; 0 is success) and ops raise if they like.

Note [On the host]
    SciPy's LAPACK takes NumPy's arrays. Arrays on other devices are brought to the host and the
    results are taken back: right, if not quick.

Note [Numbers that are not finite]
    What iterates (singular values, eigenvalues) may do so for ever on infinities, deep inside
    LAPACK, where no signal is heard. So such matrices never get there: one of a batch is set aside
    and its results are NaN, or the word raises `Unfit` where PyTorch does. What eliminates (LU,
    Cholesky) ends, but LAPACK's fast kernels leave out steps when a pivot is not finite, and finite
    numbers come out that mean nothing: such matrices are eliminated here, column by column.

Note [Columns]
    Matrices come out as LAPACK and PyTorch keep them, column after column, whatever the order of
    the input; batches of them in row order.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from rushlight.arrays.host import from_host, to_host
from rushlight.arrays.vocabulary import primitive

Array = Any
F = TypeVar("F", bound=Callable[..., Any])
_INFO: Final = np.int32


class Unfit(np.linalg.LinAlgError):
    """A matrix that is not finite, where PyTorch refuses one: which of a batch, of which input."""

    def __init__(self, bad: Array, which: int = 0) -> None:
        super().__init__("the matrix contains numbers that are not finite")
        self.member = int(bad.reshape(-1).argmax())
        self.which = which


def _on_host(fn: F) -> F:
    """See Note [On the host]."""

    @functools.wraps(fn)
    def call(x: Any, *args: Any) -> Any:
        if isinstance(x, np.ndarray):
            return fn(x, *args)
        args = tuple(to_host(a) if hasattr(a, "get") else a for a in args)
        found = fn(to_host(x), *args)
        if isinstance(found, tuple):
            return tuple(_sent(np.asarray(y), x) for y in found)
        return _sent(np.asarray(found), x)

    return call  # type: ignore[return-value]  # the same function


def _sent(y: Array, like: Array) -> Array:
    """A result on the device of `like`, in the order it has: batches of columns would lose it."""
    if y.ndim > 2 and not y.flags.c_contiguous:
        return _transpose(from_host(_transpose(y), like))
    return from_host(y, like)


def _lapack(name: str, x: Array) -> Any:
    """A routine of LAPACK's for the dtype of `x`."""
    return importlib.import_module("scipy.linalg.lapack").get_lapack_funcs((name,), (x,))[0]


def _fine(x: Array) -> Array:
    """No failures, for a batch of matrices."""
    return np.zeros(x.shape[:-2], _INFO)


def _each(x: Array) -> Array:
    """A batch of matrices in one axis, to walk over."""
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


def _transpose(x: Array) -> Array:
    """Matrices, transposed."""
    return x.swapaxes(-1, -2)


def _columns(x: Array) -> Array:
    """See Note [Columns]; copied only if need be."""
    if x.ndim == 2:
        return np.asfortranarray(x)
    return _transpose(np.ascontiguousarray(_transpose(x)))


def _room(shape: tuple[int, ...], dtype: Any) -> Array:
    """Memory for matrices; see Note [Columns]."""
    return _transpose(np.empty((*shape[:-2], shape[-1], shape[-2]), dtype))


# --- numbers that are not finite ------------------------------------------------------------------
def _finite(x: Array) -> bool:
    """Whether all numbers are finite. The sum of squares says it fastest, unless it overflows."""
    return math.isfinite(np.vdot(x, x).real) or bool(np.isfinite(x).all())


def _some(bad: Array) -> Array:
    """In which matrices of a batch something is `bad`."""
    return np.asarray(bad.any((-2, -1)))


def _replace(x: Array, bad: Array, value: Any = 0) -> Array:
    """Matrices with a harmless one in place of each that is `bad`."""
    return np.where(bad[..., None, None], value, x).astype(x.dtype, copy=False)


def _set_aside(x: Array, bad: Array, compute: Callable[[Array], tuple[Array, ...]]) -> Any:
    """The results of a batch, NaN for its `bad` members."""
    found = compute(_replace(x, bad))
    for y in found:
        y[bad] = np.nan
    return found


def _read(x: Array, lower: bool) -> Array:
    """The triangle of a Hermitian matrix that is read; its diagonal is real."""
    kept = np.tril(x) if lower else np.triu(x)
    if kept.dtype.kind == "c":
        at = np.arange(x.shape[-1])
        kept.imag[..., at, at] = 0
    return kept


def _cholesky_of(x: Array) -> tuple[Array, int]:
    """Cholesky's lower factor of one matrix, of which the lower triangle is read, and `info`."""
    y = np.tril(x)
    for j in range(len(y)):
        row = y[j, :j]
        pivot = (y[j, j] - row @ row.conj()).real
        y[j, j] = pivot
        if not pivot > 0:
            return y, j + 1
        y[j, j] = np.sqrt(pivot)
        y[j + 1 :, j] = (y[j + 1 :, j] - y[j + 1 :, :j] @ row.conj()) / y[j, j]
    return y, 0


def _lu_of(x: Array) -> tuple[Array, Array, int]:
    """Both triangles of one matrix, the exchanges of rows (from 0), and `info`. A NaN is chosen as
    a pivot only where it stands already, as LAPACK has it."""
    y = x.copy()
    k = min(y.shape)
    pivots, info = np.arange(k, dtype=_INFO), 0
    for j in range(k):
        size = np.abs(y[j:, j])
        if not np.isnan(size[0]):
            pivots[j] = j + np.where(np.isnan(size), -1, size).argmax()
        y[[j, pivots[j]]] = y[[pivots[j], j]]
        if y[j, j] == 0:
            info = info or j + 1
        else:
            y[j + 1 :, j] /= y[j, j]
        y[j + 1 :, j + 1 :] -= np.outer(y[j + 1 :, j], y[j, j + 1 :])
    return y, pivots, info


def _solution_of(a: Array, b: Array) -> tuple[Array, int]:
    """The matrix x with a @ x = b, and `info`, of one `a`. A NaN spoils all of it."""
    if np.isnan(a).any():
        return np.full_like(b, np.nan), 0
    both, pivots, info = _lu_of(a)
    if info:
        return np.full_like(b, np.inf), info
    x = b.copy()
    for j, k in enumerate(pivots):
        x[[j, k]] = x[[k, j]]
    for j in range(len(x)):
        x[j + 1 :] -= np.outer(both[j + 1 :, j], x[j])
    for j in reversed(range(len(x))):
        x[j] /= both[j, j]
        x[:j] -= np.outer(both[:j, j], x[j])
    return x, 0


def _diagonals(x: Array, bad: Array) -> tuple[Array, Array]:
    """Of the `bad` members of a batch: the diagonals of U, and the sign of their exchanges."""
    rows, signs = [], []
    for one in x[bad]:
        # PyTorch eliminates the transpose of a real matrix, which it need not copy
        both, pivots, _ = _lu_of(one.T if x.dtype.kind == "f" else one)
        rows.append(np.diagonal(both))
        signs.append((-1.0) ** int((pivots != np.arange(len(pivots))).sum()))
    return np.asarray(rows), np.asarray(signs, x.real.dtype)


# --- systems --------------------------------------------------------------------------------------
@primitive
@_on_host
def cholesky(x: Array, upper: bool) -> tuple[Array, Array]:
    """The triangular factor, and `info`: the order of the first minor that is not positive. Only
    one triangle of `x` is read."""
    if not _finite(x):
        return _unfit_cholesky(x, upper)
    try:
        # the other factor of the transpose is the same, in columns
        found, info = _transpose(np.linalg.cholesky(_transpose(x), upper=not upper)), _fine(x)
    except np.linalg.LinAlgError:
        potrf = _lapack("potrf", x)
        flat, told = _room((math.prod(x.shape[:-2]), *x.shape[-2:]), x.dtype), []
        for i, one in enumerate(_each(x)):
            flat[i], failed = potrf(one, lower=not upper, clean=1)
            told.append(failed)
        found, info = _unfold(flat, x), np.asarray(told, _INFO).reshape(x.shape[:-2])
    lost = np.isnan(np.diagonal(found, 0, -2, -1))  # not every LAPACK looks for them
    if lost.any():
        missed = (info == 0) & lost.any(-1)
        info = np.where(missed, lost.argmax(-1) + 1, info).astype(_INFO)
    return found, info


def _unfit_cholesky(x: Array, upper: bool) -> tuple[Array, Array]:
    read = _read(x, not upper)
    bad = _some(~np.isfinite(read))
    found, info = cholesky(_replace(read, bad, np.eye(x.shape[-1])), upper)
    flat, told = _each(found), info.reshape(-1)
    for i in np.flatnonzero(bad):
        one = _each(read)[i]
        factor, told[i] = _cholesky_of(one.conj().T if upper else one)
        flat[i] = factor.conj().T if upper else factor
    return _unfold(flat, x), info


def _unfold(flat: Array, x: Array) -> Array:
    """Matrices in columns, in one axis, as the batch that `x` is."""
    return _transpose(_transpose(flat).reshape(*x.shape[:-2], flat.shape[-1], flat.shape[-2]))


def _singular(x: Array) -> Array:
    """`info` of a batch that is known to hold matrices without inverse. Where no pivot is zero but
    one is so small that not every LAPACK tells it from zero, that counts as the last."""
    info = lu(x)[3]
    told = info.reshape(-1)
    for i, one in enumerate(_each(x)):
        if told[i] == 0:
            try:
                np.linalg.inv(one)
            except np.linalg.LinAlgError:
                told[i] = len(one)
    return info


@primitive
@_on_host
def inv(x: Array) -> tuple[Array, Array]:
    """The inverse, and `info`: which pivot is zero. A matrix without inverse gives infinities."""
    if not _finite(x):
        return _unfit_solve(x, np.eye(x.shape[-1], dtype=x.dtype))
    try:
        return _columns(np.linalg.inv(x)), _fine(x)
    except np.linalg.LinAlgError:
        info = _singular(x)
    found = _columns(np.linalg.inv(_replace(x, info != 0, np.eye(x.shape[-1]))))
    found[info != 0] = np.inf
    return found, info


@primitive
@_on_host
def solve(a: Array, b: Array) -> tuple[Array, Array]:
    """The matrix x with a @ x = b, and `info` as of `inv`. Batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not _finite(a):
        return _unfit_solve(a, b)
    try:
        return _columns(np.linalg.solve(a, b)), np.zeros(batch, _INFO)
    except np.linalg.LinAlgError:
        info = _singular(a)
    found = _columns(np.linalg.solve(_replace(a, info != 0, np.eye(a.shape[-1])), b))
    info = np.broadcast_to(info, batch).copy()
    found[info != 0] = np.inf
    return found, info


def _unfit_solve(a: Array, b: Array) -> tuple[Array, Array]:
    bad = _some(~np.isfinite(a))
    found, info = solve(_replace(a, bad, np.eye(a.shape[-1])), b)
    batch = info.shape
    lefts = _each(np.broadcast_to(a, (*batch, *a.shape[-2:])))
    rights = _each(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    flat, told = _each(found), info.reshape(-1)
    for i in np.flatnonzero(np.broadcast_to(bad, batch)):
        flat[i], told[i] = _solution_of(lefts[i], rights[i])
    return _unfold(flat, found), info


@primitive
@_on_host
def solve_triangular(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """The matrix x with a @ x = b, of which one triangle of `a` is read (not its diagonal, which is
    1, if `unit`). A zero on the diagonal gives infinities. Batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = _room((math.prod(batch), *b.shape[-2:]), b.dtype)
    if out.size == 0:
        return out.reshape(*batch, *b.shape[-2:])
    (trsm,) = importlib.import_module("scipy.linalg.blas").get_blas_funcs(("trsm",), (a, b))
    lefts = _each(np.broadcast_to(a, (*batch, *a.shape[-2:])))
    rights = _each(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    for i in range(len(out)):
        # transposed, rows are the columns that BLAS wants: nothing is copied
        out[i] = trsm(1, lefts[i].T, rights[i], lower=upper, trans_a=1, diag=unit)
    return _transpose(_transpose(out).reshape(*batch, *b.shape[:-3:-1]))


@primitive
@_on_host
def cholesky_solve(b: Array, factor: Array, upper: bool) -> Array:
    """The matrix x with k @ x = b, where k = l @ lᴴ and `factor` is the triangle l (lᴴ if
    `upper`). Batches broadcast."""
    across = np.conj(_transpose(factor))
    if upper:
        return solve_triangular(factor, solve_triangular(across, b, False, False), True, False)
    return solve_triangular(across, solve_triangular(factor, b, False, False), True, False)


@primitive
@_on_host
def det(x: Array) -> Array:
    """The determinant."""
    if _finite(x):
        return np.asarray(np.linalg.det(x))
    bad = _some(~np.isfinite(x))
    found = np.asarray(np.linalg.det(_replace(x, bad)))
    rows, signs = _diagonals(x, bad)
    found[bad] = rows.prod(-1) * signs
    return found


@primitive
@_on_host
def slogdet(x: Array) -> tuple[Array, Array]:
    """The determinant: its sign (complex: of magnitude 1) and the logarithm of its magnitude."""
    if _finite(x):
        sign, log = np.linalg.slogdet(x)
        return np.asarray(sign), np.asarray(log)
    bad = _some(~np.isfinite(x))
    sign, log = (np.asarray(y) for y in np.linalg.slogdet(_replace(x, bad)))
    rows, signs = _diagonals(x, bad)
    each = np.sign(rows)
    if each.dtype.kind == "f":
        each = np.where(np.isnan(rows), 0, each)  # as in PyTorch
    else:
        each = np.where(np.isfinite(rows), each, complex(np.nan, np.nan))  # they have no phase
    sign[bad] = each.prod(-1) * signs
    log[bad] = np.log(np.abs(rows)).sum(-1)
    return sign, log


@primitive
@_on_host
def cofactors(x: Array) -> Array:
    """The matrix of cofactors, which is det(x) · inv(x)ᵀ, for matrices without inverse too."""
    if not _finite(x):
        return _set_aside(x, _some(~np.isfinite(x)), lambda good: (cofactors(good),))[0]
    u, s, vh = np.linalg.svd(x)
    one = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([one, s[..., :-1]], -1), -1)[..., : s.shape[-1]]
    after = np.cumprod(np.concatenate([one, s[..., :0:-1]], -1), -1)[..., : s.shape[-1]]
    others = before * after[..., ::-1]
    turn = np.asarray(np.linalg.det(u) * np.linalg.det(vh))
    return turn[..., None, None] * (u.conj() @ (others[..., None] * vh.conj()))


# --- spectra --------------------------------------------------------------------------------------
@primitive
@_on_host
def eigh(x: Array, lower: bool) -> tuple[Array, Array]:
    """Eigenvalues in rising order and eigenvectors of a Hermitian matrix, of which one triangle is
    read. Three rows and more must have no NaN, and infinities only on the diagonal."""
    if not _finite(x):
        return _unfit_eigh(x, lower)
    values, vectors = np.linalg.eigh(x, "L" if lower else "U")
    return values, _columns(vectors)


def _unfit_eigh(x: Array, lower: bool) -> tuple[Array, Array]:
    n, read = x.shape[-1], _read(x, lower)
    if n == 1:
        return read.real[..., 0].copy(), np.ones_like(read)
    refused = _some(np.isnan(read) | (np.isinf(read) & ~np.eye(n, dtype=bool)))
    if n > 2 and refused.any():
        raise Unfit(refused)
    bad = _some(~np.isfinite(read))
    found: tuple[Array, Array] = _set_aside(read, bad, lambda good: eigh(good, lower))
    return found


@primitive
@_on_host
def eig(x: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of any square matrix; always complex. NaN where the matrix is
    not finite."""
    if not _finite(x):
        lost = complex(np.nan, np.nan)
        bad = _some(~np.isfinite(x))
        values, vectors = eig(_replace(x, bad))
        values[bad], vectors[bad] = lost, lost
        return values, vectors
    values, vectors = np.linalg.eig(x)
    wanted = np.result_type(x.dtype, np.complex64)
    return values.astype(wanted), _columns(vectors).astype(wanted, copy=False)


@primitive
@_on_host
def svd(x: Array, full: bool) -> tuple[Array, Array, Array]:
    """Left singular vectors, singular values in falling order, right singular vectors as rows. NaN
    where the matrix is infinite; a NaN in it is refused."""
    if not _finite(x):
        refused = _some(np.isnan(x))
        if refused.any():
            raise Unfit(refused)
        found: tuple[Array, ...] = _set_aside(x, _some(np.isinf(x)), lambda good: svd(good, full))
        return found[0], found[1], found[2]
    u, s, vh = np.linalg.svd(x, full)
    return _columns(u), s, _columns(vh)


@primitive
@_on_host
def qr(x: Array, mode: str) -> tuple[Array, Array]:
    """Orthonormal columns and an upper triangle, "reduced" or "complete"; that alone ("r")."""
    if mode == "r":
        return np.empty((0,), x.dtype), _columns(np.linalg.qr(x, "r"))
    q, r = np.linalg.qr(x, mode)  # type: ignore[call-overload]  # one of those words
    return _columns(q), _columns(r)


@primitive
@_on_host
def householder_qr(x: Array) -> tuple[Array, Array]:
    """The same decomposition in LAPACK's own form: triangle and reflectors in one, factors."""
    h, tau = np.linalg.qr(x, "raw")
    return _columns(_transpose(h)), tau


@primitive
@_on_host
def lu(x: Array) -> tuple[Array, Array, Array, Array]:
    """Both triangles in one, the exchanges of rows (from 1), the order of rows that they lead to,
    and `info`: which pivot is zero."""
    m, n = x.shape[-2:]
    batch = x.shape[:-2]
    both = _room((math.prod(batch), m, n), x.dtype)
    both[...] = _each(x)
    pivots = np.tile(np.arange(min(m, n), dtype=_INFO), (len(both), 1))
    info = np.zeros(len(both), _INFO)
    if x.size:
        getrf, fit = _lapack("getrf", x), _finite(x)
        for i, one in enumerate(both):
            if fit or np.isfinite(one).all():
                both[i], pivots[i], info[i] = getrf(one, overwrite_a=True)
            else:
                both[i], pivots[i], info[i] = _lu_of(one)
    pivots = (pivots + 1).reshape(*batch, min(m, n)).astype(_INFO)
    return _unfold(both, x), pivots, row_order(pivots, m), info.reshape(batch)


@primitive
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


@primitive
@_on_host
def pinv(x: Array) -> Array:
    """The pseudo-inverse; singular values below the largest times eps times the longer side are
    taken for zero. NaN where the matrix is not finite."""
    if not _finite(x):
        return _set_aside(x, _some(~np.isfinite(x)), lambda good: (pinv(good),))[0]
    return np.linalg.pinv(x, max(x.shape[-2:]) * np.finfo(x.dtype).eps)


@primitive
@_on_host
def least_squares(a: Array, b: Array, rcond: float, strict: bool) -> tuple[Array, Array, Array]:
    """The shortest x that makes a @ x - b shortest, the rank of `a`, its singular values. Batches
    broadcast. NaN are refused, infinities of `a` too if `strict`; else they make x NaN."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    fit = _finite(a) and _finite(b)
    for which, x in enumerate(() if fit else (a, b)):
        refused = _some(~np.isfinite(x) if strict and which == 0 else np.isnan(x))
        if refused.any():
            raise Unfit(refused, which)
    lefts = _each(np.broadcast_to(a, (*batch, *a.shape[-2:])))
    rights = _each(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    # the right side and the solution share their memory in LAPACK, so that the columns are as long
    # as the longer of the two
    room = _room((len(lefts), max(a.shape[-2:]), b.shape[-1]), b.dtype)
    ranks = np.zeros(len(lefts), np.int64)
    values = np.zeros((len(lefts), min(a.shape[-2:])), a.real.dtype)
    for i in range(len(lefts)):
        left, right, found = lefts[i], rights[i], room[i, : a.shape[-1]]
        if fit or (np.isfinite(left).all() and np.isfinite(right).all()):
            found[...], _, ranks[i], values[i] = np.linalg.lstsq(left, right, rcond)
        elif np.isfinite(left).all():
            _, _, ranks[i], values[i] = np.linalg.lstsq(left, np.zeros_like(right), rcond)
            found[...] = np.nan
        else:
            found[...] = values[i] = np.nan
    room = _transpose(_transpose(room).reshape(*batch, room.shape[-1], room.shape[-2]))
    return (
        room[..., : a.shape[-1], :],
        ranks.reshape(batch),
        values.reshape(*batch, values.shape[-1]),
    )


# --- exponentials, and factors of symmetric matrices ----------------------------------------------
@primitive
@_on_host
def matrix_exp(x: Array) -> Array:
    """The exponential of square matrices; NaN of those that are not finite."""
    if x.size == 0:
        return x.copy("C")
    wide = x if x.dtype.kind == "c" or x.dtype.itemsize >= 4 else x.astype(np.float32)
    bad = _some(~np.isfinite(wide))
    expm = importlib.import_module("scipy.linalg").expm
    with np.errstate(all="ignore"):  # what is too large for the dtype becomes infinite, or NaN
        y = np.ascontiguousarray(expm(_replace(wide, bad) if bad.any() else wide))
    if bad.any():
        y[bad] = np.nan
    return y.astype(x.dtype, copy=False)


@primitive
@_on_host
def ldl(x: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """The factors L and D of Hermitian or symmetric matrices, of which the lower triangle is read,
    packed; exchanges as LAPACK counts them; and `info`."""
    kind = "hetrf" if hermitian and x.dtype.kind == "c" else "sytrf"
    room = _room(x.shape, x.dtype)
    pivots = np.empty(x.shape[:-1], _INFO)
    info = _fine(x)
    if x.size == 0:
        return room, pivots, info
    factor = _lapack(kind, x)
    places = zip(
        _each(x), _each_of(room), pivots.reshape(-1, x.shape[-1]), range(info.size), strict=True
    )
    for one, out, pivot, at in places:
        found, order, wrong = factor(one, lower=1)
        out[...] = np.tril(found)
        pivot[...] = order
        if wrong == 0 and not np.isfinite(out).all():
            wrong = _after_infinity(out, order, kind)
        info.reshape(-1)[at] = wrong
    return room, pivots, info


def _after_infinity(packed: Array, order: Array, kind: str) -> int:
    """The first pivot that is NaN, counted from 1; 0 if none is.

    LAPACKs do not agree on which of them they tell, nor on complex symmetric matrices with an
    infinity: what is divided by it is 0 in one and NaN in others. Here it is NaN, as everywhere
    that complex numbers meet an infinity.
    """
    n = len(packed)
    k = 0
    while kind == "sytrf" and packed.dtype.kind == "c" and k < n:
        after = k + (2 if order[k] < 0 else 1)  # a pivot is one number, or a block of 2 x 2
        if not np.isfinite(packed[k:after, k:after]).all():
            packed[after:, k:] = np.tril(np.full((n - after, n - k), np.nan), after - k)
            break
        k = after
    bad = np.flatnonzero(np.isnan(np.diagonal(packed)))
    return int(bad[0]) + 1 if bad.size else 0


def _each_of(room: Array) -> Array:
    """A batch of matrices in columns, to walk over and write to."""
    return _transpose(_each(_transpose(room)))


@primitive
@_on_host
def ldl_solve(factors: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """Solutions of A x = b from the packed factors of A, batch by batch (all of one shape)."""
    kind = "hetrs" if hermitian and factors.dtype.kind == "c" else "sytrs"
    solve = _lapack(kind, factors)
    room = _room(b.shape, b.dtype)
    if room.size == 0:
        return room
    places = zip(
        _each(factors), pivots.reshape(-1, pivots.shape[-1]), _each(b), _each_of(room), strict=True
    )
    for one, pivot, right, out in places:
        if not _are_exchanges(pivot):  # LAPACK goes wherever they send it
            raise RuntimeError(
                "torch.linalg.ldl_solve: the pivots are none that ldl_factor gives\n"
                f"They say which rows were exchanged: numbers from 1 to {pivot.size}, or pairs of "
                f"negative ones; here they are {pivot.tolist()}."
            )
        out[...] = solve(one, pivot, right, lower=1)[0]
    return room


def _are_exchanges(pivot: Array) -> bool:
    """Whether these are rows counted from 1, with a minus sign for both rows of a 2 x 2 block."""
    if pivot.min() < -pivot.size or pivot.max() > pivot.size or not pivot.all():
        return False
    in_block = np.concatenate(([False], pivot < 0, [False]))
    edges = np.flatnonzero(in_block[1:] != in_block[:-1])  # where blocks begin and end
    return not ((edges[1::2] - edges[::2]) % 2).any()


# --- Fourier transforms ---------------------------------------------------------------------------
# Note [How transforms lie in memory]
#     As PyTorch's: the axes that are transformed inside, the others outside, and each of the two
#     in the order of the input's strides. They are computed so too, over neighbours in memory.
def _transformed(
    x: Array, axes: tuple[int, ...], compute: Callable[[Array, tuple[int, ...]], Array]
) -> Array:
    """Transforms along `axes` (negative), by `compute(x, axes)` along the last ones."""
    rank = x.ndim
    if x.flags.c_contiguous and axes == tuple(range(-len(axes), 0)):
        return compute(x, axes)
    inside = [d + rank for d in axes]
    outside = [d for d in range(rank) if d not in inside]
    outside.sort(key=lambda d: -abs(x.strides[d]))
    order = [*outside, *inside]
    y = compute(x.transpose(order), tuple(range(-len(axes), 0)))
    y = y if y.flags.c_contiguous else y.copy("C")
    return y.transpose(sorted(range(rank), key=lambda d: order[d]))


def _fft_of(x: Array, name: str) -> Any:
    """A function of `scipy.fft` (of `cupy.fft`, by NumPy's protocol): it keeps float32."""
    if type(x) is np.ndarray:
        return getattr(importlib.import_module("scipy.fft"), name)
    return getattr(np.fft, name)


def _whole_of_real(x: Array, axes: tuple[int, ...]) -> Array:
    """The transform of real numbers along the last axis, whole: the second half mirrors the
    first."""
    half = importlib.import_module("scipy.fft").rfft(x)
    return np.concatenate([half, half[..., (x.shape[-1] - 1) // 2 : 0 : -1].conj()], -1)


@primitive
def fourier(x: Array, axes: tuple[int, ...], inverse: bool) -> Array:
    """The sum of x[n] exp(∓2πi k n / N) along axes (plus: inverse), not scaled. Complex.

    Axes count from the end, here and in the next two."""
    if x.dtype.kind != "c":
        if len(axes) == 1 and not inverse and type(x) is np.ndarray:
            return _transformed(x, axes, _whole_of_real)
        x = x.astype(np.result_type(x.dtype, np.complex64))
    axes = tuple(sorted(axes, key=lambda d: (-abs(x.strides[d]), d)))
    how = _fft_of(x, "ifftn" if inverse else "fftn")
    norm = "forward" if inverse else "backward"
    return _transformed(x, axes, lambda x, axes: how(x, axes=axes, norm=norm))


@primitive
def fourier_real(x: Array, axes: tuple[int, ...]) -> Array:
    """`fourier` of real numbers, of which only the first half along the last of the axes is given:
    the rest are conjugates."""
    how = _fft_of(x, "rfftn")
    return _transformed(x, axes, lambda x, axes: how(x, axes=axes))


@primitive
def fourier_half(x: Array, axes: tuple[int, ...], n: int) -> Array:
    """The inverse `fourier` of which half is given along the last of the axes, that is to be `n`
    long: real numbers, not scaled."""
    how = _fft_of(x, "irfftn")

    def compute(x: Array, axes: tuple[int, ...]) -> Array:
        sizes = [x.shape[d] for d in axes[:-1]]
        return how(x, s=(*sizes, n), axes=axes, norm="forward")

    return _transformed(x, axes, compute)
