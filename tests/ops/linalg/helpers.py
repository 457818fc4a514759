"""Matrices, comparing, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight as torch

DOUBLE = torch.float64
KINDS = (torch.float64, torch.complex128)


def matrix(*rows: list[float], dtype: Any = DOUBLE, grad: bool = False) -> Any:
    return torch.tensor(list(rows), dtype=dtype, requires_grad=grad)


def drawn(*shape: int, dtype: Any = DOUBLE, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.is_complex:
        x = x + 1j * rng.standard_normal(shape)
    return torch.tensor(x, dtype=dtype)


def same(a: Any, b: Any, tol: float = 1e-10) -> None:
    b = b.detach().resolve_conj().numpy() if isinstance(b, torch.Tensor) else np.asarray(b)
    np.testing.assert_allclose(a.detach().numpy(), b, rtol=tol, atol=tol)


def slope_is_right(f: Callable[[Any], Any], x: Any, hermitian: bool = False) -> None:
    """The gradient of a real number against differences, in a random direction."""
    x = x.detach().clone().requires_grad_()
    (g,) = torch.autograd.grad(f(x), x)
    t = drawn(*x.shape, dtype=x.dtype, seed=9)
    if hermitian:
        t = (t + t.mH) / 2
    h = 1e-6
    with torch.no_grad():
        expected = (f(x + h * t) - f(x - h * t)) / (2 * h)
    found = (g.conj() * t).sum()
    found = found.real if found.is_complex() else found
    assert abs(found.item() - expected.item()) < 1e-6 * (1 + abs(expected.item()))
