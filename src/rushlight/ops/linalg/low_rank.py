"""A few singular values or eigenvalues of large matrices."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.ops.checks import check_tensor
from rushlight.ops.registry import function, functions, namespaces


# --- singular values ------------------------------------------------------------------------------
def _basis(A: Any, q: int, niter: int, M: Any) -> Any:
    """Columns, orthonormal, that nearly span those of A - M: Halko, Martinsson and Tropp 2009,
    algorithm 4.4. Its random start is drawn as PyTorch draws it."""
    qr, matmul = namespaces["linalg"]["qr"], functions["matmul"]

    def times(a: Any, m: Any, x: Any) -> Any:
        y = matmul(a, x)
        return y if m is None else y - matmul(m, x)

    start = functions["randn"]((A._array.shape[-1], q), dtype=A.dtype, device=A.device)
    found = qr(times(A, M, start))[0]
    across, shift = A.mH, None if M is None else M.mH
    for _ in range(niter):
        found = qr(times(across, shift, found))[0]
        found = qr(times(A, M, found))[0]
    return found


def _svd(A: Any, q: int, niter: int, M: Any) -> tuple[Any, Any, Any]:
    m, n = A._array.shape[-2:]
    if M is not None:
        M = M.expand(A._array.shape)
    if m < n:
        A, M = A.mH, None if M is None else M.mH
    columns = _basis(A, q, niter, M)
    small = functions["matmul"](columns.mH, A if M is None else A - M)
    u, s, vh = namespaces["linalg"]["svd"](small, full_matrices=False)
    u, v = functions["matmul"](columns, u), vh.mH
    return (v, s, u) if m < n else (u, s, v)


@function(method=False, returns="tuple[Tensor, Tensor, Tensor]")
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """The largest singular values of a matrix with their vectors (U, S, V), nearly: by random
    projection.

    Args:
        A: the matrices.
        q: how many; a few more than are wanted.
        niter: how often to improve the projection.
        M: what to subtract from A; it may have fewer dimensions.

    >>> generator = torch.manual_seed(0)
    >>> torch.svd_lowrank(torch.diag(torch.tensor([3., 2., 0.])), q=2)[1]
    tensor([3.0000, 2.0000])
    """
    check_tensor(A, "svd_lowrank", "A")
    return _svd(A, 6 if q is None else q, 2 if niter is None else niter, M)


@function(method=False, returns="tuple[Tensor, Tensor, Tensor]")
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """The principal components of rows of numbers (U, S, V), nearly: see `svd_lowrank`.

    Args:
        A: the matrices; each row is a sample.
        q: how many components; 6, or fewer if the matrix is small.
        center: whether to subtract the mean of the columns first.
        niter: how often to improve the projection.

    >>> generator = torch.manual_seed(0)
    >>> torch.pca_lowrank(torch.tensor([[1., 0.], [3., 0.]]), q=1)[1]
    tensor([1.4142])
    """
    array = check_tensor(A, "pca_lowrank", "A")
    m, n = array.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if array.dtype.kind not in "fcV":
        A = A.to(dtypes.default)
    return _svd(A - A.mean(-2, keepdim=True) if center else A, q, niter, None)


# --- eigenvalues ----------------------------------------------------------------------------------
@function(method=False, returns="tuple[Tensor, Tensor]")
def lobpcg(
    A: Any, k: int | None = None, B: Any = None, X: Any = None, n: int | None = None,
    iK: Any = None, niter: int | None = None, tol: float | None = None,
    largest: bool | None = None, method: str | None = None, tracker: Any = None,
    ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None,
) -> Any:  # fmt: skip
    """The `k` largest (or smallest) eigenvalues of a symmetric positive definite matrix, of
    A x = λ B x if there is a B, and their vectors in columns.

    They are found by `torch.linalg.eigh`, exactly and at once: `X`, `iK`, `niter`, `tol`, `method`
    and the parameters after it, which steer PyTorch's iteration, change nothing here.

    Args:
        A: the matrices.
        k: how many; as many as X has columns, or 1.
        B: the matrix on the right, symmetric and positive definite.
        X: where to start, for PyTorch.
        n: how many columns X would have.
        largest: whether the largest are wanted, or the smallest.

    >>> torch.lobpcg(torch.diag(torch.tensor([3., 2., 1.])), k=1)[0]
    tensor([3.])
    """
    array = check_tensor(A, "lobpcg", "A")
    m = array.shape[-2]
    if method is not None and method not in ("basic", "ortho"):
        raise ValueError(f"method must be one of ('basic', 'ortho'), got {method}")
    k = (1 if X is None else X._array.shape[-1]) if k is None else k
    n = (k if X is None else X._array.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    linalg = namespaces["linalg"]
    top = largest is None or largest
    if B is None:
        values, vectors = linalg["eigh"](A)
    else:  # with B = L Lᴴ, of inv(L) A inv(Lᴴ)
        factor = linalg["cholesky"](B)
        left = linalg["solve_triangular"](factor, A, upper=False)
        both = linalg["solve_triangular"](factor, left.mH, upper=False).mH
        values, vectors = linalg["eigh"]((both + both.mH) / 2)
        vectors = linalg["solve_triangular"](factor.mH, vectors, upper=True)
    if top:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]
