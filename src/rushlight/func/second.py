"""Second derivatives: `hessian`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.func.forward import jacfwd
from rushlight.func.reverse import jacrev

__all__ = ["hessian"]


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that computes the Hessian of `func`, forward over backward.

    >>> import rushlight as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
