"""Products of matrices and vectors by the compiled function: as NumPy's, or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels

pytestmark = pytest.mark.skipif(kernels._module is None, reason="there are no kernels")


def made(kind: str, *shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(kind)


@pytest.mark.parametrize("kind", ("f4", "f8"))
def test_products(kind: str) -> None:
    a, b, wide = made(kind, 5, 7), made(kind, 7, 3), made(kind, 14, 10)
    tolerance = 1e-5 if kind == "f4" else 1e-13
    for x, y in ((a, b), (b.T, a.T), (a[::2], wide[::2, 1:4]), (a[:0], b)):
        z = kernels.multiplied(x, y)
        assert z.dtype == kind and z.flags.c_contiguous
        np.testing.assert_allclose(z, x @ y, rtol=tolerance, atol=tolerance)
    for term in (made(kind, 3), made(kind, 5, 3), made(kind, 3, 5).T, made(kind, 5, 6)[:, ::2]):
        z = kernels.multiplied(term, a, b)
        np.testing.assert_allclose(z, term + a @ b, rtol=tolerance, atol=tolerance)
    for x, y in ((a[0], b[:, 1]), (a[0, :0], b[:0, 1]), (wide[::2, 1], wide[:7, 2])):
        z = kernels.multiplied_vectors(x, y)
        assert z.dtype == kind and z.shape == ()
        np.testing.assert_allclose(z, x @ y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", (7, 8, 64, 128, 129))
@pytest.mark.parametrize("columns", (127, 128, 257))
def test_a_batch_times_a_weight(rows: int, columns: int) -> None:
    """Few rows times a weight that is turned: made as the transposed product."""
    x, w, bias = made("f4", rows, 70), made("f4", columns, 70), made("f4", columns)
    for term in ((), (bias,), (made("f4", rows, columns),)):
        y = kernels.multiplied(*term, x, w.T)
        assert y.flags.c_contiguous
        np.testing.assert_allclose(y, x @ w.T + sum(term), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ("f4", "f8"))
@pytest.mark.parametrize(
    "shape", ((31, 5, 6), (32, 5, 6), (32, 0, 6), (40, 400, 300), (40, 500, 300))
)
def test_a_right_factor_in_columns(shape: tuple[int, int, int], kind: str) -> None:
    m, k, n = shape
    x, w = made(kind, m, k), made(kind, n, k)
    before = w.copy()
    y = kernels.multiplied(x, w.T)
    tolerance = 1e-4 if kind == "f4" else 1e-12
    np.testing.assert_allclose(y, x @ w.T, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(w, before)


@pytest.mark.parametrize("columns", range(4))
@pytest.mark.parametrize("shape", ((3, 4, 5), (64, 70, 300), (100, 90, 200), (0, 2, 3), (2, 0, 3)))
def test_gradients_of_factors(columns: int, shape: tuple[int, int, int]) -> None:
    """Each of them wanted or not, and each lying as its factor does."""
    m, k, n = shape
    a, b, g = made("f4", m, k), made("f4", k, n), made("f4", m, n)
    for wanted in range(1, 4):
        kept = (a if wanted & 2 else None, b if wanted & 1 else None)
        left, right = kernels.multiplied_back(columns, 2, wanted, g, *kept)
        assert (left is None, right is None) == (not wanted & 1, not wanted & 2)
        if left is not None:
            np.testing.assert_allclose(left, g @ b.T, rtol=1e-4, atol=1e-4)
            assert left.T.flags.c_contiguous if columns & 1 else left.flags.c_contiguous
        if right is not None:
            np.testing.assert_allclose(right, a.T @ g, rtol=1e-4, atol=1e-4)
            assert right.T.flags.c_contiguous if columns & 2 else right.flags.c_contiguous
    assert kernels.multiplied_back(columns, 3, 1, g, None, None) == (g, None, None)


def test_gradients_that_it_leaves() -> None:
    a, b, g = made("f4", 3, 4), made("f4", 4, 5), made("f4", 3, 5)
    for args in ((g, b, a), (g, a[None], b), (g[0], a, b), (g.astype("f2"), a, b), (g, 1.0, b)):
        assert kernels.multiplied_back(0, 2, 3, *args) is None


def test_what_it_leaves() -> None:
    """Other dtypes and shapes, and terms that must be broadcast further."""
    a, b = made("f4", 5, 7), made("f4", 7, 3)
    for args in (
        (a, b.astype("f8")), (a.astype("i8"), b.astype("i8")), (a, a), (a, b[:, 0]), (a[None], b),
        (made("f4", 1), a, b), (made("f4", 1, 3), a, b), (made("f4"), a, b), (a[0, 0], a, b),
        (a.astype(">f4"), b), (1.0, b), (a,),
        (a[0], a[0], a[0]), (a[0], a[0]),
    ):  # fmt: skip
        assert kernels.multiplied(*args) is None
    for args in ((a, a), (a[0], b[0]), (a[0], a[0].astype("f8")), (a[0],), (a[0], 1.0)):
        assert kernels.multiplied_vectors(*args) is None


def test_nothing_is_said_about_infinities() -> None:
    """NumPy warns of what PyTorch does not; here warnings are errors."""
    x = torch.tensor([[-torch.inf, 1.0], [2.0, 3.0]])
    for y in (x @ x @ x, torch.addmm(x, x @ x, x), torch.mm(x, x @ x)):
        assert y.isnan().any()
    assert (x[0] @ (x[0] * torch.tensor([0.0, 1.0]))).isnan()


def test_addmm_again() -> None:
    """A call that was made before takes other numbers, and other factors for what they are."""
    for seed in range(3):
        torch.manual_seed(seed)
        x, a, b = torch.randn(4), torch.randn(2, 3), torch.randn(3, 4)
        for beta, alpha in ((1, 1), (0.5, 2), (0, 1)):
            y = torch.addmm(x, a, b, beta=beta, alpha=alpha)
            expected = beta * x.numpy() + alpha * (a.numpy() @ b.numpy())
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        torch.addmm(x, b, a)


def test_what_is_left_of_integers() -> None:
    """One tensor of int64 and a number, whichever way it lies, and what is refused."""
    x = torch.arange(-6, 6).reshape(3, 4)
    for t in (x, x.t(), x[:, ::2], x[0, 0]):
        for number in (4, -5, True):
            y = t % number
            assert y.dtype is torch.int64
            assert y.tolist() == (t.numpy() % int(number)).tolist()
    assert (x % 2.5).dtype is torch.float32
    assert torch.func.vmap(lambda r: r % 3)(x).tolist() == (x.numpy() % 3).tolist()
    with torch.inference_mode():
        assert (x % 3).is_inference()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x % 0
