"""All decompositions: factors give the matrix back, names of results, older forms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.linalg.helpers import DOUBLE, KINDS, drawn, matrix, same


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 0), (0, 2), (2, 3, 3)])
def test_products_of_factors_give_the_matrix_back(dtype: Any, shape: tuple[int, ...]) -> None:
    a = drawn(*shape, dtype=dtype)
    m, n = shape[-2:]
    k = min(m, n)
    for mode, width in (("reduced", k), ("complete", m)):
        q, r = torch.linalg.qr(a, mode=mode)
        assert q.shape == (*shape[:-2], m, width) and r.shape == (*shape[:-2], width, n)
        same(q @ r, a)
        same(r, r.triu())
        same(q.mH @ q, torch.eye(width, dtype=dtype).expand(*shape[:-2], width, width))
    p, low, high = torch.linalg.lu(a)
    same(p @ low @ high, a)
    same(low, low.tril())
    for mine, other in zip(torch.lu_unpack(*torch.linalg.lu_factor(a)), (p, low, high)):
        same(mine, other)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    same((u * s[..., None, :].to(dtype)) @ vh, a)
    u, s, vh = torch.linalg.svd(a)
    assert u.shape[-1] == m and vh.shape[-2] == n and s.dtype is DOUBLE
    same(torch.linalg.svdvals(a), s)
    y = torch.linalg.pinv(a)
    assert y.shape == (*shape[:-2], n, m)
    same(a @ y @ a, a)


def test_names_of_results() -> None:
    x = torch.eye(2)
    assert torch.svd(x).V.shape == (2, 2)
    assert torch.linalg.eigh(x).eigenvalues.tolist() == [1, 1]
    assert repr(torch.linalg.slogdet(x)).startswith("torch.return_types.linalg_slogdet(\nsign=")
    u, _, v = torch.svd(torch.ones(2, 3), compute_uv=False)
    assert u.tolist() == np.zeros((2, 2)).tolist() and v.shape == (3, 3)
    q, r = torch.empty(0), torch.empty(0)
    torch.linalg.qr(x, out=(q, r))
    assert q.shape == r.shape == (2, 2)


def test_older_forms_warn() -> None:
    x = matrix([4.0, 0.0], [0.0, 9.0], grad=True)
    for call, new in (
        (lambda: torch.cholesky(x), "cholesky"), (lambda: torch.qr(x), "qr"),
        (lambda: torch.lu(x), "lu_factor"), (lambda: torch.triangular_solve(x, x), "solve_triang"),
    ):  # fmt: skip
        with pytest.warns(UserWarning, match=f"is deprecated in favor of torch.linalg.{new}"):
            call()
    with warnings.catch_warnings(action="ignore"):
        y = torch.cholesky(x)
        assert y.grad_fn.name() == "CholeskyBackward0"
        same(y, np.diag([2, 3]))
