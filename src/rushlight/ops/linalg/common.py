"""What the files of linear algebra share: matrices in rules, checks, results with names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values
from rushlight.core.families import conj
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import not_implemented
from rushlight.ops.view.expand import broadcast_shape

_INT: Final = dtypes.int64.numpy


class LinAlgError(RuntimeError):
    """What a function of linear algebra raises where the numbers do not allow an answer."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = "torch._C"  # as tracebacks of PyTorch show it


# --- in rules -------------------------------------------------------------------------------------
def mt(x: Any) -> Any:
    """The transposed matrix."""
    return v.swap(x, -1, -2)


def mh(x: Any) -> Any:
    """The transposed matrix of the conjugates."""
    return v.swap(conj(x), -1, -2)


def by_columns(x: Any, fresh: bool = False) -> Any:
    """A matrix with its columns one after another in memory, as LAPACK leaves what it computes;
    copied only if it is not, unless a `fresh` one is wanted."""
    return mt(v.laid_out(mt(x), None) if fresh else v.contiguous(mt(x)))


def hermitian(x: Any) -> Any:
    """The Hermitian part of a matrix."""
    return (x + mh(x)) / 2


def row_scale(d: Any) -> Any:
    """A vector, to scale the rows of a matrix by."""
    return v.window(d, (..., None))


def column_scale(d: Any) -> Any:
    """A vector, to scale the columns of a matrix by."""
    return v.window(d, (..., None, v.ALL))


def eye(like: Any, n: int) -> Any:
    """Where a matrix of `n` rows and columns has its diagonal."""
    count = v.iota(like, n, _INT)
    return v.equal(v.window(count, (v.ALL, None)), count)


def diag(d: Any) -> Any:
    """The matrix with a vector on its diagonal."""
    return v.where(eye(d, d.shape[-1]), row_scale(d), 0)


def diagonal_of(x: Any) -> Any:
    """The diagonal of a matrix, as a vector."""
    return v.diagonal(x, 0, -2, -1)


def half_diagonal(x: Any) -> Any:
    """A square matrix with its diagonal halved."""
    return v.where(eye(x, x.shape[-1]), x / 2, x)


def quotient(x: Any, e: Any) -> Any:
    """x / e, and 0 for 0 / 0: equal eigenvalues harm only a gradient that tells them apart."""
    return x / v.where(v.logical_and(v.equal(x, 0), v.equal(e, 0)), 1, e)


def lower_solve(a: Any, b: Any) -> Any:
    """inv(a) @ b of a lower triangle `a`."""
    return lapack.solve_triangular(a, b, False, False)


def upper_solve(a: Any, b: Any) -> Any:
    """inv(a) @ b of an upper triangle `a`."""
    return lapack.solve_triangular(a, b, True, False)


# --- for samples ----------------------------------------------------------------------------------
def on_subspace(cls: Any, project: Callable[[Any], Any], at: int = 0) -> Any:
    """The op class `cls` after a projection of input `at`.

    PyTorch's rules for matrices of which one triangle is read (`cholesky`, `eigh`) are derivatives
    along Hermitian directions, or triangular ones. Those of this class are derivatives in all.
    """

    class Projected(cls):  # type: ignore[misc]  # the base is a value
        def forward(self, *xs: Any) -> Any:
            return super().forward(*xs[:at], project(xs[at]), *xs[at + 1 :])

        def vjp(self, node: Any, g: Any, *saved: Any) -> Any:
            found = list(super().vjp(node, g, *saved))
            found[at] = project(found[at])
            return found

        def jvp(self, ts: Any, xs: Any, y: Any) -> Any:
            xs = (*xs[:at], project(xs[at]), *xs[at + 1 :])
            t = None if ts[at] is None else project(ts[at])
            return super().jvp((*ts[:at], t, *ts[at + 1 :]), xs, y)

    return Projected


def positive(draw: Any, *shape: int, complex: bool = False) -> Any:
    """Hermitian matrices with eigenvalues above zero, well apart."""
    return hermitian((draw.complex_square if complex else draw.square)(*shape))


def lower(x: Any) -> Any:
    """The lower triangle: a projection."""
    return v.triangle(x, 0, True)


# --- in public functions --------------------------------------------------------------------------
def is_per_matrix(tolerance: Any) -> bool:
    """Whether a tolerance is a tensor (one number a matrix), not a number."""
    return isinstance(tolerance, TensorBase)


def check_matrices(array: Any, function: str, name: str = "A") -> None:
    """Refuse what has fewer than two dimensions."""
    if array.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def check_square(array: Any, function: str, name: str = "A") -> None:
    """Refuse what is not a batch of square matrices."""
    check_matrices(array, function, name)
    m, n = array.shape[-2:]
    if m != n:
        start = f"{function}: " if function else ""
        raise RuntimeError(
            f"{start}A must be batches of square matrices, but they are {m} by {n} matrices"
        )


def floating(array: Any, function: str, kernel: str = "") -> None:
    """Refuse integers, and floats that LAPACK has no routines for: in the name of the kernel, where
    PyTorch looks at them no earlier."""
    dtype = dtypes.of(array.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. "
            f"Got {dtype.scalar_type}"
        )
    if dtype.itemsize < (8 if dtype.is_complex else 4):
        if kernel:
            raise not_implemented(kernel, array.dtype)
        raise RuntimeError(
            f"{function}: Low precision dtypes not supported. Got {dtype.scalar_type}"
        )


def lapack_only(array: Any, kernel: str) -> None:
    """PyTorch's error of the kernels that do not look at dtypes before they compute."""
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise not_implemented(kernel, array.dtype)


def check_sides(a: Any, b: Any, left: bool, function: str) -> None:
    """Refuse sides of A X = B (X A = B unless `left`) that do not fit each other."""
    check_matrices(b, function, "B")
    if b.shape[-2 if left else -1] != a.shape[-1]:
        (m, n), (p, q) = a.shape[-2:], b.shape[-2:]
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({m}x{n} and {p}x{q})"
        )
    broadcast_shape(b.shape[:-2], a.shape[:-2])


_REASONS: Final = {
    "cholesky": "The factorization could not be completed because the input is not "
    "positive-definite (the leading minor of order {0} is not positive-definite).",
    "inv": "The diagonal element {0} is zero, the inversion could not be completed because the "
    "input matrix is singular.",
    "solve": "The solver failed because the input matrix is singular.",
    "lu_factor": "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. "
    "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
    "linalg.lu_factor_ex(A, pivot)",
}


def check_info(function: str, info: Any, reason: str, kind: type[Exception] = LinAlgError) -> None:
    """Raise PyTorch's error for the first matrix of a batch that has none of what was wanted."""
    infos = bottom(info._array)  # inside vmap, of all members
    if not has_values(infos):
        return
    numbers = infos.reshape(-1)
    if not numbers.any():
        return
    at = int(numbers.astype(bool).argmax())
    where_ = f"(Batch element {at}): " if infos.ndim else ""
    raise kind(f"{function}: {where_}{_REASONS[reason].format(int(numbers[at]))}")


def warn_outdated(old: str, new: str) -> None:
    """Warn, as PyTorch does, of a function that has a successor."""
    warnings.warn(
        f"torch.{old} is deprecated in favor of torch.linalg.{new} and will be removed in a future "
        "PyTorch release.",
        stacklevel=3,
    )
