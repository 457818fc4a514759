"""Vector products in C are NumPy's, and their gradients those of the rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3,), 0), ((5, 3), -1), ((3, 40), 0), ((2, 3, 4), 1), ((0, 3), 1), ((3, 3, 3), -2)],
)
def test_products(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    a, b, g = numbers(shape, dtype), numbers(shape, dtype)[..., ::-1].copy(), numbers(shape, dtype)
    y = kernels.crossed(axis, a, b)
    assert y.dtype == dtype and y.flags.c_contiguous
    np.testing.assert_array_equal(y, np.cross(a, b, axis=axis))
    for wanted in range(1, 4):
        left, right = kernels.crossed_back(axis, wanted, g, a, b)
        assert (left is None, right is None) == (not wanted & 1, not wanted & 2)
        if left is not None:
            np.testing.assert_array_equal(left, np.cross(b, g, axis=axis))
        if right is not None:
            np.testing.assert_array_equal(right, np.cross(g, a, axis=axis))


def test_what_it_leaves() -> None:
    a, b = numbers((5, 3), "float32"), numbers((5, 3), "float32")
    for args in (
        (0, a, b), (1, a, b[:1]), (1, a, b.astype("f8")), (1, a.astype(int), b.astype(int)),
        (2, a, b), (0, a.T, b.T), (-1, a[0, 0], b[0, 0]), (1, 1.0, b), (1, a),
    ):  # fmt: skip
        assert kernels.crossed(*args) is None
    assert kernels.crossed_back(1, 3, a, b, b[:1]) is None
    assert kernels.crossed_back(1, 3, a[:1], b, b) is None


def test_broadcast_operands_take_the_rule() -> None:
    a = torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], requires_grad=True)
    b = torch.tensor([[0.0, 0.0, 1.0]], requires_grad=True)
    y = torch.linalg.cross(a, b)
    assert y.tolist() == [[2.0, -1.0, 0.0], [1.0, 0.0, 0.0]]
    ga, gb = torch.autograd.grad(y.sum(), (a, b))
    assert ga.tolist() == [[-1.0, 1.0, 0.0]] * 2 and gb.shape == (1, 3)
