"""`sort`, `topk`, `kthvalue`, `median`, `mode`: NaN, ties, forms, names of results."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight import return_types
from tests.ops.reduction.order_helpers import NAN, gradient, ints, same, tensor


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
