"""`var` and `std`: forms, freedom, accuracy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.arrays.helpers import units
from tests.ops.reduction.helpers import INF, gradient, same, tensor


def test_var_and_std_forms() -> None:
    x = tensor([[1.0, 2.0], [3.0, 6.0]])
    same(x.var(), 14.0 / 3)
    same(x.var(False), 3.5)
    same(x.var(unbiased=False), 3.5)
    same(x.var(0), [2.0, 8.0])
    same(x.var(0, False, True), [[1.0, 4.0]])
    same(x.std((0, 1), correction=0), math.sqrt(3.5))
    both = torch.var_mean(x, 1)
    same(both[0], [0.5, 4.5])
    same(both[1], [1.5, 4.5])
    same(torch.std_mean(x, dim=1, keepdim=True)[0], [[math.sqrt(0.5)], [math.sqrt(4.5)]])
    same(gradient(lambda x: x.std(), [1.0, 1.0]), [0.0, 0.0])
    with pytest.raises(RuntimeError, match="std and var only support floating point and complex"):
        tensor([1, 2], np.int64).var()
    with pytest.raises(TypeError, match=r"var\(\) received an invalid combination"):
        x.var(unbiased=True, correction=1)


def test_var_without_freedom_warns() -> None:
    with pytest.warns(UserWarning, match=r"var\(\): degrees of freedom is <= 0"):
        assert np.isnan(tensor([1.0]).var()._array)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        same(gradient(lambda x: x.var(correction=3), [1.0, 2.0]), [INF, INF])


@pytest.mark.parametrize("n", [10, 20_000])
def test_variance_is_in_range_where_squares_are_not(n: int) -> None:
    x = torch.ones(n)
    x[::2] = -1
    for size in (1e20, 1e-30, 2e38):
        assert units((x * size).std(correction=0), float(np.float32(size))) <= 2
        both = torch.stack([x * size, x * size], 1)
        assert units(both.std(0, correction=0), float(np.float32(size))) <= 2
        deviation = torch.std_mean(x * size, correction=0)[0]
        assert units(deviation, float(np.float32(size))) <= 2
    assert (x * 1e20).var().item() == math.inf
    z = torch.complex(x * 3e19, x * 4e19)
    assert units(z.std(correction=0), float(np.float32(5e19))) <= 4


@pytest.mark.parametrize("n", [2, 1_000, 20_000])
def test_variance_of_far_numbers(n: int) -> None:
    x = torch.full((n,), 16_384.0)
    x[::2] += 2.0**-9  # neighbours: their mean is no number of float32
    assert x.var(correction=0).item() == 2.0**-20
    assert torch.stack([x, x], 1).var(0, correction=0).tolist() == [2.0**-20] * 2
    assert x.std(correction=0).item() == 2.0**-10


def test_variance_of_equal_numbers() -> None:
    x = torch.full((100_000, 2), 0.1)
    for y in (x.var(), x.var(0), x.std(0) ** 2, x.to(torch.float64).var(0)):
        assert y.max().item() <= 1e-16 and y.min().item() >= 0


def test_variance_of_a_batch_and_its_derivative() -> None:
    x = torch.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 7.0]])
    batched: Any = torch.func.vmap(lambda r: r.var())(x)
    assert batched.dtype == torch.float32
    assert torch.allclose(batched, torch.tensor([7 / 3, 12.0]))
    slopes: Any = torch.func.grad(lambda x: torch.func.vmap(lambda r: r.var())(x).sum())(x)
    assert torch.allclose(slopes, x - x.mean(1, keepdim=True))
