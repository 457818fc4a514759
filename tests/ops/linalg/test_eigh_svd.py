"""Eigenvalues and singular values: derivatives, phases, equal values, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.linalg.helpers import DOUBLE, KINDS, drawn, same, slope_is_right


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.linalg.eigh(torch.eye(2), UPLO="X"),
         "Expected UPLO argument to be 'L' or 'U', but got X"),
        (lambda: torch.linalg.eig(torch.full((2, 2), math.nan)),
         "torch.linalg.eig: input tensor should not contain infs or NaNs."),
        (lambda: torch.linalg.svd(torch.full((2, 2), math.nan)),
         "linalg.svd: The algorithm failed to converge because the input matrix contained"),
],
)  # fmt: skip
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("dtype", KINDS)
def test_eigenvalues(dtype: Any) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    values, vectors = torch.linalg.eig(a)
    assert values.dtype is torch.complex128
    wide = a.to(torch.complex128)
    same(wide @ vectors, vectors * values[:, None, :])
    same(torch.linalg.eigvals(a), values)
    h = a + a.mH
    values, vectors = torch.linalg.eigh(h)
    assert values.dtype is DOUBLE and (values.diff() > 0).all()
    same(h @ vectors, vectors * values[:, None, :].to(dtype))
    same(torch.linalg.eigvalsh(h, UPLO="U"), values)
    same(torch.linalg.eigvalsh(h.triu(), UPLO="U"), values)
    slope_is_right(lambda x: (torch.linalg.eigh(x).eigenvectors.abs() ** 3).sum(), h, True)
    slope_is_right(lambda x: (torch.linalg.eig(x).eigenvectors.abs() ** 3).sum(), a)
    slope_is_right(lambda x: torch.linalg.eigvals(x).abs().sum(), a)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_singular_vectors_up_to_a_phase(shape: tuple[int, int]) -> None:
    weight = drawn(*shape, seed=5)

    def loss(x: Any) -> Any:
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        joint = (u[:, :1] @ vh[:1]).abs() * weight  # each phase meets its conjugate
        return joint.sum() + (u.abs() ** 3).sum() + (vh.abs() ** 3).sum() + s.prod()

    slope_is_right(loss, drawn(*shape, dtype=torch.complex128))


def test_equal_singular_values() -> None:
    x = torch.eye(2, dtype=DOUBLE, requires_grad=True)
    torch.linalg.matrix_norm(x, "nuc").backward()
    same(x.grad, np.eye(2))
    h = torch.eye(2, dtype=DOUBLE, requires_grad=True)
    torch.linalg.eigvalsh(h).sum().backward()
    same(h.grad, np.eye(2))
