"""Reductions and scans: edges that the laws do not draw. Expected values are worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight.core.graph import wrap
from rushlight.ops.registry import namespaces

INF, NAN = math.inf, math.nan


def tensor(values: Any, dtype: Any = np.float64, grad: bool = False) -> Any:
    t = wrap(np.asarray(values, dtype))
    if grad:
        t.requires_grad = True
    return t


def same(found: Any, expected: Any, dtype: Any = None) -> None:
    expected = np.asarray(expected)
    array = found._array
    assert array.shape == expected.shape
    if dtype is not None:
        assert array.dtype == dtype
    np.testing.assert_allclose(array.astype(expected.dtype), expected, rtol=1e-6, atol=1e-12)


def gradient(f: Any, values: Any) -> Any:
    x = tensor(values, grad=True)
    y = f(x)
    y.backward(tensor(np.ones(y.shape)))
    return x.grad


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


def test_out() -> None:
    x, out = tensor([[1.0, 2.0]]), tensor([])
    assert torch.sum(x, 1, out=out) is out
    same(out, [3.0])
    with pytest.raises(RuntimeError, match=r"sum\(\): functions with out=... arguments don't"):
        torch.sum(tensor([1.0], grad=True), 0, out=tensor([]))
    values, indices = tensor([]), tensor([], np.int64)
    torch.max(x, 1, out=(values, indices))
    same(values, [2.0])
    same(indices, [1], np.int64)
    with pytest.raises(
        RuntimeError, match="Expected out tensor to have dtype long int, but got fl"
    ):
        torch.max(x, 1, out=(tensor([]), tensor([], np.float32)))


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


def test_cumprod_with_zeros() -> None:
    # y = (a, ab, abc): sum's gradient is (1 + b + bc, a + ac, ab)
    same(gradient(lambda x: x.cumprod(0), [2.0, 0.0, 3.0]), [1.0, 8.0, 0.0])
    same(gradient(lambda x: x.cumprod(0), [0.0, 0.0, 3.0]), [1.0, 0.0, 0.0])
    x = tensor([0.0, 0.0, 3.0], grad=True)
    (g,) = torch.autograd.grad([x.cumprod(0)], [x], [tensor([0.0, 0.0, 1.0])], create_graph=True)
    (h,) = torch.autograd.grad([g], [x], [tensor([1.0, 0.0, 0.0])])
    same(h, [0.0, 3.0, 0.0])


# --- spread ---------------------------------------------------------------------------------------
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


# --- norms ----------------------------------------------------------------------------------------
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


def test_logsumexp() -> None:
    same(torch.logsumexp(tensor([1000.0, 1000.0]), 0), 1000 + math.log(2))
    same(torch.logsumexp(tensor([-INF, 1.0]), 0), 1.0)
    same(gradient(lambda x: x.logsumexp(0), [0.0, 0.0]), [0.5, 0.5])
    same(tensor([0, 0], np.int64).logsumexp(0), math.log(2), np.float32)


# --- largest and smallest -------------------------------------------------------------------------
def test_ties_share_the_gradient() -> None:
    x = [1.0, 2.0, 2.0]
    for f in (
        lambda x: x.max(),
        lambda x: x.amax(),
        lambda x: x.amax(0),
        lambda x: x.aminmax().max,
    ):
        same(gradient(f, x), [0.0, 0.5, 0.5])
    same(gradient(lambda x: x.max(0).values, x), [0.0, 1.0, 0.0])
    same(gradient(lambda x: x.max(), [1.0, NAN, NAN]), [0.0, 0.5, 0.5])
    same(gradient(lambda x: x.max(0)[0], [1.0, NAN, NAN]), [0.0, 1.0, 0.0])


def test_max_forms() -> None:
    x = tensor([[1.0, 5.0], [3.0, 2.0]])
    same(x.max(), 5.0)
    same(x.max(1).values, [5.0, 3.0])
    same(x.max(1).indices, [1, 0], np.int64)
    same(x.max(0, True)[1], [[1, 0]])
    same(x.min(axis=0)[0], [1.0, 2.0])
    same(x.max(tensor([[2.0, 2.0]])), [[2.0, 5.0], [3.0, 2.0]])
    same(torch.min(x, other=tensor(2.0)), [[1.0, 2.0], [2.0, 2.0]])
    same(tensor(3.0).max(0).indices, 0)
    same(x.argmax(), 1, np.int64)
    same(x.argmin(1, True), [[0], [1]])
    assert str(x.max(1)) == (
        "torch.return_types.max(\n"
        "values=tensor([5., 3.], dtype=torch.float64),\n"
        "indices=tensor([1, 0]))"
    )


def test_nothing_to_choose_from() -> None:
    empty = tensor(np.zeros((0, 3)))
    same(empty.max(1).values, np.zeros(0))
    same(empty.argmax(1), np.zeros(0), np.int64)
    for name in ("max", "min", "amax", "amin"):
        with pytest.raises(RuntimeError, match=rf"{name}\(\): Expected reduction dim to be specif"):
            getattr(empty, name)()
        with pytest.raises(IndexError, match=rf"{name}\(\): Expected reduction dim 0 to have non-"):
            getattr(empty, name)(0)
    with pytest.raises(IndexError, match=r"argmax\(\): Expected reduction dim to be specified"):
        empty.argmax()
    with pytest.raises(RuntimeError, match=r"argmax\(\): does not support bool input"):
        tensor([True], np.bool_).argmax()
    with pytest.raises(TypeError, match=r"max\(\) received an invalid combination"):
        tensor([1.0]).max((0, 1))


def test_truth() -> None:
    x = tensor([[0.0, 1.0], [2.0, NAN]])
    same(x.any(1), [True, True], np.bool_)
    same(x.all(1), [False, True], np.bool_)
    same(x.all(), False, np.bool_)
    same(x.any(()), [[False, True], [True, True]], np.bool_)
    same(tensor([2, 0], np.uint8).any(), 1, np.uint8)
    same(x.count_nonzero(), 3, np.int64)
    same(x.count_nonzero(dim=0), [1, 2], np.int64)
    same(tensor([]).all(), True)
    same(tensor([]).any(), False)


# --- scans ----------------------------------------------------------------------------------------
def test_scans() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    same(x.cumsum(0), [[1.0, 2.0], [4.0, 6.0]])
    same(x.cumsum(axis=-1), [[1.0, 3.0], [3.0, 7.0]])
    same(gradient(lambda x: x.cumsum(1), [[1.0, 2.0], [3.0, 4.0]]), [[2.0, 1.0], [2.0, 1.0]])
    same(tensor(2.0).cumprod(0), 2.0)
    same(x.logcumsumexp(1)[0], [1.0, 2.0 + math.log1p(math.exp(-1.0))])
    same(tensor([-INF, 0.0, 0.0]).logcumsumexp(0), [-INF, 0.0, math.log(2)])
    y = tensor([1, 2, 3], np.int32)
    assert y.cumsum_(0) is y
    same(y, [1, 3, 6], np.int32)
    with pytest.raises(NotImplementedError, match='"logcumsumexp_out_cpu" not implemented for'):
        tensor([1], np.int64).logcumsumexp(0)


def test_running_extremes_name_the_last_of_equals() -> None:
    up = tensor([1.0, 1.0, NAN, 2.0, NAN, 0.0]).cummax(0)
    same(up.values, [1.0, 1.0, NAN, NAN, NAN, NAN])
    same(up.indices, [0, 1, 2, 2, 4, 4], np.int64)
    same(tensor([1.0, 1.0, 0.0, 2.0, 0.0]).cummin(0).indices, [0, 1, 2, 2, 4])
    same(gradient(lambda x: x.cummax(0)[0], [1.0, 3.0, 2.0, 3.0]), [1.0, 2.0, 0.0, 1.0])


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
