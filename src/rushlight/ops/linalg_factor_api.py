"""The public functions of `linalg_factor`: Cholesky's factor, QR, reflectors."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes, return_types
from rushlight.core.record import apply
from rushlight.ops.contract import into
from rushlight.ops.linalg_factor import (
    Cholesky,
    CholeskyEx,
    Geqrf,
    HouseholderProduct,
    Ormqr,
    Qr,
)
from rushlight.ops.linalg_parts import (
    check_info,
    check_square,
    floating,
    lapack_only,
    matrices,
    named,
    outdated,
    tensor_at,
)
from rushlight.ops.table import function

__all__ = ["cholesky", "qr"]


# --- Cholesky -------------------------------------------------------------------------------------
def _factor(A: Any, upper: bool, op: Any, function: str) -> Any:
    """The factor, and `info`."""
    check_square(A.array, function)
    floating(A.array, function)
    return apply(op(bool(upper)), A)


@function(method=False, free=False, namespace="linalg", name="cholesky")
def linalg_cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """cholesky(A, *, upper=False, out=None) -> Tensor

    The lower triangle L with L Lᴴ = A of a positive matrix, or the upper one, Lᴴ.

    >>> import rushlight as torch
    >>> torch.linalg.cholesky(torch.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    tensor_at(A, "linalg_cholesky", "input")

    def compute() -> Any:
        found, info = _factor(A, upper, CholeskyEx, "linalg.cholesky")
        check_info("linalg.cholesky", info, "cholesky")
        return found

    return into("linalg_cholesky", (A,), out, compute)


@function(method=False, free=False, namespace="linalg")
def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """cholesky_ex(A, *, upper=False, check_errors=False, out=None) -> (Tensor, Tensor)

    As `cholesky`, with the order of the first minor that is not positive (0: none), in place of an
    error.

    >>> import rushlight as torch
    >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
    tensor(1, dtype=torch.int32)
    """
    tensor_at(A, "linalg_cholesky_ex", "input")
    results = _factor(A, upper, CholeskyEx, "linalg.cholesky")
    if check_errors:
        check_info("linalg.cholesky_ex", results[1], "cholesky")
    return named("linalg_cholesky_ex", return_types.linalg_cholesky_ex, results, out)


@function()
def cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """cholesky(input, upper=False, *, out=None) -> Tensor

    The older form of `linalg.cholesky`. Deprecated, in PyTorch too.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.cholesky(torch.tensor([[4.]]))
    tensor([[2.]])
    """
    outdated("cholesky", "cholesky")
    tensor_at(input, "cholesky", "input")

    def compute() -> Any:
        found, info = _factor(input, upper, Cholesky, "cholesky")
        check_info("cholesky", info, "cholesky")
        return found

    return into("cholesky", (input,), out, compute)


# --- QR -------------------------------------------------------------------------------------------
def _qr(A: Any, mode: str) -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    matrices(A.array, "linalg.qr")
    if A.array.dtype.kind not in "fc" and A.array.dtype.kind != "V":
        floating(A.array, "linalg.qr")
    lapack_only(A.array, "geqrf_cpu")
    return apply(Qr(mode), A)


@function(method=False, free=False, namespace="linalg", name="qr")
def linalg_qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """qr(A, mode='reduced', *, out=None) -> (Tensor, Tensor)

    Orthonormal columns Q and an upper triangle R with A = Q R. `mode`: "reduced", "complete" (Q is
    square) or "r" (Q is empty).

    >>> import rushlight as torch
    >>> Q, R = torch.linalg.qr(torch.tensor([[3.], [4.]]))
    >>> R.abs()
    tensor([[5.]])
    """
    tensor_at(A, "linalg_qr")
    return named("linalg_qr", return_types.linalg_qr, _qr(A, mode), out)


@function()
def qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """qr(input, some=True, *, out=None) -> (Tensor, Tensor)

    The older form of `linalg.qr`. Deprecated, in PyTorch too.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.qr(torch.tensor([[3.], [4.]])).R.abs()
    tensor([[5.]])
    """
    outdated("qr", "qr")
    tensor_at(input, "qr", "input")
    results = _qr(input, "reduced" if some else "complete")
    return named("qr", return_types.qr, results, out)


@function()
def geqrf(input: Any, *, out: Any = None) -> Any:
    """geqrf(input, *, out=None) -> (Tensor, Tensor)

    QR as LAPACK leaves it: R with the reflectors below its diagonal, and their factors. It has no
    derivative.

    >>> import rushlight as torch
    >>> a, tau = torch.geqrf(torch.tensor([[3.], [4.]]))
    >>> a[0].abs()
    tensor([5.])
    """
    array = tensor_at(input, "geqrf", "input")
    if array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    lapack_only(array, "geqrf_cpu")
    return named("geqrf", return_types.geqrf, apply(Geqrf(), input), out)


# --- reflectors -----------------------------------------------------------------------------------
def _reflectors(function: str, a: Any, tau: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{function}: input must have at least 2 dimensions.")
    if a.dtype != tau.dtype:
        raise RuntimeError(
            f"{function}: tau dtype {dtypes.of(tau.dtype).scalar_type} does not match input dtype "
            f"{dtypes.of(a.dtype).scalar_type}"
        )


@function(method=False, free=False, namespace="linalg")
def householder_product(A: Any, tau: Any, *, out: Any = None) -> Any:
    """householder_product(A, tau, *, out=None) -> Tensor

    The first columns of the product of the reflectors that stand below the diagonal of A.

    >>> import rushlight as torch
    >>> torch.linalg.householder_product(torch.ones(2, 1), torch.tensor([1.]))
    tensor([[ 0.],
            [-1.]])
    """
    a = tensor_at(A, "linalg_householder_product", "input")
    factors = tensor_at(tau, "linalg_householder_product", "tau", 2)
    title = "torch.linalg.householder_product"
    if a.ndim >= 2 and a.shape[-2] < a.shape[-1]:
        raise RuntimeError(
            f"{title}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if a.ndim >= 2 and a.shape[-1] < factors.shape[-1]:
        raise RuntimeError(
            f"{title}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    _reflectors(title, a, factors)
    lapack_only(a, "orgqr_cpu")
    what = HouseholderProduct()
    return into("linalg_householder_product", (A, tau), out, lambda: apply(what, A, tau))


@function()
def orgqr(input: Any, input2: Any, *, out: Any = None) -> Any:
    """orgqr(input, tau) -> Tensor

    Another name of `linalg.householder_product`.

    >>> import rushlight as torch
    >>> a, tau = torch.geqrf(torch.tensor([[3.], [4.]]))
    >>> torch.orgqr(a, tau).abs()
    tensor([[0.6000],
            [0.8000]])
    """
    tensor_at(input, "orgqr", "input")
    return householder_product(input, input2, out=out)


@function()
def ormqr(
    input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False,
    *, out: Any = None,
) -> Any:  # fmt: skip
    """ormqr(input, tau, other, left=True, transpose=False, *, out=None) -> Tensor

    The product of reflectors times a matrix (a matrix times it, unless `left`); the conjugate
    transpose of that product if `transpose`.

    >>> import rushlight as torch
    >>> torch.ormqr(torch.ones(2, 1), torch.tensor([1.]), torch.eye(2))
    tensor([[ 0., -1.],
            [-1.,  0.]])
    """
    a = tensor_at(input, "ormqr", "input")
    factors, x = tensor_at(tau, "ormqr", "tau", 2), tensor_at(other, "ormqr", "other", 3)
    if a.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    side = -2 if left else -1
    if factors.shape[-1] != min(x.shape[side], a.shape[-1]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if x.shape[side] != a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    _reflectors("torch.ormqr", a, factors)
    lapack_only(a, "ormqr_cpu")
    what = Ormqr(bool(left), bool(transpose))
    return into("ormqr", (input, tau, other), out, lambda: apply(what, input, tau, other))
