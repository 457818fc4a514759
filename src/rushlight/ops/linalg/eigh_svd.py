"""Eigenvalues and singular values.

Note [Phases]
    Eigenvectors and singular vectors are known up to a sign, complex ones up to a phase. The rules
    give the derivative of anything that does not depend on that choice, as PyTorch's do, and
    refuse a loss that does. Forward mode cannot tell: its tangents have the phase of the vectors.
"""

from __future__ import annotations

from typing import Any

from rushlight import dtypes, return_types
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom, outer
from rushlight.arrays.host import has_values
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply, recording
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.each_member import batch_leading
from rushlight.ops.linalg import common
from rushlight.ops.linalg.common import (
    column_scale,
    diag,
    diagonal_of,
    eye,
    hermitian,
    mh,
    mt,
    quotient,
    row_scale,
)
from rushlight.ops.out import write_out, write_outs
from rushlight.ops.registry import function, op


def gaps(values: Any) -> Any:
    """values[j] - values[i] at (i, j), and 1 on the diagonal."""
    return v.where(eye(values, values.shape[-1]), 1, column_scale(values) - row_scale(values))


def square_gaps(values: Any) -> Any:
    """values[j]² - values[i]² at (i, j), as a product: the squares may be out of range where it is
    harmless. Not zero on the diagonal."""
    return gaps(values) * (column_scale(values) + row_scale(values))


def off_diagonal(x: Any) -> Any:
    """A square matrix with zeros on its diagonal."""
    return v.where(eye(x, x.shape[-1]), 0, x)


def check_phase(rule: str, whose: str, phase: Any, which: str) -> None:
    """Refuse a loss that changes when vectors are turned; see Note [Phases]."""
    raw = outer(phase)
    # a NaN says nothing about the loss: vectors of a matrix that is not finite are NaN
    if has_values(raw) and bool(v.reduce_any(v.absolute(raw) > 1e-2, None, False)):
        raise RuntimeError(
            f"{rule}: The {whose} in the complex case are specified up to multiplication by "
            f"e^{{i phi}}. The specified loss function depends on this {which}."
        )


def describe_failure(function: str, error: Exception, x: Any) -> Exception:
    """PyTorch's error for a decomposition of `x` that LAPACK gave up, or was not asked for."""
    unfit = isinstance(error, lapack.Unfit)
    if not unfit and "converge" not in str(error):
        return error
    which = f"(Batch element {getattr(error, 'member', 0)}): " if x.ndim > 2 else ""
    if unfit and function == "linalg.svd":
        why = "contained non-finite values."
    else:
        values = "singular values" if function == "linalg.svd" else "eigenvalues"
        why = f"is ill-conditioned or has too many repeated {values} "
        why += f"(error code: {x.shape[-1] - 1})."
    start = "The algorithm failed to converge because the input matrix"
    return common.LinAlgError(f"{function}: {which}{start} {why}")


def phaseless(cls: Any) -> Any:
    """For samples: the op class `cls`, every vector times the conjugate of its first number.

    So no phase is left in it: these are functions of the matrix, which have derivatives. The
    columns of Vᴴ turn against those of U.
    """

    def parts(ys: Any) -> tuple[Any, Any, Any]:
        columns_ = ys[0] if len(ys) == 3 else ys[1]
        first = v.window(columns_, (..., slice(0, 1), slice(None)))
        return columns_, first, (ys[2] if len(ys) == 3 else None)

    def arranged(like: Any, of_columns: Any, of_rows: Any) -> Any:
        return (of_columns, like, of_rows) if of_rows is not None else (like, of_columns)

    class Phaseless(cls):  # type: ignore[misc]  # the base is a value
        saves = cls.inputs

        def forward(self, x: Any) -> Any:
            ys = super().forward(x)
            u, first, vh = parts(ys)
            turned = None if vh is None else vh * mt(first)
            return arranged(ys[len(ys) - 2], u * conj(first), turned)

        def vjp(self, node: Node, g: Any, x: Any) -> Any:
            ys = super().forward(x)
            u, first, vh = parts(ys)
            gu, _, gv = parts(g)
            of_first = v.reduce_sum(conj(gu) * u, (-2,), True)
            if vh is not None:
                of_first = of_first + mt(v.reduce_sum(gv * conj(vh), (-1,), True))
                gv = gv * mt(conj(first))
            top = v.window(v.iota(u, u.shape[-2], dtypes.int64.numpy) == 0, (slice(None), None))
            of_u = gu * first + v.where(top, of_first, 0)
            return super().vjp(node, arranged(g[len(g) - 2], of_u, gv), *ys)

        def jvp(self, ts: Any, xs: Any, y: Any) -> Any:
            ys = super().forward(xs[0])
            u, first, vh = parts(ys)
            steps = super().jvp(ts, xs, ys)
            tu, t_first, tv = parts(steps)
            tu = tu * conj(first) + u * conj(t_first)
            if vh is not None:
                tv = tv * mt(first) + vh * mt(t_first)
            return arranged(steps[len(steps) - 2], tu, tv)

    return Phaseless


# --- eigenvalues of Hermitian matrices ------------------------------------------------------------
@op
class Eigh(Op):
    """Eigenvalues and eigenvectors of a Hermitian matrix; one of its triangles is read."""

    name = "linalg_eigh"
    word = "eigh"
    saved_names = ""
    inputs, outputs = ("A",), ("eigenvalues", "eigenvectors")
    saves, params = ("eigenvalues", "eigenvectors"), ("lower",)
    lower: bool = True
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return lapack.eigh(x, self.lower)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        return describe_failure("linalg.eigh", error, xs[0])

    def vjp(self, node: Node, g: Any, values: Any, vectors: Any) -> Any:
        inside = mh(vectors) @ g[1]
        if is_complex(inside):
            phase = v.imag(diagonal_of(inside))
            check_phase("linalg_eigh_backward", "eigenvectors", phase, "quantity, so it is "
                        "ill-defined")  # fmt: skip
        inside = quotient(off_diagonal(inside - mh(inside)) / 2, gaps(values))
        return (vectors @ (inside + diag(g[0])) @ mh(vectors),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        values, vectors = y
        inside = mh(vectors) @ ts[0] @ vectors
        moved = diagonal_of(inside)
        step = vectors @ quotient(off_diagonal(inside), gaps(values))
        return v.real(moved) if is_complex(moved) else moved, step

    @staticmethod
    def samples(draw: Any) -> Any:
        kind = common.on_subspace(Eigh, hermitian)
        yield kind(), common.positive(draw, 3, 3)
        yield kind(False), common.positive(draw, 2, 2, 2)
        yield kind(), draw.real(0, 0)
        kind = phaseless(kind)
        yield kind(), common.positive(draw, 3, 3, complex=True)
        yield kind(False), common.positive(draw, 2, 2, 2, complex=True)


def _compute_eigh(A: Any, UPLO: str, function: str) -> Any:
    array = check_tensor(A, function, "input")
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    common.check_square(array, "linalg.eigh")
    common.lapack_only(array, "linalg_eigh_cpu")
    return apply(Eigh(UPLO.upper() == "L"), A)


@function(method=False, free=False, namespace="linalg")
def eigh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues, in rising order, and eigenvectors, as columns, of a Hermitian matrix, of which
    the lower triangle ("L") or the upper one ("U") is read.

    >>> torch.linalg.eigh(torch.tensor([[3., 0.], [0., 2.]])).eigenvalues
    tensor([2., 3.])
    """
    results = _compute_eigh(A, UPLO, "linalg_eigh")
    return write_outs("linalg_eigh", return_types.linalg_eigh, results, out)


@function(method=False, free=False, namespace="linalg")
def eigvalsh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues of a Hermitian matrix, in rising order.

    >>> torch.linalg.eigvalsh(torch.tensor([[3., 0.], [0., 2.]]))
    tensor([2., 3.])
    """
    return write_out(
        "linalg_eigvalsh", (A,), out, lambda: _compute_eigh(A, UPLO, "linalg_eigvalsh")[0]
    )


# --- eigenvalues of any square matrix -------------------------------------------------------------
@op
class Eig(Op):
    """Eigenvalues and eigenvectors of any square matrix, all complex."""

    name = "linalg_eig"
    word = "eig"
    outputs, saves = ("eigenvalues", "eigenvectors"), ("eigenvalues", "eigenvectors")

    def forward(self, x: Any) -> Any:
        return lapack.eig(x)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        return describe_failure("linalg.eig", error, xs[0])

    def vjp(self, node: Node, g: Any, values: Any, vectors: Any) -> Any:
        inside = mh(vectors) @ g[1]
        phase = v.imag(diagonal_of(inside))
        check_phase("linalg_eig_backward", "eigenvectors", phase, "quantity, so it is ill-defined")
        stretch = v.real(diagonal_of(inside))  # eigenvectors have length 1
        inside = inside - (mh(vectors) @ vectors) * column_scale(stretch)
        inside = quotient(off_diagonal(inside), conj(gaps(values))) + diag(g[0])
        return (lapack.solve(mh(vectors), inside @ mh(vectors))[0],)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        values, vectors = y
        t = v.cast(ts[0], raw_dtype(vectors))
        inside = lapack.solve(vectors, t @ vectors)[0]
        step = vectors @ quotient(off_diagonal(inside), gaps(values))
        stretch = v.real(v.reduce_sum(conj(vectors) * step, (-2,), True))
        return diagonal_of(inside), step - vectors * stretch

    @staticmethod
    def samples(draw: Any) -> Any:
        kind = phaseless(Eig)
        yield kind(), common.positive(draw, 3, 3) + 0.05 * draw.real(3, 3)
        yield kind(), common.positive(draw, 2, 2, 2) + 0.05 * draw.real(2, 2, 2)
        yield kind(), draw.complex_square(3, 3)
        yield kind(), draw.real(0, 0)


def _compute_eig(A: Any, name: str) -> Any:
    array = check_tensor(A, "linalg_" + name, "input")
    common.check_square(array, "linalg." + name)
    dtype = dtypes.of(array.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Unknown Complex ScalarType for {dtype.scalar_type}")
    common.lapack_only(array, "linalg_eig_out_cpu")
    if name == "eig" or (recording() and (A._requires_grad or A._node is not None)):
        # eigenvalues alone are NaN instead, unless a gradient wants the vectors too
        raw = bottom(array)
        if has_values(raw) and not bool(v.reduce_all(v.isfinite(raw), None, False)):
            raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return apply(Eig(), A)


@function(method=False, free=False, namespace="linalg", name="eig")
def linalg_eig(A: Any, *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors, as columns, of a square matrix. They are complex.

    >>> torch.linalg.eig(torch.tensor([[2., 0.], [0., 3.]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """
    return write_outs("linalg_eig", return_types.linalg_eig, _compute_eig(A, "eig"), out)


@function(method=False, free=False, namespace="linalg")
def eigvals(A: Any, *, out: Any = None) -> Any:
    """The eigenvalues of a square matrix. They are complex.

    >>> torch.linalg.eigvals(torch.tensor([[2., 0.], [0., 3.]]))
    tensor([2.+0.j, 3.+0.j])
    """
    return write_out("linalg_eigvals", (A,), out, lambda: _compute_eig(A, "eigvals")[0])


# --- singular values ------------------------------------------------------------------------------
@op
class Svd(Op):
    """A = U diag(S) Vᴴ. With `full_matrices` U and V are square, and the gradients of the columns
    that S does not reach are not looked at."""

    name = "linalg_svd"
    word = "svd"
    inputs, outputs, saves = ("A",), ("U", "S", "Vh"), ("U", "S", "Vh")
    params = ("full_matrices",)
    full_matrices: bool = False
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return lapack.svd(x, self.full_matrices)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        return describe_failure("linalg.svd", error, xs[0])

    def narrowed(self, u: Any, s: Any, vh: Any) -> tuple[Any, Any]:
        """U and V without the columns that S does not reach."""
        k = s.shape[-1]
        if self.full_matrices:
            u, vh = v.window(u, (..., slice(0, k))), v.window(vh, (..., slice(0, k), slice(None)))
        return u, mh(vh)

    def vjp(self, node: Node, g: Any, u: Any, s: Any, vh: Any) -> Any:
        right = self.narrowed(u, s, vh)
        gu, gv = self.narrowed(g[0], s, g[2])
        u, w = right
        m, n, k = u.shape[-2], w.shape[-2], s.shape[-1]
        of_u, of_v = mh(u) @ gu, mh(w) @ gv
        apart = square_gaps(s)
        inside = quotient(off_diagonal(of_u - mh(of_u)), apart) * column_scale(s)
        inside = inside + row_scale(s) * quotient(off_diagonal(of_v - mh(of_v)), apart) + diag(g[1])
        if is_complex(u):
            phase, other = v.imag(diagonal_of(of_u)), v.imag(diagonal_of(of_v))
            check_phase("svd_backward", "singular vectors", phase + other, "phase term, making it "
                        "ill-defined")  # fmt: skip
            inside = inside + 1j * diag(quotient(phase - other, 2 * s))
        found = u @ inside @ mh(w)
        if m > k:
            found = found + quotient(gu - u @ of_u, column_scale(s)) @ mh(w)
        if n > k:
            found = found + u @ mh(quotient(gv - w @ of_v, column_scale(s)))
        return (found,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        s, t = y[1], ts[0]
        u, w = self.narrowed(*y)
        m, n, k = u.shape[-2], w.shape[-2], s.shape[-1]
        inside = mh(u) @ t @ w
        apart = square_gaps(s)
        a, b = inside * column_scale(s), row_scale(s) * inside
        moved = diagonal_of(inside)
        of_u = quotient(off_diagonal(a + mh(a)), apart)
        of_v = quotient(off_diagonal(b + mh(b)), apart)
        if is_complex(moved):
            phase = 1j * diag(quotient(v.imag(moved), 2 * s))
            of_u, of_v, moved = of_u + phase, of_v - phase, v.real(moved)
        tu, tv = u @ of_u, w @ of_v
        if m > k:
            tu = tu + quotient(t @ w - u @ inside, column_scale(s))
        if n > k:
            tv = tv + quotient(mh(t) @ u - w @ mh(inside), column_scale(s))
        if self.full_matrices:
            tu = v.concat([tu, v.window(y[0], (..., slice(k, None))) * 0], -1)
            rest = v.window(mh(y[2]), (..., slice(k, None))) * 0
            tv = v.concat([tv, rest], -1)
        return tu, moved, mh(tv)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Svd(), draw.square(3, 3)
        yield Svd(), draw.real(4, 2)
        yield Svd(), draw.real(2, 2, 3)
        yield Svd(True), draw.square(3, 3)
        yield Svd(), draw.real(0, 2)
        kind = phaseless(Svd)
        yield kind(), draw.complex_square(3, 3)
        yield kind(), draw.complex(4, 2)
        yield kind(), draw.complex(2, 2, 3)


def _compute_svd(A: Any, full_matrices: bool, driver: Any) -> Any:
    common.check_matrices(A._array, "linalg.svd")
    common.floating(A._array, "linalg.svd", "linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )
    return apply(Svd(bool(full_matrices)), A)


@function(
    method=False,
    free=False,
    namespace="linalg",
    name="svd",
)
def linalg_svd(
    A: Any, full_matrices: bool = True, *, driver: str | None = None, out: Any = None
) -> Any:
    """U, the singular values S in falling order, and Vᴴ, with A = U diag(S) Vᴴ.

    >>> torch.linalg.svd(torch.tensor([[0., 2.], [3., 0.]])).S
    tensor([3., 2.])
    """
    results = _compute_svd(A, full_matrices, driver)
    return write_outs("linalg_svd", return_types.linalg_svd, results, out)


@function(method=False, free=False, namespace="linalg")
def svdvals(A: Any, *, driver: str | None = None, out: Any = None) -> Any:
    """The singular values, in falling order.

    >>> torch.linalg.svdvals(torch.tensor([[0., 2.], [3., 0.]]))
    tensor([3., 2.])
    """
    return write_out("linalg_svdvals", (A,), out, lambda: _compute_svd(A, False, driver)[1])


@function()
def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """The older form of `linalg.svd`, with V in place of Vᴴ.

    >>> torch.svd(torch.tensor([[0., 2.], [3., 0.]])).S
    tensor([3., 2.])
    """
    array = check_tensor(input, "svd", "input")
    if array.ndim < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{array.ndim} dimensions instead"
        )
    if compute_uv:
        u, s, vh = _compute_svd(input, not some, None)
        results = u, s, vh.mH
    else:
        s = _compute_svd(input, False, None)[1]
        (m, n), batch = array.shape[-2:], array.shape[:-2]
        zeros = input.detach().new_zeros
        results = zeros((*batch, m, m)), s, zeros((*batch, n, n)).mT
    return write_outs("svd", return_types.svd, results, out)
