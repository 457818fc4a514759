"""Sorting, ranks, quantiles and counting: edges that the laws do not draw."""

from __future__ import annotations

import math
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight import return_types
from rushlight.core.graph import wrap

INF, NAN = math.inf, math.nan


def tensor(values: Any, dtype: Any = np.float64, grad: bool = False) -> Any:
    t = wrap(np.asarray(values, dtype))
    if grad:
        t.requires_grad = True
    return t


def ints(values: Any) -> Any:
    return tensor(values, np.int64)


def same(found: Any, expected: Any, dtype: Any = None) -> None:
    expected = np.asarray(expected)
    assert found._array.shape == expected.shape
    if dtype is not None:
        assert found._array.dtype == dtype
    np.testing.assert_allclose(found._array.astype(expected.dtype), expected, rtol=1e-7)


def gradient(f: Any, values: Any) -> Any:
    x = tensor(values, grad=True)
    y = f(x)
    y.backward(tensor(np.arange(1.0, 1.0 + y._array.size).reshape(y.shape)))
    return x.grad


# --- sort -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_nan_sorts_last_and_ties_keep_their_order(dtype: Any) -> None:
    x = tensor([3.0, 1.0, NAN, 1.0, 1.0, NAN], dtype)
    same(x.sort().indices, [1, 3, 4, 0, 2, 5], np.int64)
    same(x.sort(descending=True).indices, [2, 5, 0, 1, 3, 4])
    same(x.sort().values, np.float32([1.0, 1.0, 1.0, 3.0, NAN, NAN]), dtype)
    same(torch.argsort(x, descending=True, stable=True), [2, 5, 0, 1, 3, 4])


def test_sort_forms() -> None:
    x = tensor([[3.0, 1.0], [2.0, 4.0]])
    same(x.sort()[0], [[1.0, 3.0], [2.0, 4.0]])
    same(x.sort(0, True)[0], [[3.0, 4.0], [2.0, 1.0]])
    same(torch.msort(x), [[2.0, 1.0], [3.0, 4.0]])
    same(tensor(3.0).sort().indices, 0)
    same(tensor([]).sort().values, [])
    same(tensor([True, False], np.bool_).sort()[0], [False, True])
    same(gradient(lambda x: x.sort()[0], [3.0, 1.0, 2.0]), [3.0, 1.0, 2.0])
    y = tensor([1.0], grad=True)
    assert y.sort().values.grad_fn.name() == "SortBackward0"
    assert y.sort(stable=True).values.grad_fn.name() == "SortBackward1"
    with pytest.raises(RuntimeError, match="Sort does not support complex dtypes on CPU"):
        tensor([1j], np.complex128).sort()


def test_topk() -> None:
    x = tensor([1.0, 4.0, 3.0, NAN])
    same(x.topk(2).indices, [3, 1])
    same(x.topk(2, largest=False).values, [1.0, 3.0])
    same(x.topk(0).values, [])
    same(tensor(3.0).topk(1).values, 3.0)
    same(gradient(lambda x: x.topk(2)[0], [1.0, 4.0, 3.0]), [0.0, 1.0, 2.0])
    for k in (5, -1):
        with pytest.raises(RuntimeError, match="selected index k out of range"):
            x.topk(k)


def test_kthvalue() -> None:
    x = tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    same(x.kthvalue(2).values, [2.0, 5.0])
    same(x.kthvalue(1, 0, True).values, [[3.0, 1.0, 2.0]])
    same(gradient(lambda x: x.kthvalue(3)[0], [1.0, 3.0, 2.0]), [0.0, 1.0, 0.0])
    with pytest.raises(RuntimeError, match=r"kthvalue\(\): selected number k out of range for dim"):
        x.kthvalue(4)


def test_median() -> None:
    same(tensor([3.0, 1.0, 2.0, 4.0]).median(), 2.0)
    same(tensor([3.0, NAN, 0.0]).median(), NAN)
    same(tensor([3.0, NAN, 0.0, NAN]).median(0).indices, 1)
    same(tensor([3.0, NAN, 0.0]).nanmedian(), 0.0)
    same(tensor([NAN, NAN]).nanmedian(0).indices, 0)
    same(tensor([]).median(), NAN)
    same(ints([3, 1, 2]).median(), 2, np.int64)
    same(gradient(lambda x: x.median(), [3.0, 1.0, 1.0, 0.0]), [0.0, 0.5, 0.5, 0.0])
    same(gradient(lambda x: x.median(0)[0], [3.0, 1.0, 1.0, 0.0, 1.0]), [0.0, 0.0, 1.0, 0.0, 0.0])
    with pytest.raises(IndexError, match=r"median\(\): Expected reduction dim 0 to have non-zero"):
        tensor(np.zeros((0, 3))).median(0)
    with pytest.raises(NotImplementedError, match="\"median_cpu\" not implemented for 'Bool'"):
        tensor([True], np.bool_).median()


def test_mode() -> None:
    found = tensor([1.0, 2.0, 2.0, 1.0, 3.0]).mode()
    same(found.values, 1.0)
    same(found.indices, 3)
    same(ints([[1, 2, 2], [1, 2, 3]]).mode(0).values, [1, 2, 2])
    same(ints([[1, 2, 2], [1, 2, 3]]).mode(0).indices, [1, 1, 0])
    same(gradient(lambda x: x.mode()[0], [2.0, 5.0, 5.0]), [0.0, 0.0, 1.0])


# --- quantiles ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("way", "value", "grad"),
    [
        ("linear", 1.75, [0.25, 0.75, 0.0, 0.0]),
        ("lower", 1.0, [1.0, 0.0, 0.0, 0.0]),
        ("higher", 2.0, [0.0, 1.0, 0.0, 0.0]),
        ("nearest", 2.0, [0.0, 1.0, 0.0, 0.0]),
        ("midpoint", 1.5, [0.5, 0.5, 0.0, 0.0]),
    ],
)
def test_quantile(way: str, value: float, grad: list[float]) -> None:
    x = [1.0, 2.0, 3.0, 4.0]
    same(tensor(x).quantile(0.25, interpolation=way), value)
    same(gradient(lambda x: x.quantile(0.25, interpolation=way), x), grad)


def test_quantile_forms() -> None:
    x = tensor([[1.0, 2.0], [3.0, 6.0]])
    same(x.quantile(0.5), 2.5)
    same(x.quantile(tensor([0.0, 1.0]), 0), [[1.0, 2.0], [3.0, 6.0]])
    same(
        x.quantile(tensor([0.0, 0.5, 1.0]), 1, True),
        [[[1.0], [3.0]], [[1.5], [4.5]], [[2.0], [6.0]]],
    )
    same(tensor([1.0, NAN, 3.0]).quantile(0.5), NAN)
    same(tensor([1.0, NAN, 3.0]).nanquantile(0.5), 2.0)
    same(tensor([NAN]).nanquantile(0.5), NAN)
    q = tensor(0.25, grad=True)
    tensor([1.0, 2.0, 4.0]).quantile(q).backward()
    same(q.grad, 2.0)  # two steps of 1 in q's range, at slope 1
    with pytest.raises(
        RuntimeError, match=r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"
    ):
        x.quantile(1.5)
    with pytest.raises(
        RuntimeError, match=r"quantile\(\) input tensor must be either float or dou"
    ):
        ints([1]).quantile(0.5)
    with pytest.raises(RuntimeError, match="input tensor must be non-empty"):
        tensor([]).quantile(0.5)


# --- counting -------------------------------------------------------------------------------------
def test_unique() -> None:
    x = ints([[3, 1], [2, 1], [3, 1]])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    same(values, [1, 2, 3])
    same(inverse, [[2, 0], [1, 0], [2, 0]])
    same(counts, [3, 1, 2])
    values, inverse, counts = x.unique(dim=0, return_inverse=True, return_counts=True)
    same(values, [[2, 1], [3, 1]])
    same(inverse, [1, 0, 1])
    same(counts, [1, 2])
    same(x.unique(dim=1), [[1, 3], [1, 2], [1, 3]])
    same(tensor([1.0, NAN, NAN]).unique(), [1.0, NAN, NAN])
    same(ints(3).unique(), [3])
    same(tensor([]).unique(), [])
    with pytest.raises(
        RuntimeError, match="There are 0 sized dimensions, and they aren't selected"
    ):
        tensor(np.zeros((0, 2))).unique(dim=1)
    y = tensor([2.0, 1.0], grad=True).unique()
    assert y.grad_fn.name() == "Unique2Backward0"
    with pytest.raises(
        NotImplementedError, match="the derivative for '_unique2' is not implemented"
    ):
        y.sum().backward()


def test_unique_consecutive() -> None:
    values, inverse, counts = torch.unique_consecutive(
        ints([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True
    )
    same(values, [1, 2, 1])
    same(inverse, [0, 0, 1, 1, 2])
    same(counts, [2, 2, 1])
    same(ints([[1, 1], [1, 1], [2, 2]]).unique_consecutive(dim=0), [[1, 1], [2, 2]])


def test_searchsorted() -> None:
    bounds = ints([1, 3, 5])
    same(torch.searchsorted(bounds, ints([[3, 6]])), [[1, 3]], np.int64)
    same(torch.searchsorted(bounds, 3, right=True, out_int32=True), 2, np.int32)
    same(torch.searchsorted(bounds, 3, side="right"), 2)
    same(torch.searchsorted(bounds, tensor([2.5])), [1])
    same(torch.searchsorted(ints([[1, 3, 5], [2, 4, 6]]), ints([[3], [4]])), [[1], [1]])
    same(torch.searchsorted(ints([5, 1, 3]), ints([3]), sorter=ints([1, 2, 0])), [1])
    same(torch.searchsorted(tensor([1.0, 3.0]), tensor([NAN, INF])), [2, 2])
    same(torch.bucketize(ints([1, 3, 5]), ints([3, 4])), [0, 0, 2])
    with pytest.raises(RuntimeError, match="boundaries tensor should be 1 dimension or the first"):
        torch.searchsorted(ints([[1, 3], [2, 4]]), ints([3]))
    with pytest.raises(RuntimeError, match="side can only be 'left' or 'right' but got foo"):
        torch.searchsorted(bounds, 3, side="foo")


def test_bincount_and_histc() -> None:
    same(torch.bincount(ints([1, 3, 3])), [0, 1, 0, 2], np.int64)
    same(torch.bincount(ints([1]), minlength=3), [0, 1, 0])
    same(torch.bincount(ints([1, 1]), tensor([0.5, 1.0], np.float32)), [0.0, 1.5], np.float32)
    same(torch.bincount(ints([])), np.zeros(0), np.int64)
    with pytest.raises(
        RuntimeError, match="bincount only supports 1-d non-negative integral inputs"
    ):
        torch.bincount(ints([-1]))
    with pytest.raises(
        RuntimeError, match="weights should be 1-d and have the same length as input"
    ):
        torch.bincount(ints([1]), tensor([1.0, 2.0]))
    x = tensor([0.0, 1.0, 2.0, 3.0, NAN, 9.0])
    same(torch.histc(x, 3, 0, 3), [1.0, 1.0, 2.0])
    same(torch.histc(tensor([1.0, 1.0]), 2), [0.0, 2.0])
    with pytest.raises(RuntimeError, match=r"torch\.histc: max must be larger than min"):
        torch.histc(x, 4, 3, 1)


# --- results with names ---------------------------------------------------------------------------
def test_results_are_tuples_with_names() -> None:
    pair = tensor([2.0, 1.0]).sort()
    values, indices = pair
    assert values is pair.values and indices is pair[1]
    assert isinstance(pair, return_types.sort) and isinstance(pair, tuple) and len(pair) == 2
    assert repr(pair) == (
        "torch.return_types.sort(\n"
        "values=tensor([1., 2.], dtype=torch.float64),\n"
        "indices=tensor([1, 0]))"
    )
    made = return_types.aminmax((1, 2))
    assert (made.min, made.max) == (1, 2) and pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(TypeError, match="takes a 2-sequence"):
        return_types.max((1,))
