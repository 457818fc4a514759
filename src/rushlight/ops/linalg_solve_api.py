"""The public functions of `linalg_solve`: inverses, linear systems, determinants."""

from __future__ import annotations

import math
from typing import Any

from rushlight import dtypes, return_types
from rushlight.core.record import apply
from rushlight.ops.compare import where
from rushlight.ops.contract import into
from rushlight.ops.linalg_parts import (
    check_info,
    check_sides,
    check_square,
    floating,
    lapack_only,
    named,
    outdated,
    tensor_at,
)
from rushlight.ops.linalg_solve import (
    CholeskyInverse,
    CholeskySolve,
    Det,
    Inv,
    Slogdet,
    Solve,
    SolveTriangular,
    TriangularSolve,
)
from rushlight.ops.matmul import broadcast_shapes
from rushlight.ops.table import function

__all__ = ["inv", "inv_ex", "solve"]


# --- inverses -------------------------------------------------------------------------------------
def _inverted(A: Any, function: str) -> Any:
    check_square(A.array, function)
    floating(A.array, function)
    return apply(Inv(), A)


@function(method=False, free=False, namespace="linalg")
def inv(A: Any, *, out: Any = None) -> Any:
    """inv(A, *, out=None) -> Tensor

    The inverse of a square matrix, or of each of a batch.

    >>> import rushlight as torch
    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    tensor_at(A, "linalg_inv")
    return into("linalg_inv_ex", (A,), out, lambda: _sure_inverse(A))


def _sure_inverse(A: Any) -> Any:
    inverse, info = _inverted(A, "linalg.inv")
    check_info("linalg.inv", info, "inv")
    return inverse


@function(method=False, free=False, namespace="linalg")
def inv_ex(A: Any, *, check_errors: bool = False, out: Any = None) -> Any:
    """inv_ex(A, *, check_errors=False, out=None) -> (Tensor, Tensor)

    The inverse, and which pivot is zero (0: none), in place of an error.

    >>> import rushlight as torch
    >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    tensor_at(A, "linalg_inv_ex")
    results = _inverted(A, "linalg.inv")
    if check_errors:
        check_info("linalg.inv_ex", results[1], "inv")
    return named("linalg_inv_ex", return_types.linalg_inv_ex, results, out)


@function()
def inverse(input: Any, *, out: Any = None) -> Any:
    """inverse(input, *, out=None) -> Tensor

    Another name of `linalg.inv`.

    >>> import rushlight as torch
    >>> torch.inverse(torch.tensor([[4.]]))
    tensor([[0.2500]])
    """
    tensor_at(input, "inverse", "input")
    return inv(input, out=out)


@function()
def cholesky_inverse(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """cholesky_inverse(L, upper=False, *, out=None) -> Tensor

    The inverse of a positive matrix from its triangular factor.

    >>> import rushlight as torch
    >>> torch.cholesky_inverse(torch.tensor([[2.]]))
    tensor([[0.2500]])
    """
    array = tensor_at(input, "cholesky_inverse", "input")
    check_square(array, "cholesky_inverse")
    lapack_only(array, "cholesky_inverse_out_cpu")
    what = CholeskyInverse(bool(upper))
    return into("cholesky_inverse", (input,), out, lambda: apply(what, input))


# --- systems --------------------------------------------------------------------------------------
def _solved(A: Any, B: Any, left: bool, function: str) -> Any:
    a, b = tensor_at(A, function), tensor_at(B, function, "B", 2)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{dtypes.of(a.dtype).scalar_type} and B of type {dtypes.of(b.dtype).scalar_type} "
            "instead"
        )
    check_square(a, "linalg.solve")
    floating(a, "linalg.solve")
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and a.shape[:-1] == b.shape)
    check_sides(a, b[..., None] if vector else b, left, "linalg.solve")
    return apply(Solve(bool(left), vector), A, B)


@function(method=False, free=False, namespace="linalg")
def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """solve(A, B, *, left=True, out=None) -> Tensor

    The X of A X = B, or of X A = B unless `left`; B may be a vector.

    >>> import rushlight as torch
    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    return into("linalg_solve", (A, B), out, lambda: _sure_solution(A, B, left))


def _sure_solution(A: Any, B: Any, left: bool) -> Any:
    result, info = _solved(A, B, left, "linalg_solve")
    check_info("torch.linalg.solve", info, "solve")
    return result


@function(method=False, free=False, namespace="linalg")
def solve_ex(
    A: Any, B: Any, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """solve_ex(A, B, *, left=True, check_errors=False, out=None) -> (Tensor, Tensor)

    As `solve`, with a second result that says which pivot is zero (0: none), in place of an error.

    >>> import rushlight as torch
    >>> torch.linalg.solve_ex(torch.eye(2), torch.ones(2)).info
    tensor(0, dtype=torch.int32)
    """
    results = _solved(A, B, left, "linalg_solve_ex")
    if check_errors:
        check_info("torch.linalg.solve_ex", results[1], "solve")
    return named("linalg_solve_ex", return_types.linalg_solve_ex, results, out)


@function(method=False, free=False, namespace="linalg")
def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Any:
    """solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None) -> Tensor

    The X of A X = B (X A = B unless `left`) for a triangle A; its other triangle is not read.

    >>> import rushlight as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2.]]), torch.tensor([[1.]]), upper=True)
    tensor([[0.5000]])
    """
    a = tensor_at(A, "linalg_solve_triangular", "input")
    b = tensor_at(B, "linalg_solve_triangular", "B", 2)
    check_square(a, "linalg.solve_triangular")
    check_sides(a, b, left, "linalg.solve_triangular")
    lapack_only(a, "triangular_solve_cpu")
    what = SolveTriangular(bool(upper), bool(left), bool(unitriangular))
    if a.dtype != b.dtype:
        B = B.to(dtypes.of(a.dtype))
    return into("linalg_solve_triangular", (A, B), out, lambda: apply(what, A, B))


def _right_side(B: Any, A: Any, function: str) -> None:
    """PyTorch's checks of the older functions, which take the right side first."""
    a, b = A.array, B.array
    check_square(a, "")
    if b.shape[-2] != a.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {function}: each A matrix is {a.shape[-2]} by "
            f"{a.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{dtypes.of(b.dtype).scalar_type} and A of type {dtypes.of(a.dtype).scalar_type} "
            "instead."
        )
    lapack_only(a, function + "_cpu")
    broadcast_shapes(b.shape[:-2], a.shape[:-2])


@function()
def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False,
    *, out: Any = None,
) -> Any:  # fmt: skip
    """triangular_solve(b, A, upper=True, transpose=False, unitriangular=False, *, out=None)

    The X of A X = b for a triangle A, and a copy of A. Deprecated, in PyTorch too: write
    `linalg.solve_triangular`.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.triangular_solve(torch.ones(1, 1), torch.tensor([[2.]])).solution
    tensor([[0.5000]])
    """
    outdated("triangular_solve", "solve_triangular")
    b, a = tensor_at(input, "triangular_solve", "input"), tensor_at(A, "triangular_solve", "A", 2)
    for name, array in (("b", b), ("A", a)):
        if array.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it "
                f"has {array.ndim} dimensions instead"
            )
    _right_side(input, A, "triangular_solve")
    what = TriangularSolve(bool(upper), bool(transpose), bool(unitriangular))
    if a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shapes(b.shape[:-2], a.shape[:-2])
        A = A.expand((*batch, *a.shape[-2:]))
    results = apply(what, input, A)
    return named("triangular_solve", return_types.triangular_solve, results, out)


@function()
def cholesky_solve(input: Any, L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """cholesky_solve(B, L, upper=False, *, out=None) -> Tensor

    The X of A X = B from the triangular factor of a positive matrix A.

    >>> import rushlight as torch
    >>> torch.cholesky_solve(torch.ones(1, 1), torch.tensor([[2.]]))
    tensor([[0.2500]])
    """
    b, factor = tensor_at(input, "cholesky_solve", "input"), tensor_at(L, "cholesky_solve", "L", 2)
    for name, array in (("b", b), ("u", factor)):
        if array.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {array.ndim} dimensions instead"
            )
    _right_side(input, L, "cholesky_solve")
    what = CholeskySolve(bool(upper))
    return into("cholesky_solve", (input, L), out, lambda: apply(what, input, L))


# --- determinants ---------------------------------------------------------------------------------
def _det(A: Any) -> Any:
    check_square(A.array, "linalg.det")
    floating(A.array, "linalg.det")
    return apply(Det(), A)


@function(method=False, free=False, namespace="linalg", name="det")
def linalg_det(A: Any, *, out: Any = None) -> Any:
    """det(A, *, out=None) -> Tensor

    The determinant of a square matrix, or of each of a batch.

    >>> import rushlight as torch
    >>> torch.linalg.det(torch.tensor([[2., 1.], [0., 4.]]))
    tensor(8.)
    """
    tensor_at(A, "linalg_det")
    return into("linalg_det", (A,), out, lambda: _det(A))


@function()
def det(input: Any) -> Any:
    """det(input) -> Tensor

    The determinant of a square matrix, or of each of a batch.

    >>> import rushlight as torch
    >>> torch.det(torch.tensor([[2., 1.], [0., 4.]]))
    tensor(8.)
    """
    tensor_at(input, "det", "input")
    return _det(input)


def _slogdet(A: Any, function: str) -> Any:
    check_square(A.array, function)
    floating(A.array, function)
    return apply(Slogdet(), A)


@function(method=False, free=False, namespace="linalg", name="slogdet")
def linalg_slogdet(A: Any, *, out: Any = None) -> Any:
    """slogdet(A, *, out=None) -> (Tensor, Tensor)

    The sign of the determinant and the logarithm of its magnitude.

    >>> import rushlight as torch
    >>> torch.linalg.slogdet(torch.tensor([[-1., 0.], [0., 1.]]))
    torch.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.))
    """
    tensor_at(A, "linalg_slogdet")
    results = _slogdet(A, "linalg.slogdet")
    return named("linalg_slogdet", return_types.linalg_slogdet, results, out)


@function()
def slogdet(input: Any, *, out: Any = None) -> Any:
    """slogdet(input) -> (Tensor, Tensor)

    Another name of `linalg.slogdet`.

    >>> import rushlight as torch
    >>> torch.slogdet(torch.tensor([[-1., 0.], [0., 1.]])).sign
    tensor(-1.)
    """
    tensor_at(input, "slogdet", "input")
    return named("slogdet", return_types.slogdet, _slogdet(input, "linalg.slogdet"), out)


@function()
def logdet(input: Any) -> Any:
    """logdet(input) -> Tensor

    The logarithm of the determinant: NaN where that is below zero.

    >>> import rushlight as torch
    >>> torch.logdet(torch.eye(2))
    tensor(0.)
    """
    array = tensor_at(input, "logdet", "input")
    sign, size = _slogdet(input, "logdet")
    if array.dtype.kind == "c":
        return sign.log() + size
    return where(sign == -1.0, math.nan, size)
