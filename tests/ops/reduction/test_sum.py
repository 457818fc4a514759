"""`sum`, `mean`, `prod`, `logsumexp`, `trace`, and what all reductions have in common."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight.core.graph import wrap
from tests.ops.reduction.helpers import INF, NAN, gradient, same, tensor


# --- sum and mean ---------------------------------------------------------------------------------
def test_sum_forms() -> None:
    x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    same(x.sum(), 21.0)
    same(x.sum(0), [5.0, 7.0, 9.0])
    same(x.sum((0, 1)), 21.0)
    same(x.sum(()), 21.0)
    same(x.sum(-1, True), [[6.0], [15.0]])
    same(x.sum(axis=1, keepdims=True), [[6.0], [15.0]])
    same(x.sum(None, True), [[21.0]])
    same(x.sum(1, dtype=torch.int64), [6, 15], np.int64)
    same(torch.sum(x.t() if hasattr(x, "t") else x, dim=-1).sum(), 21.0)
    same(tensor(3.0).sum(0), 3.0)
    same(tensor(np.zeros((0, 2))).sum(0), [0.0, 0.0])


def test_sums_of_integers_are_int64() -> None:
    for dtype in (np.bool_, np.uint8, np.int8, np.int32, np.int64):
        x = tensor([1, 0, 1], dtype)
        same(x.sum(), 2, np.int64)
        same(x.prod(), 0, np.int64)
        same(x.cumsum(0), [1, 1, 2], np.int64)
        same(x.cumprod(0), [1, 0, 0], np.int64)
    same(tensor([200, 100], np.uint8).sum(0), 300, np.int64)


def test_low_precision_is_summed_in_float32() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = tensor(np.ones(4096), dtype)
        same(x.sum(), np.float32(4096.0), dtype)
        same(x.mean(), np.float32(1.0), dtype)
        same(x.cumsum(0)[-1], np.float32(4096.0), dtype)
        assert x.var()._array.dtype == dtype
    x = tensor([1.0, 2.0], ml_dtypes.bfloat16, grad=True)
    x.mean().backward()
    same(x.grad, np.float32([0.5, 0.5]), ml_dtypes.bfloat16)


def test_node_names() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]], grad=True)
    names = {
        "SumBackward0": x.sum(), "SumBackward1": x.sum(None), "MeanBackward0": x.mean(),
        "MeanBackward1": x.mean(0), "ProdBackward0": x.prod(), "ProdBackward1": x.prod(0),
        "VarBackward0": x.var(), "StdBackward0": x.std(0), "NansumBackward0": x.nansum(),
        "LinalgVectorNormBackward0": x.norm(), "LogsumexpBackward0": x.logsumexp(0),
        "AmaxBackward0": x.amax(), "AminBackward0": x.amin(0), "MaxBackward1": x.max(),
        "MinBackward1": x.min(), "MaxBackward0": x.max(0)[0], "MinBackward0": x.min(0)[0],
        "AminmaxBackward0": x.aminmax().min, "CumsumBackward0": x.cumsum(0),
        "CumprodBackward0": x.cumprod(0), "CummaxBackward0": x.cummax(0)[0],
        "CumminBackward0": x.cummin(0)[0], "LogcumsumexpBackward0": x.logcumsumexp(0),
        "TraceBackward0": x.trace(), "DistBackward0": x.dist(x * 2),
        "VarMeanBackward0": torch.var_mean(x)[1], "StdMeanBackward0": torch.std_mean(x)[0],
        "DivBackward0": x.nanmean(),
    }  # fmt: skip
    for name, y in names.items():
        assert y.grad_fn.name() == name
    assert x.max(0).indices.grad_fn is None
    assert not x.argmax().requires_grad


def test_mean() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    same(x.mean(), 2.5)
    same(x.mean(0), [2.0, 3.0])
    same(gradient(lambda x: x.mean(), [[1.0, 2.0], [3.0, 4.0]]), [[0.25] * 2] * 2)
    same(gradient(lambda x: x.mean(1), [[1.0, 2.0], [3.0, 4.0]]), [[0.5] * 2] * 2)
    assert np.isnan(tensor([]).mean()._array)
    same(tensor([1, 2], np.int64).mean(dtype=torch.float32), 1.5, np.float32)
    with pytest.raises(RuntimeError, match=r"mean\(\): could not infer output dtype. Input dtype"):
        tensor([1, 2], np.int64).mean()
    with pytest.raises(RuntimeError, match="Optional dtype must be either a floating point"):
        tensor([1.0]).mean(dtype=torch.int64)


def test_wrong_dimensions() -> None:
    x = tensor([[1.0, 2.0]])
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 5"):
        x.sum(5)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        x.sum((0, -2))
    with pytest.raises(TypeError, match=r"sum\(\) received an invalid combination of arguments"):
        x.sum("a")
    with pytest.raises(TypeError, match="received an invalid combination"):
        x.sum(keepdim=True)
    with pytest.raises(TypeError, match=r"prod\(\) received an invalid combination"):
        x.prod((0, 1))
    with pytest.raises(TypeError, match=r"argument 'input' \(position 1\) must be Tensor, not int"):
        torch.sum(3)


def test_nan_is_passed_over() -> None:
    x = [3.0, NAN, 0.0]
    same(tensor(x).nansum(), 3.0)
    same(tensor(x).nanmean(), 1.5)
    same(gradient(lambda x: x.nansum(), x), [1.0, 0.0, 1.0])
    same(gradient(lambda x: x.nanmean(), x), [0.5, 0.0, 0.5])
    same(tensor([1, 2], np.int32).nansum(), 3, np.int64)


# --- products -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("x", "grad"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]),
        ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0]),
        ([], []),
    ],
)
def test_gradient_of_a_product_with_zeros(x: list[float], grad: list[float]) -> None:
    same(gradient(lambda x: x.prod(), x), grad)
    same(gradient(lambda x: x.prod(0), x), grad)


def test_second_derivative_of_a_product_with_two_zeros() -> None:
    x = tensor([0.0, 0.0, 4.0], grad=True)
    (g,) = torch.autograd.grad([x.prod()], [x], create_graph=True)
    (h,) = torch.autograd.grad([g], [x], [tensor([1.0, 0.0, 0.0])])
    same(h, [0.0, 4.0, 0.0])  # d/dx1 of x1 x2 x0 by x0 is x2


def test_logsumexp() -> None:
    same(torch.logsumexp(tensor([1000.0, 1000.0]), 0), 1000 + math.log(2))
    same(torch.logsumexp(tensor([-INF, 1.0]), 0), 1.0)
    same(gradient(lambda x: x.logsumexp(0), [0.0, 0.0]), [0.5, 0.5])
    same(tensor([0, 0], np.int64).logsumexp(0), math.log(2), np.float32)


def test_trace() -> None:
    same(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).trace(), 6.0)
    same(gradient(lambda x: x.trace(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.eye(2, 3))
    same(tensor([[1, 2], [3, 4]], np.int8).trace(), 5, np.int64)
    with pytest.raises(RuntimeError, match="trace: expected a matrix, but got tensor with dim 1"):
        tensor([1.0]).trace()


def test_non_contiguous_and_broadcast_inputs() -> None:
    base = np.arange(12.0).reshape(3, 4)
    for view in (base.T, base[:, ::2], np.broadcast_to(base[0], (3, 4))):
        x = wrap(view)
        same(x.sum(0), view.sum(0))
        same(x.prod(1), view.prod(1))
        same(x.amax(0), view.max(0))
        same(x.cumsum(1), view.cumsum(1))
        same(x.norm(), np.sqrt((view * view).sum()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.complex64])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((3, 4), (0,)), ((3, 4), (1,)), ((2, 3, 4), (1,)), ((2, 3, 4), (0, 2)), ((2, 1, 3), (1,)),
        ((0, 3), (0,)), ((3, 0), (1,)), ((5,), (0,)), ((2, 3, 4), (0, 1, 2)), ((70, 90), (1,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("keepdim", [False, True])
def test_the_gradient_of_a_mean_is_spread(
    shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool, dtype: Any
) -> None:
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    y = x.mean(dims, keepdim=keepdim)
    for step in (1, 2):  # the second time it does not lie in rows
        g = torch.arange(float(y.numel() * step)).to(dtype)[::step].reshape(y.shape)
        (gx,) = torch.autograd.grad(y, x, g, retain_graph=True)
        n = math.prod(shape[d] for d in dims)
        wanted = g.numpy().reshape([1 if d in dims else n for d, n in enumerate(shape)])
        np.testing.assert_array_equal(gx.numpy(), np.broadcast_to(wanted / (n or 1), shape))
        assert gx.dtype is dtype and gx.is_contiguous()
