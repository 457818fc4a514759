"""The public functions of `linalg_spectrum`: eigenvalues, singular values, least squares."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes, return_types
from rushlight.core.record import apply
from rushlight.ops.contract import into
from rushlight.ops.linalg_parts import (
    check_square,
    floating,
    is_tensor,
    lapack_only,
    matrices,
    named,
    tensor_at,
)
from rushlight.ops.linalg_spectrum import Eig, Eigh, Lstsq, Pinv, Svd
from rushlight.ops.table import function

__all__ = ["eigh", "eigvalsh", "linalg_svd", "pinv", "svdvals", "tolerances"]


# --- eigenvalues ----------------------------------------------------------------------------------
def _eigh(A: Any, UPLO: str, function: str) -> Any:
    array = tensor_at(A, function, "input")
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_square(array, "linalg.eigh")
    lapack_only(array, "linalg_eigh_cpu")
    return apply(Eigh(UPLO.upper() == "L"), A)


@function(method=False, free=False, namespace="linalg")
def eigh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """eigh(A, UPLO='L', *, out=None) -> (Tensor, Tensor)

    Eigenvalues, in rising order, and eigenvectors, as columns, of a Hermitian matrix, of which the
    lower triangle ("L") or the upper one ("U") is read.

    >>> import rushlight as torch
    >>> torch.linalg.eigh(torch.tensor([[3., 0.], [0., 2.]])).eigenvalues
    tensor([2., 3.])
    """
    results = _eigh(A, UPLO, "linalg_eigh")
    return named("linalg_eigh", return_types.linalg_eigh, results, out)


@function(method=False, free=False, namespace="linalg")
def eigvalsh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """eigvalsh(A, UPLO='L', *, out=None) -> Tensor

    The eigenvalues of a Hermitian matrix, in rising order.

    >>> import rushlight as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[3., 0.], [0., 2.]]))
    tensor([2., 3.])
    """
    return into("linalg_eigvalsh", (A,), out, lambda: _eigh(A, UPLO, "linalg_eigvalsh")[0])


def _eig(A: Any, name: str) -> Any:
    array = tensor_at(A, "linalg_" + name, "input")
    check_square(array, "linalg." + name)
    dtype = dtypes.of(array.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Unknown Complex ScalarType for {dtype.scalar_type}")
    lapack_only(array, "linalg_eig_out_cpu")
    return apply(Eig(), A)


@function(method=False, free=False, namespace="linalg", name="eig")
def linalg_eig(A: Any, *, out: Any = None) -> Any:
    """eig(A, *, out=None) -> (Tensor, Tensor)

    Eigenvalues and eigenvectors, as columns, of a square matrix. They are complex.

    >>> import rushlight as torch
    >>> torch.linalg.eig(torch.tensor([[2., 0.], [0., 3.]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """
    return named("linalg_eig", return_types.linalg_eig, _eig(A, "eig"), out)


@function(method=False, free=False, namespace="linalg")
def eigvals(A: Any, *, out: Any = None) -> Any:
    """eigvals(A, *, out=None) -> Tensor

    The eigenvalues of a square matrix. They are complex.

    >>> import rushlight as torch
    >>> torch.linalg.eigvals(torch.tensor([[2., 0.], [0., 3.]]))
    tensor([2.+0.j, 3.+0.j])
    """
    return into("linalg_eigvals", (A,), out, lambda: _eig(A, "eigvals")[0])


# --- singular values ------------------------------------------------------------------------------
def _svd(A: Any, full_matrices: bool, driver: Any) -> Any:
    matrices(A.array, "linalg.svd")
    floating(A.array, "linalg.svd")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )
    return apply(Svd(bool(full_matrices)), A)


@function(method=False, free=False, namespace="linalg", name="svd")
def linalg_svd(
    A: Any, full_matrices: bool = True, *, driver: str | None = None, out: Any = None
) -> Any:
    """svd(A, full_matrices=True, *, driver=None, out=None) -> (Tensor, Tensor, Tensor)

    U, the singular values S in falling order, and Vᴴ, with A = U diag(S) Vᴴ.

    >>> import rushlight as torch
    >>> torch.linalg.svd(torch.tensor([[0., 2.], [3., 0.]])).S
    tensor([3., 2.])
    """
    tensor_at(A, "linalg_svd")
    results = _svd(A, full_matrices, driver)
    return named("linalg_svd", return_types.linalg_svd, results, out)


@function(method=False, free=False, namespace="linalg")
def svdvals(A: Any, *, driver: str | None = None, out: Any = None) -> Any:
    """svdvals(A, *, driver=None, out=None) -> Tensor

    The singular values, in falling order.

    >>> import rushlight as torch
    >>> torch.linalg.svdvals(torch.tensor([[0., 2.], [3., 0.]]))
    tensor([3., 2.])
    """
    tensor_at(A, "linalg_svdvals")
    return into("linalg_svdvals", (A,), out, lambda: _svd(A, False, driver)[1])


@function()
def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """svd(input, some=True, compute_uv=True, *, out=None) -> (Tensor, Tensor, Tensor)

    The older form of `linalg.svd`, with V in place of Vᴴ.

    >>> import rushlight as torch
    >>> torch.svd(torch.tensor([[0., 2.], [3., 0.]])).S
    tensor([3., 2.])
    """
    array = tensor_at(input, "svd", "input")
    if array.ndim < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{array.ndim} dimensions instead"
        )
    if compute_uv:
        u, s, vh = _svd(input, not some, None)
        results = u, s, vh.mH
    else:
        s = _svd(input, False, None)[1]
        (m, n), batch = array.shape[-2:], array.shape[:-2]
        zeros = input.detach().new_zeros
        results = zeros((*batch, m, m)), s, zeros((*batch, n, n))
    return named("svd", return_types.svd, results, out)


# --- pseudo-inverse, least squares ----------------------------------------------------------------
def tolerances(array: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """What counts as zero among singular values, as ops take it: `atol`, and `rtol` times the
    largest, which is the longer side times eps unless one of the two is given."""
    if rtol is None:
        eps = dtypes.finfo(dtypes.of(array.dtype)).eps * max(array.shape[-2:])
        if is_tensor(atol):
            # where atol is zero it counts as not given
            rtol = (atol == 0).to(dtypes.of(array.real.dtype)) * eps
        else:
            rtol = 0.0 if atol else eps
    return 0.0 if atol is None else atol, rtol


@function(method=False, free=False, namespace="linalg")
def pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """pinv(A, *, atol=None, rtol=None, hermitian=False, out=None) -> Tensor

    The pseudo-inverse. Singular values up to max(atol, rtol times the largest) count as zero.

    >>> import rushlight as torch
    >>> torch.linalg.pinv(torch.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    array = tensor_at(A, "linalg_pinv", "input")
    if array.ndim < 2 or array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({dtypes.of(array.dtype).scalar_type}{{{list(array.shape)}}}): expected "
            "a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square(array, "linalg.eigh")
    if rcond is not None:
        atol, rtol = 0.0, rcond
    if array.size:
        atol, rtol = tolerances(array, atol, rtol)
    atol, rtol = (t.detach() if is_tensor(t) else t for t in (atol, rtol))
    what = Pinv(bool(hermitian))
    return into("linalg_pinv", (A,), out, lambda: apply(what, A, atol, rtol))


@function()
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """pinverse(input, rcond=1e-15) -> Tensor

    The older form of `linalg.pinv`.

    >>> import rushlight as torch
    >>> torch.pinverse(torch.tensor([[2.], [0.]]))
    tensor([[0.5000, 0.0000]])
    """
    tensor_at(input, "pinverse", "input")
    return pinv(input, rcond)


@function(method=False, free=False, namespace="linalg", name="lstsq")
def linalg_lstsq(A: Any, B: Any, rcond: Any = None, *, driver: str | None = None) -> Any:
    """lstsq(A, B, rcond=None, *, driver=None) -> (Tensor, Tensor, Tensor, Tensor)

    The X that makes A X - B shortest; the squared lengths of the columns that are left, the rank
    and the singular values of A, each where PyTorch's `driver` tells it. All drivers compute the
    same here.

    >>> import rushlight as torch
    >>> torch.linalg.lstsq(torch.tensor([[1.], [1.]]), torch.tensor([[1.], [3.]])).solution.round()
    tensor([[2.]])
    """
    a, b = tensor_at(A, "linalg_lstsq", "input"), tensor_at(B, "linalg_lstsq", "B", 2)
    title = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{title}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{title}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{title}: Expected input and other to have the same dtype, but got input's dtype "
            f"{dtypes.of(a.dtype).scalar_type} and other's dtype {dtypes.of(b.dtype).scalar_type}"
        )
    if driver is not None and driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{title}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = a.ndim - 1 == b.ndim
    if b.shape[-1 if vector else -2] != a.shape[-2]:
        side = "-1" if vector else "-2"
        raise RuntimeError(f"{title}: input.size(-2) should match other.size({side})")
    if a.dtype.kind not in "fc" or a.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if rcond is None:
        rcond = dtypes.finfo(dtypes.of(a.dtype)).eps * max(a.shape[-2:])
    how = driver or "gelsy"
    x, residuals, rank, values = apply(Lstsq(float(rcond), how, vector), A, B)
    if how == "gels":
        rank = rank.new_empty((0,))
    return return_types.linalg_lstsq((x, residuals, rank, values.detach()))
