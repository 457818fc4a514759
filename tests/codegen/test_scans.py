"""Running sums and products, along any axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (7,), (9, 5), (4, 6), (3, 300, 2), (2, 3, 700), (1, 1, 4)])
def test_they_are_those_of_numpy(shape: Any, dtype: str) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype)
    tolerance = 4 * np.finfo(dtype).eps
    for axis in range(-len(shape), len(shape)):
        for given in (x, np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2]):
            for product, fn in ((False, np.cumsum), (True, np.cumprod)):
                wanted = fn(x.astype(np.longdouble), axis=axis)
                y = kernels.running(product, False, axis, given)
                assert y.dtype == dtype and y.flags.c_contiguous
                np.testing.assert_allclose(y, wanted, rtol=tolerance)
                wanted = np.flip(fn(np.flip(x.astype(np.longdouble), axis), axis=axis), axis)
                y = kernels.running(product, True, axis, given)
                np.testing.assert_allclose(y, wanted, rtol=tolerance)


def test_what_is_not_finite_stays() -> None:
    x = np.array([1, np.inf, -np.inf, 2, np.nan, 3], np.float32)
    with np.errstate(invalid="ignore"):
        sums, products = np.cumsum(x), np.cumprod(-x)
    np.testing.assert_array_equal(kernels.running(False, False, 0, x), sums)
    np.testing.assert_array_equal(kernels.running(True, False, 0, -x), products)
    zeros = np.array([-0.0, -0.0], np.float32)
    assert not np.signbit(kernels.running(True, False, 0, zeros))[1]
    assert np.signbit(kernels.running(False, False, 0, zeros)).all()
    assert np.signbit(kernels.running(False, True, 0, np.stack([zeros, zeros], 1))).all()


def test_others_are_refused() -> None:
    x = np.ones((2, 3), np.float32)
    for args in ((x.astype(int), 0), (x, 2), (x, -3), (x[:0], 0), (x.astype(">f4"), 0), (1.0, 0),
                 (x, 0.5), (np.float32(1), 0)):  # fmt: skip
        assert kernels.running(False, False, args[1], args[0]) is None
    assert kernels.running(x) is None


def test_gradients() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    g = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for dim, wanted in ((0, [[5, 7, 9], [4, 5, 6]]), (1, [[6, 5, 3], [15, 11, 6]])):
        (found,) = torch.autograd.grad(x.cumsum(dim), x, g)
        assert found.tolist() == wanted and found.is_contiguous()
    (found,) = torch.autograd.grad(x.cumprod(1).sum(), x)
    assert found.tolist() == [[9, 4, 2], [36, 28, 20]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (9,), (5, 4), (4, 7), (2, 3, 11), (3, 1)])
def test_products_of_others(shape: Any, dtype: str) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype)
    x[..., 0] = 0
    wanted = np.empty(shape, np.longdouble)
    for i in range(shape[-1]):
        wanted[..., i] = np.delete(x.astype(np.longdouble), i, -1).prod(-1)
    y = kernels.products_of_others(x)
    np.testing.assert_allclose(y, wanted, rtol=4 * np.finfo(dtype).eps)
    for wrong in (x.astype(int), x[..., :0], x[..., ::-1][..., :2], np.float32(1), 1.0):
        if not getattr(wrong, "ndim", 0) or wrong.dtype.kind == "i" or not wrong.flags.c_contiguous:
            assert kernels.products_of_others(wrong) is None
