"""The short ways for layers give what the ways for all arrays give, to rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import fused

F = torch.nn.functional


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 2


@pytest.mark.parametrize("n", [fused._LEAST, 40_000, 70_001])
def test_gelu(n: int) -> None:
    x = drawn(n)
    share = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x.tolist()])
    found = fused.gelu(x)
    assert found is not None and np.abs(found - x * share).max() < 5e-7
    g = drawn(n)[::-1].copy()
    slope = share + x * np.exp(-0.5 * x.astype(np.float64) ** 2) / math.sqrt(2 * math.pi)
    back = fused.gelu_back(g, x)
    assert back is not None and np.abs(back - g * slope).max() < 2e-6


def test_gelu_of_what_is_not_finite() -> None:
    x = torch.ones(8192)
    x[:3] = torch.tensor([math.inf, math.nan, 1e30])
    y = F.gelu(x)
    assert y[0] == math.inf and y[1].isnan() and y[2] == 1e30
    with np.errstate(all="ignore"):  # as ops compute
        assert fused.gelu(x.numpy()) is None


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "table", {})


@pytest.mark.parametrize("inner", [(64,), (8, 16)])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("kernels", [False, True])
def test_layer_norm(
    inner: tuple[int, ...], affine: bool, kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float32, where the short way is taken, as in float64, where it is not."""
    results = []
    if not kernels:
        monkeypatch.setattr(fused, "table", {})
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor(drawn(300, *inner)).to(dtype).requires_grad_()
        more = [torch.tensor(drawn(*inner) + i).to(dtype).requires_grad_() for i in range(2)]
        w, b = more if affine else (None, None)
        y = F.layer_norm(x, inner, w, b)
        wanted = [x, *more] if affine else [x]
        g = torch.tensor(drawn(300, *inner)[::-1].copy()).to(dtype)
        results.append([y, *torch.autograd.grad(y, wanted, g)])
    for short, long in zip(*results, strict=True):
        torch.testing.assert_close(short.double(), long, rtol=1e-5, atol=2e-5)


def test_only_wanted_gradients_are_computed() -> None:
    x = drawn(100, 64)
    y, mean, rstd = fused.layer_norm(x, None, None, 1, 1e-5)
    zero = np.zeros_like(mean)
    found = fused.layer_norm_back(y, zero, zero, x, None, mean, rstd, 1, (False, True, False))
    assert found[0] is None and found[1].shape == (64,) and found[2] is None


@pytest.mark.parametrize(
    "x", [drawn(10), drawn(100, 100).T, drawn(100, 100).astype(np.float64), torch.ones(9000)]
)
@pytest.mark.usefixtures("without_kernels")
def test_what_does_not_apply(x: Any) -> None:
    assert fused.gelu(x) is None and fused.layer_norm(x, None, None, 1, 1e-5) is None


def test_add_to() -> None:
    y = np.ones((2, 3), np.float32)
    assert fused.add_to(y, np.ones(3, np.float32)) is y and y.tolist() == [[2.0] * 3] * 2
    wide = fused.add_to(y, np.ones(3))
    assert wide is not y and wide.dtype == np.float64
    tall = fused.add_to(np.ones(3, np.float32), np.ones((2, 1), np.float32))
    assert tall.shape == (2, 3)
