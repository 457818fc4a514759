"""Norms and powers of matrices, composed of singular values, inverses and sums as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

from rushlight import dtypes
from rushlight.ops.checks import check_tensor, mismatch, one_dim
from rushlight.ops.linalg.common import check_matrices, check_square, floating, is_per_matrix
from rushlight.ops.linalg.eigh_svd import eigvalsh, svdvals
from rushlight.ops.linalg.lstsq import LEFT_OUT, old_form, tolerances
from rushlight.ops.linalg.solve import inv, inv_ex
from rushlight.ops.numbers import Number, Operand
from rushlight.ops.out import write_out
from rushlight.ops.reduction.family import numpy_names
from rushlight.ops.reduction.vector_norm import vector_norm
from rushlight.ops.registry import function


def _two(dim: Any, rank: int) -> tuple[int, int]:
    """Two different dimensions, not negative."""
    if not isinstance(dim, (tuple, list)):
        raise mismatch("linalg_matrix_norm", dim=dim)
    if len(dim) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(str(d) for d in dim)}"
        )
    first, second = (one_dim(d, rank) % rank for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def _matrix_norm(A: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    array = A._array
    if isinstance(ord, str) and ord not in ("fro", "nuc"):  # PyTorch looks at words first
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    check_matrices(array, "linalg.matrix_norm")
    first, second = _two(dim, array.ndim)
    if not isinstance(ord, str) and abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    have = dtypes.of(array.dtype)
    if not (have.is_floating_point or have.is_complex):
        floating(array, "linalg.matrix_norm")
    if ord == "fro":
        return vector_norm(A, 2, (first, second), keepdim, dtype=dtype)
    if dtype is not None:
        A = A.to(dtype)
    if ord == "nuc" or abs(ord) == 2:
        floating(A._array, "linalg.matrix_norm")
        return _spectral(A, ord, first, second, keepdim)
    if abs(ord) == math.inf:
        first, second = second, first
    sums = vector_norm(A, 1, first, keepdim)
    at = second - (first < second and not keepdim)
    if sums._array.shape[at] == 0 and ord > 0:
        return sums.sum(at, keepdim=keepdim)  # nothing to choose from: 0
    return sums.amax(at, keepdim=keepdim) if ord > 0 else sums.amin(at, keepdim=keepdim)


def _spectral(A: Any, ord: Any, first: int, second: int, keepdim: bool) -> Any:
    """Norms made of singular values."""
    rank = A._array.ndim
    order = [d for d in range(rank) if d not in (first, second)] + [first, second]
    values = svdvals(A.permute(order))
    if ord == "nuc" or (values._array.shape[-1] == 0 and ord > 0):
        y = values.sum(-1, keepdim=keepdim)
    else:
        y = values.amax(-1, keepdim=keepdim) if ord > 0 else values.amin(-1, keepdim=keepdim)
    if not keepdim:
        return y
    return y.unsqueeze(-1).permute([order.index(d) for d in range(rank)])


@function(method=False, free=False, namespace="linalg")
def matrix_norm(
    A: Any, ord: Number | str = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
    dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """The norm of a matrix: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.

    >>> torch.linalg.matrix_norm(torch.tensor([[0., 2.], [3., 0.]]), "nuc")
    tensor(5.)
    """
    return write_out(
        "linalg_matrix_norm", (A,), out, lambda: _matrix_norm(A, ord, dim, keepdim, dtype)
    )


@function(method=False, free=False, namespace="linalg", name="norm")
def linalg_norm(
    A: Any, ord: Number | str | None = None, dim: Any = None, keepdim: bool = False, *,
    out: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The norm of a vector or of a matrix, by the number of dimensions it is taken over.

    >>> torch.linalg.norm(torch.tensor([[0., 2.], [3., 0.]]), 2)
    tensor(3.)
    """
    array = check_tensor(A, "linalg_norm", "input")
    if dim is not None and not isinstance(dim, (tuple, list)):
        dim = (dim,)
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
        )

    def compute() -> Any:
        if isinstance(ord, str):
            return _matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype)
        if ord is None:
            return vector_norm(A, 2, dim, keepdim, dtype=dtype)
        if dim is None and array.ndim not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
                f"Got {array.ndim}D."
            )
        if (array.ndim if dim is None else len(dim)) == 2:
            return _matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype)
        return vector_norm(A, ord, dim, keepdim, dtype=dtype)

    return write_out("linalg_norm", (A,), out, compute)


@function(settles=True)
@numpy_names
def norm(
    input: Any, p: Number | str | None = "fro", dim: Any = None, keepdim: bool = False, *,
    dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """The norm of order `p` of all elements taken as one vector, or along dimensions; of a matrix
    if `p` is 'nuc'.

    >>> torch.norm(torch.tensor([3., 4.]))
    tensor(5.)
    >>> torch.norm(torch.tensor([[3., -4.], [1., 1.]]), p=1, dim=1)
    tensor([7., 2.])
    """
    array = check_tensor(input, "norm")

    def compute() -> Any:
        if not isinstance(p, str):
            return vector_norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype)
        if p == "fro" and (dim is None or not isinstance(dim, (tuple, list)) or len(dim) < 3):
            return vector_norm(input, 2, dim, keepdim, dtype=dtype)
        dims = tuple(range(array.ndim)) if dim is None else dim
        dims = dims if isinstance(dims, (tuple, list)) else (dims,)
        return _matrix_norm(input, p, dims, keepdim, dtype)

    return write_out("norm", (input,), out, compute)


@function(method=False)
def nuclear_norm(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The sum of the singular values of a matrix.

    >>> torch.nuclear_norm(torch.tensor([[0., 2.], [3., 0.]]))
    tensor(5.)
    """
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, out=out)


# --- condition and rank ---------------------------------------------------------------------------
@function(method=False, free=False, namespace="linalg")
def cond(A: Any, p: Number | str | None = None, *, out: Any = None) -> Any:
    """How much a matrix can enlarge relative errors: the norm of A times that of its inverse. By
    default the largest singular value over the smallest.

    >>> torch.linalg.cond(torch.tensor([[4., 0.], [0., 2.]]))
    tensor(2.)
    """
    array = check_tensor(A, "linalg_cond", "input")
    if array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    return write_out("linalg_cond", (A,), out, lambda: _cond(A, p))


def _cond(A: Any, p: Any) -> Any:
    array = A._array
    if array.size == 0:
        return A.detach().real.new_zeros(array.shape[:-2])
    if p is None or p in (2, -2):
        values = svdvals(A)
        high, low = values[..., :1], values[..., -1:]
        return (low / high if p == -2 else high / low).squeeze(-1)
    known = p in ("fro", "nuc") if isinstance(p, str) else abs(p) in (1, math.inf)
    if not known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(array, f"linalg.cond(ord={p})")
    if p == "nuc":
        values = svdvals(A)
        return values.sum(-1) * (1 / values).sum(-1)
    inverse, info = inv_ex(A)
    inverse = inverse.masked_fill((info != 0)[..., None, None], math.inf)
    size = matrix_norm(A, p) * matrix_norm(inverse, p)
    return size.nan_to_num(math.inf, math.inf, -math.inf)


@function(method=False, free=False, namespace="linalg")
def matrix_rank(
    A: Any, tol: Operand = LEFT_OUT, hermitian: bool = False, *, atol: Operand | None = None,
    rtol: Operand | None = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """How many singular values are greater than max(atol, rtol times the largest).

    >>> torch.linalg.matrix_rank(torch.tensor([[1., 1.], [1., 1.]]))
    tensor(1)
    """
    array = check_tensor(A, "linalg_matrix_rank", "input")
    check_matrices(array, "torch.linalg.matrix_rank", "input")
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double")
    A = A.detach()
    if tol is not LEFT_OUT:
        old_form("linalg_matrix_rank", A, "tol", tol, atol, rtol)
        atol, rtol = tol, 0.0

    def compute() -> Any:
        if array.size == 0:
            return A.new_zeros(array.shape[:-2], dtype=dtypes.int64)
        sizes = eigvalsh(A).abs() if hermitian else svdvals(A)
        least, share = (
            t.unsqueeze(-1) if is_per_matrix(t) else t for t in tolerances(array, atol, rtol)
        )
        limit = sizes.amax(-1, keepdim=True) * share
        limit = limit.maximum(least) if is_per_matrix(least) else limit.clamp(min=least)
        return (sizes > limit).sum(-1)

    return write_out("linalg_matrix_rank", (A,), out, compute)


# --- powers ---------------------------------------------------------------------------------------
@function(method=False, free=False, namespace="linalg", name="matrix_power")
def linalg_matrix_power(A: Any, n: int, *, out: Any = None) -> Any:
    """A square matrix multiplied by itself, n times; its inverse if n is negative.

    Args:
        n: the power.

    >>> torch.linalg.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    return _matrix_power(A, n, out, "linalg_matrix_power")


@function()
def matrix_power(input: Any, n: int, *, out: Any = None) -> Any:
    """Another name of `linalg.matrix_power`.

    Args:
        n: the power.

    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    return _matrix_power(input, n, out, "matrix_power")


def _matrix_power(A: Any, n: Any, out: Any, function: str) -> Any:
    array = check_tensor(A, function, "input")
    check_square(array, "linalg.matrix_power")
    return write_out(function, (A,), out, lambda: _power(A, n))


def _rows(A: Any) -> Any:
    """A copy in row order."""
    return A.clone(memory_format=dtypes.contiguous_format)


def _power(A: Any, n: int) -> Any:
    if n == 0:
        one = A.detach().new_ones(A._array.shape[-1]).diag_embed()
        return _rows(A).copy_(one)
    if n == 1:
        return _rows(A)
    if n < 0:
        A = inv(A)
        n = -n
    if n == 1:
        return A
    if n == 3:
        return A @ A @ A
    y: Any = None
    while n:  # squares, of which the bits of n choose
        if n & 1:
            y = A if y is None else y @ A
        n >>= 1
        if n:
            A = A @ A
    return y
