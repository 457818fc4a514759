"""Methods of PyTorch 1.0.1 that PyTorch has removed since: programs of that time call them.

Each does what it did, and warns with the name of its successor. They are made of the functions that
took their places; numbers of `fft` and its kin stand in pairs (real, imaginary) along a last
dimension of 2, for there were no complex tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight import dtypes
from rushlight.core.record import apply
from rushlight.ops.fft.transforms import FftC2C, FftC2R, FftR2C
from rushlight.ops.pointwise.complex import view_as_complex, view_as_real
from rushlight.ops.registry import function, functions, namespaces
from rushlight.ops.warned import warn_caller


def _warn(name: str, successor: str) -> None:
    warn_caller(
        f"Tensor.{name} is deprecated, and PyTorch has removed it: use {successor}",
        DeprecationWarning,
    )


def _linalg(name: str, *args: Any, **kwargs: Any) -> Any:
    return namespaces["linalg"][name](*args, **kwargs)


# --- linear equations -----------------------------------------------------------------------------
@function(free=False, returns="tuple[Tensor, Tensor]")
def gesv(input: Any, A: Any) -> Any:
    """The X of A X = input, and the LU factors of A. Removed from PyTorch: write `linalg.solve`.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     x, lu = torch.tensor([[4.], [6.]]).gesv(torch.tensor([[2., 0.], [0., 3.]]))
    >>> x.tolist()
    [[2.0], [2.0]]
    """
    _warn("gesv", "torch.linalg.solve(A, B), and torch.linalg.lu_factor(A) for the factors")
    return _linalg("solve", A, input), _linalg("lu_factor", A)[0]


@function(free=False, returns="tuple[Tensor, Tensor]")
def gels(input: Any, A: Any) -> Any:
    """The X that makes A X come closest to input, and the QR factors of A as LAPACK packs them.
    Where A has more rows than columns, the rows of X behind the solution hold the residuals.
    Removed from PyTorch: write `linalg.lstsq`.
    """
    _warn("gels", "torch.linalg.lstsq(A, B)")
    m, n = A.shape
    if m >= n:
        q, r = _linalg("qr", A, "complete")
        turned = q.mT @ input
        solution = _linalg("solve_triangular", r[:n], turned[:n], upper=True)
        found = functions["cat"]([solution, turned[n:]])
        return found, functions["geqrf"](A)[0]
    q, r = _linalg("qr", A.mT)  # the shortest of all solutions
    found = q @ _linalg("solve_triangular", r.mT, input, upper=False)
    return found, functions["geqrf"](A.mT)[0].mT


@function(free=False, returns="tuple[Tensor, Tensor]")
def trtrs(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The X of A X = input for a triangle A, and a copy of A. Removed from PyTorch: write
    `linalg.solve_triangular`.
    """
    _warn("trtrs", "torch.linalg.solve_triangular(A, B, upper=...)")
    triangle = A.mT if transpose else A
    up = upper != transpose
    found = _linalg("solve_triangular", triangle, input, upper=up, unitriangular=unitriangular)
    return found, A.clone()


# --- LU -------------------------------------------------------------------------------------------
def _check_batch(name: str, x: Any) -> None:
    if x.dim() != 3:
        raise RuntimeError(f"{name}: expected a 3D tensor, got a tensor of shape {list(x.shape)}")


@function(free=False, returns="tuple[Tensor, Tensor]")
def btrifact(input: Any, info: Any = None, pivot: bool = True) -> Any:
    """The LU factors of each matrix of a batch, and the pivots, counted from 1. Removed from
    PyTorch: write `linalg.lu_factor`.
    """
    _warn("btrifact", "torch.linalg.lu_factor(A)")
    _check_batch("btrifact", input)
    if info is None:
        found = _linalg("lu_factor", input, pivot=pivot)
        return found[0], found[1]
    factors, pivots, wrong = _linalg("lu_factor_ex", input, pivot=pivot)
    info.resize_(wrong.shape).copy_(wrong)
    return factors, pivots


@function(free=False, returns="tuple[Tensor, Tensor, Tensor]")
def btrifact_with_info(input: Any, pivot: bool = True) -> Any:
    """`btrifact`, and for each matrix 0 or the place of a pivot that is zero. Removed from PyTorch:
    write `linalg.lu_factor_ex`.
    """
    _warn("btrifact_with_info", "torch.linalg.lu_factor_ex(A)")
    _check_batch("btrifact_with_info", input)
    return tuple(_linalg("lu_factor_ex", input, pivot=pivot))


@function(free=False)
def btrisolve(input: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """The x of A x = input for each vector of a batch, from what `btrifact` made of A. Removed from
    PyTorch: write `linalg.lu_solve`.
    """
    _warn("btrisolve", "torch.linalg.lu_solve(LU, pivots, B)")
    _check_batch("btrisolve", LU_data)
    if input.dim() == 2:
        return _linalg("lu_solve", LU_data, LU_pivots, input.unsqueeze(-1)).squeeze(-1)
    return _linalg("lu_solve", LU_data, LU_pivots, input)


# --- Cholesky -------------------------------------------------------------------------------------
@function(free=False)
def potrf(input: Any, upper: bool = True) -> Any:
    """The triangle U of input = UᵀU, or if not `upper` the L of LLᵀ. Removed from PyTorch: write
    `linalg.cholesky`, which gives L unless told otherwise.
    """
    _warn("potrf", f"torch.linalg.cholesky(A, upper={bool(upper)})")
    return _linalg("cholesky", input, upper=bool(upper))


@function(free=False)
def potri(input: Any, upper: bool = True) -> Any:
    """The inverse of the matrix whose `potrf` this is. Removed from PyTorch: write
    `cholesky_inverse`."""
    _warn("potri", f"torch.cholesky_inverse(L, upper={bool(upper)})")
    return functions["cholesky_inverse"](input, bool(upper))


@function(free=False)
def potrs(input: Any, input2: Any, upper: bool = True) -> Any:
    """The X of A X = input for the matrix A whose `potrf` is `u`. Removed from PyTorch: write
    `cholesky_solve`.
    """
    _warn("potrs", f"torch.cholesky_solve(B, L, upper={bool(upper)})")
    return functions["cholesky_solve"](input, input2, bool(upper))


@function(free=False, returns="tuple[Tensor, Tensor]")
def pstrf(input: Any, upper: bool = True, tol: float = -1) -> Any:
    """A triangle U and an order p, largest pivots first, with input[p][:, p] = UᵀU; if not `upper`
    the L of LLᵀ. Removed from PyTorch, without a successor: `linalg.cholesky` takes no pivots.
    """
    _warn("pstrf", "torch.linalg.cholesky(A), which takes no pivots, or torch.linalg.ldl_factor(A)")
    a = input.detach()
    if a.dim() != 2 or a.shape[0] != a.shape[1]:
        raise RuntimeError(f"pstrf: A should be a square matrix, got shape {list(a.shape)}")
    n = a.shape[0]
    factor = functions["zeros_like"](a)  # a row for each row of `a`, in its own order
    left = a.diagonal().clone()  # what the diagonal has yet to give
    least = n * dtypes.finfo(a.dtype).eps * float(left.max()) if tol < 0 and n else tol
    order = list(range(n))
    for j in range(n):
        rest = left[order[j:]]
        k = j + int(rest.argmax())
        pivot = float(left[order[k]])
        if not pivot > least:
            raise RuntimeError(
                "Lapack Error pstrf : matrix is rank deficient or not positive semidefinite"
            )
        order[j], order[k] = order[k], order[j]
        at, size = order[j], math.sqrt(pivot)
        column = (a[:, at] - factor[:, :j] @ factor[at, :j]) / size
        column[order[:j]] = 0
        column[at] = size
        factor[:, j] = column
        left = left - column * column
    triangle = factor[order]
    pivots = functions["tensor"](order, dtype=dtypes.int32)
    return triangle.mT.contiguous() if upper else triangle, pivots


# --- Fourier transforms ---------------------------------------------------------------------------
def _check_signal(name: str, x: Any, count: int, pairs: bool) -> None:
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"{name}: Expected an input tensor of floating types, but got {x.dtype}")
    if not 1 <= count <= 3:
        raise RuntimeError(f"{name}: Expected signal_ndim to be 1, 2, or 3, but got {count}")
    if x.dim() < count + pairs:
        raise RuntimeError(
            f"{name}: Given signal_ndim={count}, expected an input tensor of at least "
            f"{count + pairs}D, but got input of shape {list(x.shape)}"
        )
    if pairs and x.shape[-1] != 2:
        raise RuntimeError(
            f"{name}: Expected an input tensor with a last dimension of size 2 representing real + "
            f"imaginary components, but got input of shape {list(x.shape)}"
        )


def _last(count: int) -> tuple[int, ...]:
    return tuple(range(-count, 0))


def _factor(sizes: Sequence[int], normalized: bool, inverse: bool) -> float:
    count = math.prod(sizes)
    if normalized:
        return 1 / math.sqrt(count)
    return 1 / count if inverse else 1.0


def _pairs(x: Any, count: int, normalized: bool, inverse: bool) -> Any:
    z = view_as_complex(x.contiguous())
    factor = _factor(z.shape[-count:], normalized, inverse)
    return view_as_real(apply(FftC2C(_last(count), not inverse, factor), z).contiguous())


@function(free=False)
def fft(input: Any, signal_ndim: int, normalized: bool = False) -> Any:
    """The transform of the last `signal_ndim` dimensions in front of the pairs. Removed from
    PyTorch: write `torch.fft.fftn` on complex tensors.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.tensor([[1., 0.], [2., 0.]]).fft(1)
    tensor([[ 3.,  0.],
            [-1.,  0.]])
    """
    _warn("fft", "torch.fft.fftn(torch.view_as_complex(x), ...)")
    _check_signal("fft", input, signal_ndim, True)
    return _pairs(input, signal_ndim, normalized, False)


@function(free=False)
def ifft(input: Any, signal_ndim: int, normalized: bool = False) -> Any:
    """The way back from `fft`. Removed from PyTorch: write `torch.fft.ifftn` on complex tensors."""
    _warn("ifft", "torch.fft.ifftn(torch.view_as_complex(x), ...)")
    _check_signal("ifft", input, signal_ndim, True)
    return _pairs(input, signal_ndim, normalized, True)


@function(free=False)
def rfft(input: Any, signal_ndim: int, normalized: bool = False, onesided: bool = True) -> Any:
    """The transform of real numbers, in pairs: half of it if `onesided`, the rest being conjugate.
    Removed from PyTorch: write `torch.fft.rfftn`.
    """
    _warn("rfft", f"torch.fft.{'rfftn' if onesided else 'fftn'}(x, ...)")
    _check_signal("rfft", input, signal_ndim, False)
    factor = _factor(input.shape[input.dim() - signal_ndim :], normalized, False)
    return view_as_real(
        apply(FftR2C(_last(signal_ndim), bool(onesided), factor), input).contiguous()
    )


@function(free=False)
def irfft(
    input: Any, signal_ndim: int, normalized: bool = False, onesided: bool = True,
    signal_sizes: Any = None,
) -> Any:  # fmt: skip
    """The way back from `rfft`; half a transform does not tell whether the last dimension was even,
    `signal_sizes` does. Removed from PyTorch: write `torch.fft.irfftn`.
    """
    _warn("irfft", "torch.fft.irfftn(torch.view_as_complex(x), s=...)")
    _check_signal("irfft", input, signal_ndim, True)
    z = view_as_complex(input.contiguous())
    sizes = list(z.shape[-signal_ndim:])
    if onesided:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if signal_sizes:
        if len(signal_sizes) != signal_ndim:
            raise RuntimeError(
                "irfft: Expected signal_sizes to be empty (default) or of "
                f"signal_ndim={signal_ndim}-dimensional, but got "
                f"signal_sizes={list(signal_sizes)}"
            )
        sizes = [int(n) for n in signal_sizes]
    last = sizes[-1]
    factor = _factor(sizes, normalized, True)
    return apply(FftC2R(_last(signal_ndim), last, factor), z[..., : last // 2 + 1])
