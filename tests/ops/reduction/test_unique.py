"""`unique`, `searchsorted`, `bincount`, `histc`: values, forms, errors."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from tests.ops.reduction.order_helpers import INF, NAN, ints, same, tensor


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
