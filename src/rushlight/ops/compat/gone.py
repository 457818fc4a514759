"""Methods about streams, and methods that PyTorch keeps only to say that they are gone."""

from __future__ import annotations

from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.ops.registry import function


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
