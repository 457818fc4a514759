"""How exact long sums are: in low precision, over any axis, in any layout, forward and backward.

Every number that is summed here is exact in its dtype, or the exact sum is known: what is expected
is a literal, and the bound a few units in its last place. `attack/reductions.py` draws the rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.arrays.helpers import units

HALVES = [torch.float16, torch.bfloat16]
TENTH = float(np.float32(0.1))  # what 0.1 is in float32


# --- sums -----------------------------------------------------------------------------------------
LONG = {
    "narrow": ((1_000_000, 2), 0),
    "wide": ((5_000, 300), 0),
    "middle": ((3, 40_000, 2), 1),
    "batch": ((1_000, 64), 0),
    "uneven": ((99_991, 3), 0),
    "apart": ((300, 2, 301), (0, 2)),
    "last": ((2, 1_000_000), 1),
    "all": ((1_000, 1_000), (0, 1)),
}


@pytest.mark.parametrize("shape, dims", LONG.values(), ids=LONG)
def test_sum_of_equal_numbers(shape: tuple[int, ...], dims: Any) -> None:
    x = torch.full(shape, 0.1)
    axes = (dims,) if isinstance(dims, int) else dims
    n = math.prod(shape[d] for d in axes)
    assert units(x.sum(dims), n * TENTH) <= 8
    assert units(x.mean(dims), TENTH) <= 8
    assert units(torch.nansum(x, dims), n * TENTH) <= 8
    assert units(torch.linalg.vector_norm(x, 2, dims), math.sqrt(n) * TENTH) <= 8
    assert units(x.logsumexp(dims), math.log(n) + TENTH) <= 8


@pytest.mark.parametrize("shape, dims", LONG.values(), ids=LONG)
def test_sum_in_other_layouts(shape: tuple[int, ...], dims: Any) -> None:
    axes = (dims,) if isinstance(dims, int) else dims
    n = math.prod(shape[d] for d in axes)
    order = tuple(reversed(range(len(shape))))
    turned = torch.full(tuple(reversed(shape)), 0.1).permute(order)
    sliced = torch.full((*shape[:-1], 2 * shape[-1]), 0.1)[..., ::2]
    once = torch.full((1,) * len(shape), 0.1).expand(shape)
    for x in (turned, sliced, once):
        assert x.shape == shape
        assert units(x.sum(dims), n * TENTH) <= 8


def test_sum_of_ones_does_not_stop() -> None:
    ones = torch.ones(20_000_000, 2)
    assert ones.sum(0).tolist() == [20_000_000, 20_000_000]
    del ones
    assert torch.ones(40_000, 1_000, dtype=torch.bfloat16).sum(0)[:2].tolist() == [39_936, 39_936]


@pytest.mark.parametrize("n", [100, 775, 1_569, 26_431, 372_777])
def test_a_sum_of_equal_doubles_errs_by_that_of_a_set(n: int) -> None:
    # every addition of equal numbers errs to the same side: the hardest for sums in lanes
    for value in (0.1, 0.3, 0.55, 0.7, 0.83, 0.95):
        exact = math.fsum([value] * n)
        x = torch.full((2 * n,), value, dtype=torch.float64)
        for y in (x[:n], x[::2], x[:1].expand(n)):
            for found in (y.sum(), torch.nansum(y), y.mean() * n):
                assert abs(found.item() - exact) <= 4 * 2.0**-52 * exact


def test_sum_of_doubles_and_complex_numbers() -> None:
    x = torch.full((100_000, 3), 0.1, dtype=torch.float64)
    assert (x.sum(0) - 10_000).abs().max().item() <= 6 * 2.0**-39
    z = torch.full((100_000, 3), 0.1 + 0.2j, dtype=torch.complex64)
    y = z.sum(0)
    assert units(y.real, 100_000 * TENTH) <= 8
    assert units(y.imag, 100_000 * float(np.float32(0.2))) <= 8


def test_sum_keeps_what_is_not_finite() -> None:
    x = torch.ones(1_000, 3)
    x[500, 0] = math.inf
    x[10, 1] = math.nan
    x[20, 2], x[900, 2] = math.inf, -math.inf
    y = x.sum(0).tolist()
    assert y[0] == math.inf and math.isnan(y[1]) and math.isnan(y[2])
    assert torch.zeros(0, 3).sum(0).tolist() == [0, 0, 0]
    assert torch.full((1_000, 2), -0.0).expand(5, 1_000, 2).sum((0, 1)).tolist() == [0, 0]
    assert torch.ones(1_000, 2, dtype=torch.bool).sum(0).tolist() == [1_000, 1_000]
    assert torch.ones(1_000, 2, dtype=torch.uint8).sum(0).tolist() == [1_000, 1_000]


@pytest.mark.parametrize("keepdim", [False, True])
def test_sum_of_every_layout_is_that_of_a_copy(keepdim: bool) -> None:
    rng = np.random.default_rng(0)
    for shape in [(70, 3, 80), (2, 130, 65), (128, 7), (1, 66, 5), (90, 4, 3, 2), (70, 1, 100)]:
        x = torch.from_numpy(rng.integers(-9, 9, shape).astype(np.float32))
        views = [x, x.transpose(0, -1), x[..., ::2], x[1:], x[:, :1].expand(shape)]
        for view in views:
            for k in range(1, 2**view.ndim):
                dims = [d for d in range(view.ndim) if k >> d & 1]
                want = view.numpy().astype(np.int64).sum(tuple(dims), keepdims=keepdim)
                found = view.sum(dims, keepdim=keepdim)
                assert found.tolist() == want.tolist()


# --- scans and products ---------------------------------------------------------------------------
def test_running_sums() -> None:
    x = torch.full((1_000_000,), 0.1)
    assert units(x.cumsum(0)[-1], 1_000_000 * TENTH) <= 1
    two = torch.full((2, 100_000), 0.1)
    assert units(two.cumsum(1)[:, -1], 100_000 * TENTH) <= 1
    assert units(two.t().cumsum(0)[-1], 100_000 * TENTH) <= 1
    z = torch.full((100_000,), 0.1j, dtype=torch.complex64)
    assert units(z.cumsum(0)[-1].imag, 100_000 * TENTH) <= 1
    near = float(np.float32(1.00001))
    assert units(torch.full((100_000,), near).cumprod(0)[-1], near**100_000) <= 1
    assert units(torch.full((100_000,), near).prod(), near**100_000) <= 1
    assert units(torch.full((2, 2_050), near).prod(1), near**2_050) <= 1


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients_in_low_precision(dtype: Any) -> None:
    def grad(f: Any, n: int) -> list[float]:
        x = torch.ones(n, dtype=dtype, requires_grad=True)
        f(x).sum().backward()
        assert x.grad is not None and x.grad.dtype == dtype
        values: list[float] = x.grad.tolist()
        return values

    assert grad(lambda x: x.cumsum(0), 1_000)[0] == 1_000
    assert grad(lambda x: x.as_strided((1_000,), (0,)), 1) == [1_000]
    assert grad(lambda x: x.expand(1_000), 1) == [1_000]
    assert grad(lambda x: x.repeat(1_000), 1) == [1_000]
    assert grad(lambda x: x + torch.zeros(1_000, 1, dtype=dtype), 2) == [1_000, 1_000]
    zeros = torch.zeros(1_000, dtype=torch.int64)
    assert grad(lambda x: x[zeros], 1) == [1_000]
    assert grad(lambda x: x.gather(0, zeros), 1) == [1_000]
    assert grad(lambda x: x.index_select(0, zeros), 1) == [1_000]
    assert grad(lambda x: x.take(zeros), 1) == [1_000]
    assert grad(lambda x: x[zeros], 100_000)[0] == 1_000
    assert grad(lambda x: x.cumprod(0), 1_000)[0] == 1_000
    # the harmonic number of 1000 is 7.4855
    first = grad(lambda x: x.logcumsumexp(0), 1_000)[0]
    assert abs(first - 7.4855) <= (0.008 if dtype is torch.float16 else 0.05)


@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_others_in_low_precision(dtype: Any) -> None:
    # the products from the left leave the range of float16, those of all others do not
    values = [256.0] * 3 + [1.0] * 10 + [1 / 256.0] * 3
    x = torch.tensor(values, dtype=dtype, requires_grad=True)
    x.prod().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1 / v for v in values]


@pytest.mark.parametrize("dtype", HALVES)
def test_sums_by_place_in_low_precision(dtype: Any) -> None:
    zeros = torch.zeros(1_000, dtype=torch.int64)
    ones = torch.ones(1_000, dtype=dtype)
    for size in (1, 100_000):  # where few places of many are written, no other is touched
        base = torch.zeros(size, dtype=dtype)
        assert base.index_add(0, zeros, ones)[0] == 1_000
        assert base.index_put((zeros,), ones, accumulate=True)[0] == 1_000
        assert base.scatter_add(0, zeros, ones)[0] == 1_000
        assert base.clone().index_add_(0, zeros, ones)[0] == 1_000
        assert base.clone().index_put_((zeros,), ones, accumulate=True)[0] == 1_000
    rows = torch.zeros(20_000, 3, dtype=dtype)
    rows.index_add_(0, zeros + 7, torch.ones(1_000, 3, dtype=dtype))
    assert rows[7].tolist() == [1_000] * 3 and rows.float().sum() == 3_000
    pairs = torch.zeros(50, 40, 3, dtype=dtype)
    pairs.index_put_((zeros + 2, zeros - 1), torch.ones(1_000, 3, dtype=dtype), True)
    assert pairs[2, 39].tolist() == [1_000] * 3 and pairs.float().sum() == 3_000


def test_sums_by_place() -> None:
    n = 1_000_000
    where = torch.zeros(n, dtype=torch.int64)
    where[1::2] = 2
    half = n // 2 * TENTH
    for width in (1, 2):
        rows = torch.full((n, width), 0.1)
        for found in (
            torch.zeros(3, width).index_add(0, where, rows),
            torch.zeros(3, width).index_put((where,), rows, accumulate=True),
            torch.zeros(3, width).scatter_add(0, where[:, None].expand(n, width), rows),
        ):
            assert units(found[0], half) <= 6 and units(found[2], half) <= 6
            assert found[1].tolist() == [0] * width
    z = torch.full((n,), 0.1 + 0.1j, dtype=torch.complex64)
    y = torch.zeros(3, dtype=torch.complex64).index_add(0, where, z)
    assert units(y[0].real, half) <= 6 and units(y[2].imag, half) <= 6


def test_gradients_that_sum() -> None:
    g = torch.full((1_000_000, 2), 0.1)
    exact = 1_000_000 * TENTH
    b = torch.zeros(2, requires_grad=True)
    (torch.zeros(1_000_000, 2) + b).backward(g)
    assert b.grad is not None and units(b.grad, exact) <= 6
    w = torch.zeros(1, 2, requires_grad=True)
    w.expand(1_000_000, 2).backward(g)
    assert w.grad is not None and units(w.grad, exact) <= 6
    v = torch.zeros(1_000_000, requires_grad=True)
    v.cumsum(0).backward(g[:, 0])
    assert v.grad is not None and units(v.grad[0], exact) <= 1
    s = torch.zeros(1, requires_grad=True)
    s.as_strided((1_000_000,), (0,)).backward(g[:, 0])
    assert s.grad is not None and units(s.grad, exact) <= 6


def test_many_looks_at_one_place_are_summed_with_care() -> None:
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    g = torch.full((20_000,), 0.1, dtype=torch.float64)
    (found,) = torch.autograd.grad(w.as_strided((20_000,), (0,), 1), w, g)
    assert found.tolist() == [0, pytest.approx(2000.0, rel=2e-15), 0]
