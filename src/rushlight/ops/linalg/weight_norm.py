"""Weights as lengths times directions: what weight normalisation is made of."""

from __future__ import annotations

from typing import Any

from rushlight.ops.checks import one_dim
from rushlight.ops.registry import function, namespaces


@function(method=False)
def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The norm of each slice along `dim`, in a shape that broadcasts; of all elements, for -1.

    Args:
        v: the tensor.
        pow: the order of the norm.

    >>> torch.norm_except_dim(torch.tensor([[3., 4.], [0., 2.]]), 2, 0)
    tensor([[5.],
            [2.]])
    """
    if dim == -1:
        return v.norm(pow)
    kept = one_dim(dim, v.ndim) + v.ndim
    dims = [d for d in range(v.ndim) if d != kept]
    return namespaces["linalg"]["vector_norm"](v, pow, dims, keepdim=True)


@function(method=False)
def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """The directions `v` with the lengths `g`: v g / |v|, slice by slice along `dim`."""
    return v * (g / norm_except_dim(v, 2, dim))
