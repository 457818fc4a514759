"""Norms of vectors: every order, corners, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces
from tests.ops.reduction.helpers import INF, gradient, same, tensor


@pytest.mark.parametrize(
    ("p", "value", "grad"),
    [
        ("fro", 5.0, [0.6, 0.0, -0.8]),
        (2, 5.0, [0.6, 0.0, -0.8]),
        (1, 7.0, [1.0, 0.0, -1.0]),
        (INF, 4.0, [0.0, 0.0, -1.0]),
        (-INF, 0.0, [0.0, 0.0, 0.0]),
        (3, 91.0 ** (1 / 3), [9 / 91 ** (2 / 3), 0.0, -16 / 91 ** (2 / 3)]),
    ],
)
def test_norms(p: Any, value: float, grad: list[float]) -> None:
    same(tensor([3.0, 0.0, -4.0]).norm(p), value)
    same(gradient(lambda x: x.norm(p), [3.0, 0.0, -4.0]), grad)


def test_norm_corners() -> None:
    same(tensor([3.0, 0.0, -4.0]).norm(0), 2.0)
    for p in (2, 1.5, 3, 0.5):
        same(gradient(lambda x, p=p: x.norm(p), [0.0, 0.0]), [0.0, 0.0])
    same(gradient(lambda x: x.norm(INF), [0.0, 2.0, -2.0]), [0.0, 0.5, -0.5])
    x = tensor([[3.0, 4.0], [6.0, 8.0]])
    same(x.norm(dim=1), [5.0, 10.0])
    same(x.norm(2, 1, True), [[5.0], [10.0]])
    same(namespaces["linalg"]["vector_norm"](x, 1, dim=0), [9.0, 12.0])
    same(tensor([3.0 + 4.0j, 0.0], np.complex128).norm(), 5.0)
    with pytest.raises(RuntimeError, match="cannot compute the inf norm on an empty tensor"):
        tensor([]).norm(INF)
    with pytest.raises(RuntimeError, match=r"linalg\.vector_norm: Expected a floating point"):
        tensor([1], np.int64).norm()
    with pytest.raises(RuntimeError, match="convertible without narrowing"):
        x.norm(2, dtype=torch.float32)
    same(torch.dist(tensor([1.0, 2.0]), tensor([[4.0, 6.0]])), 5.0)
