"""`inv` and `solve`: values, gradients, singular matrices, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.linalg.helpers import KINDS, drawn, matrix, same


def test_inverse() -> None:
    x = matrix([2.0, 1.0], [0.0, 4.0], grad=True)
    y = torch.linalg.inv(x)
    same(y, [[0.5, -0.125], [0.0, 0.25]])
    assert y.grad_fn.name() == "LinalgInvExBackward0"
    y.sum().backward()
    same(x.grad, -(y.sum(0)[:, None] * y.sum(1)))  # -inv(x)ᵀ @ ones @ inv(x)ᵀ
    assert torch.inverse(torch.ones(0, 3, 3)).shape == (0, 3, 3)
    same(x.inverse(), y)


def test_singular_matrices_are_refused_by_name() -> None:
    zero = torch.zeros(2, 2)
    batch = torch.stack([torch.eye(2), zero])
    error = torch.linalg.LinAlgError
    assert issubclass(error, RuntimeError) and error.__name__ == "_LinAlgError"
    with pytest.raises(error, match=r"^linalg.inv: The diagonal element 1 is zero, the inversion"):
        torch.linalg.inv(zero)
    with pytest.raises(error, match=r"^linalg.inv: \(Batch element 1\): The diagonal element 1 is"):
        torch.inverse(batch)
    with pytest.raises(error, match="^torch.linalg.solve: The solver failed because the input"):
        torch.linalg.solve(zero, torch.ones(2))
    inverse, info = torch.linalg.inv_ex(batch)
    assert info.tolist() == [0, 1] and info.dtype is torch.int32
    same(inverse[0], np.eye(2))
    with pytest.raises(RuntimeError, match=r"^torch.linalg.lu_factor: U\[1,1\] is zero and using"):
        torch.linalg.lu_factor(zero)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.linalg.inv(torch.ones(2)), "linalg.inv: The input tensor A must have at"),
        (lambda: torch.linalg.inv(torch.ones(2, 2, dtype=torch.int64)),
         "linalg.inv: Expected a floating point or complex tensor as input. Got Long"),
        (lambda: torch.linalg.inv(torch.ones(2, 2).half()),
         "linalg.inv: Low precision dtypes not supported. Got Half"),
        (lambda: torch.linalg.solve(torch.eye(2), torch.ones(3)),
         "linalg.solve: Incompatible shapes of A and B for the equation AX = B"),
],
)  # fmt: skip
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("dtype", KINDS)
def test_solutions(dtype: Any) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    b = drawn(3, 2, dtype=dtype, seed=1)
    same(a @ torch.linalg.solve(a, b), b.expand(2, 3, 2))
    vector = drawn(2, 3, dtype=dtype, seed=2)  # as many dimensions as A has, less one: vectors
    same((a @ torch.linalg.solve(a, vector)[..., None])[..., 0], vector)
    right = drawn(2, 2, 3, dtype=dtype, seed=3)
    same(torch.linalg.solve(a, right, left=False) @ a, right)
    same(a.triu() @ torch.linalg.solve_triangular(a, b, upper=True), b.expand(2, 3, 2))
    unit = a.tril(-1) + torch.eye(3, dtype=dtype)
    found = torch.linalg.solve_triangular(a, right, upper=False, left=False, unitriangular=True)
    same(found @ unit, right)
    factors = torch.linalg.lu_factor(a)
    for left, adjoint in ((True, False), (True, True), (False, False), (False, True)):
        m = a.mH if adjoint else a
        c = b.expand(2, 3, 2) if left else right
        x = torch.linalg.lu_solve(*factors, c, left=left, adjoint=adjoint)
        same(m @ x if left else x @ m, c)
