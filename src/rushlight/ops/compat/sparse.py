"""Methods about sparse tensors, on tensors that are never sparse, and methods that PyTorch keeps
only to say that they are gone.

rushlight has one layout, `torch.strided`. What PyTorch answers for a strided tensor is answered
here too, errors included. Making a sparse tensor (`to_sparse` and its like) is the one thing that
PyTorch can do with a strided tensor and rushlight cannot: it raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.core.graph import TensorBase
from rushlight.core.record import recording
from rushlight.ops.numbers import Number
from rushlight.ops.registry import describe, function, variant


def _expects(name: str, what: str) -> RuntimeError:
    return RuntimeError(f"{name} expected {what} tensor layout but got Strided")


def _no_backend(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'CPU' backend. It is for sparse "
        "tensors, and rushlight's tensors are all strided."
    )


def _no_layout(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}(): rushlight has no sparse layout; all its tensors are strided. Keep the tensor "
        "as it is: `x.nonzero()` and `x[x != 0]` give the places and values that are not zero."
    )


def _check_writable(self: Any) -> None:
    if self._requires_grad and recording():
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


# --- what a strided tensor has not ----------------------------------------------------------------
def _refuse(name: str, layout: str = "", kind: str = "Tensor") -> None:
    """Make a method of sparse tensors, which raises. `layout` is what PyTorch's error says that the
    method expects ("": it says that there is no backend), `kind` what the method returns."""

    def method(self: Any) -> Any:
        raise _expects(name, layout) if layout else _no_backend(name)

    function(free=False, returns=kind)(variant(method, name, "Of sparse tensors only."))


_refuse("coalesce", "sparse coordinate")
_refuse("is_coalesced", "sparse coordinate", "bool")
_refuse("indices", "sparse coordinate")
_refuse("values", "sparse")
_refuse("crow_indices", "sparse row compressed")
_refuse("col_indices", "sparse row compressed")
_refuse("ccol_indices", "sparse column compressed")
_refuse("row_indices", "sparse column compressed")
_refuse("_indices")
_refuse("_values")
_refuse("_nnz", kind="int")
_refuse("_dimI", kind="int")
_refuse("_dimV", kind="int")


@function(free=False)
def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Of sparse tensors only."""
    _check_writable(self)
    raise _no_backend("_coalesced_")


@function(free=False)
def sparse_mask(self: Any, mask: Any) -> Any:
    """Needs a sparse mask."""
    raise _no_backend("sparse_mask")


def _refuse_resize(name: str) -> None:
    def resize(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
        _check_writable(self)
        raise _no_backend(name)

    text = describe("Of sparse tensors only.")
    function(free=False)(variant(resize, name, text))


_refuse_resize("sparse_resize_")
_refuse_resize("sparse_resize_and_clear_")


@function()
def smm(input: Any, mat2: Any) -> Any:
    """A sparse matrix times a dense one."""
    raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")


@function()
def sspaddmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Number = 1, alpha: Number = 1, out: Any = None
) -> Any:
    """A sparse matrix times a dense one, added to a sparse one."""
    raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")


# --- what it has ----------------------------------------------------------------------------------
@function(free=False)
def sparse_dim(self: Any) -> int:
    """How many dimensions are sparse: none.

    >>> torch.ones(2, 3).sparse_dim()
    0
    """
    return 0


@function(free=False)
def dense_dim(self: Any) -> int:
    """How many dimensions are dense: all.

    >>> torch.ones(2, 3).dense_dim()
    2
    """
    ndim: int = self._array.ndim
    return ndim


@function(free=False)
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """The tensor itself, in `dtype` if that is given: it is dense.

    >>> x = torch.ones(2)
    >>> x.to_dense() is x
    True
    """
    if dtype is None:
        return self
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            "to_dense(): argument 'dtype' (position 1) must be torch.dtype, not "
            f"{dtypes.type_name(dtype)}"
        )
    return self.to(dtype)


@function(free=False)
def to_sparse(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: rushlight has no sparse layout."""
    raise _no_layout("to_sparse")


@function(free=False)
def to_sparse_coo(self: Any) -> Any:
    """Raises NotImplementedError: rushlight has no sparse layout."""
    raise _no_layout("to_sparse_coo")


@function(free=False)
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """Raises NotImplementedError: rushlight has no sparse layout."""
    raise _no_layout("to_sparse_csr")


# --- streams, and what is gone --------------------------------------------------------------------
@function(free=False)
def record_stream(self: Any, s: Any) -> None:
    """Keep the memory from reuse until `stream` is done with it. NumPy's memory is never reused
    while a tensor holds it, and CuPy's pool waits for its streams: there is nothing to do.
    """
    if isinstance(s, (TensorBase, bool, int, float, str)) or s is None:
        raise RuntimeError("unknown parameter type")


@function(free=False)
def reinforce(self: Any, reward: Any) -> Any:
    """Gone since PyTorch 0.4; raises."""
    raise RuntimeError(
        "reinforce() was removed.\n"
        "Use torch.distributions instead.\n"
        "The gradient that it gave is that of `-(log_prob(action) * reward)`: write that loss, and "
        "call its backward()."
    )


def _gone(name: str, cure: str) -> RuntimeError:
    return RuntimeError(
        "This function was deprecated since version 1.9 and is now removed. "
        f"In place of torch.{name} call {cure}."
    )


@function()
def symeig(input: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> Any:
    """Removed from PyTorch; raises. See `linalg.eigh`."""
    raise _gone("symeig", "torch.linalg.eigvalsh(A, UPLO='U') or torch.linalg.eigh(A, UPLO='U')")


@function()
def eig(self: Any, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Removed from PyTorch; raises. See `linalg.eig`."""
    raise _gone("eig", "torch.linalg.eigvals(A) or torch.linalg.eig(A), whose results are complex")


@function()
def lstsq(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed from PyTorch; raises. See `linalg.lstsq`."""
    raise _gone("lstsq", "torch.linalg.lstsq(A, B), whose arguments come in the other order")


@function(name="solve")
def removed_solve(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed from PyTorch; raises. See `linalg.solve`."""
    raise _gone("solve", "torch.linalg.solve(A, B), whose arguments come in the other order")


@function(method=False, name="matrix_rank")
def removed_matrix_rank(
    input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None
) -> Any:
    """Removed from PyTorch; raises. See `linalg.matrix_rank`."""
    raise _gone("matrix_rank", "torch.linalg.matrix_rank(A, hermitian=symmetric)")
