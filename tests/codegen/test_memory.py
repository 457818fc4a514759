"""Long rows and columns are reduced part by part: Note [Parts of rows] in `codegen.language`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rushlight.arrays import kernels

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")

# shapes and axes: long rows, of one and of several; columns by the thousand and but a few of them,
# with lines that are left over; in front of other axes and behind them
SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((250_000,), None), ((99_999,), None), ((3, 100_001), (-1,)), ((700, 300), None),
    ((400, 2000), (0,)), ((3000, 333), (0,)), ((2, 2000, 300), (1,)), ((2000, 3), (0,)),
    ((129, 32), (0,)), ((128, 33), (0,)), ((20_011, 7), (0,)), ((3, 1000, 5), (1,)),
    ((2, 500, 3, 4), (1,)), ((300, 4, 200, 2), (0, 2)), ((200_000, 4), (0,)), ((1000, 1), (0,)),
]  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def run(name: str, axes: Any, *xs: Any) -> Any:
    kernel = kernels.table[f"{name}.forward"].over(axes, False)
    alone = kernel(*xs)
    before = kernels.use_threads(3)
    try:
        shared = kernel(*xs)
    finally:
        kernels.use_threads(before)
    np.testing.assert_array_equal(alone, shared)
    return alone


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_reductions(shape: tuple[int, ...], axes: Any, dtype: str) -> None:
    x = numbers(shape, dtype)
    wide = x.astype(np.longdouble)
    eps = float(np.finfo(dtype).eps)
    count = x.size / max(np.sum(x, axis=axes).size, 1)
    sums = np.sum(np.abs(wide), axis=axes)
    for name, want, scale in (
        ("Sum.dtype=None", np.sum(wide, axis=axes), sums),
        ("Mean.dtype=None", np.mean(wide, axis=axes), sums / count),
        ("NanSum.dtype=None", np.sum(wide, axis=axes), sums),
    ):
        found = run(name, axes, x)
        assert found.dtype == dtype and found.shape == want.shape
        assert np.all(np.abs(found - want) <= 2 * eps * scale + eps * np.abs(want))
    np.testing.assert_array_equal(run("Amax", axes, x), np.amax(x, axis=axes))
    np.testing.assert_array_equal(run("Amin", axes, x), np.amin(x, axis=axes))
    near = 1 + x * np.asarray(1e-4, dtype)
    product = run("Prod.dtype=None", axes, near)
    exact = np.multiply.reduce(near.astype(np.longdouble), axis=axes)
    np.testing.assert_allclose(product, exact, rtol=(8 + count**0.5) * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("shape", "axes"), SHAPES[:12])
def test_special_values_reach_the_end(
    shape: tuple[int, ...], axes: Any, special: float, dtype: str
) -> None:
    x = numbers(shape, dtype)
    for at in (0, x.size // 2, x.size - 1):
        x.flat[at] = special
        with np.errstate(all="ignore"):
            for name, fn in (("Amax", np.amax), ("Amin", np.amin)):
                np.testing.assert_array_equal(run(name, axes, x), fn(x, axis=axes))
            total = np.sum(x.astype(np.float64), axis=axes)
            found = run("Sum.dtype=None", axes, x)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(total))
        np.testing.assert_array_equal(np.isposinf(found), np.isposinf(total))


def test_a_long_sum_of_doubles_is_nearly_exact() -> None:
    """What each addition loses is added too, also that of the parts."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(300_000) * 10.0 ** rng.uniform(-8, 8, 300_000)
    assert abs(float(run("Sum.dtype=None", None, x)) - math.fsum(x)) <= 4e-16 * float(
        np.abs(x).sum()
    )
    columns = x.reshape(-1, 3)
    for found, column in zip(run("Sum.dtype=None", (0,), columns), columns.T, strict=True):
        assert abs(float(found) - math.fsum(column)) <= 4e-16 * float(np.abs(column).sum())


def test_losses_of_two_arrays() -> None:
    a, b = numbers((400, 500), "float32"), numbers((500, 400), "float32").T.copy()
    kernel = kernels.table["MseLoss.reduction=1.forward"]
    found = kernel(a, b)
    np.testing.assert_allclose(found, np.mean((a - b).astype(np.float64) ** 2), rtol=1e-6)
