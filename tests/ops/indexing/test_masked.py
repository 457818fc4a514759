"""Masks, flat positions, `nonzero`, and regions written to a copy: values, gradients, errors."""

# ruff: noqa: E501 (PyTorch's error texts are long)

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from tests.ops.indexing.helpers import T, X, grads, leaf


def test_masked_fill() -> None:
    x, s = leaf(2, 2), T(9.0, requires_grad=True)
    mask = T([True, False])
    assert x.masked_fill(mask, -math.inf).tolist() == [[-math.inf, 1], [-math.inf, 3]]
    assert grads(x.masked_fill(mask, 5), x) == [[[0, 2], [0, 4]]]
    assert grads(x.masked_fill(mask, s), x, s) == [[[0, 2], [0, 4]], 4]
    assert T([1, 2]).masked_fill(mask, 1.7).tolist() == [1, 2]  # stays integral
    assert torch.zeros(2).masked_fill(torch.ones(3, 2, dtype=torch.bool), 1).shape == (3, 2)
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match"):
        torch.zeros(2).masked_fill_(torch.ones(3, 2, dtype=torch.bool), 1)
    half = torch.zeros(2, dtype=torch.bfloat16)
    assert half.masked_fill(mask, 2).dtype is torch.bfloat16


def test_masked_fill_hides_nan() -> None:
    x = leaf(2)
    y = x.masked_fill(T([True, False]), 0.0)
    assert torch.autograd.grad([y], [x], [T([math.nan, 1.0])])[0].tolist() == [0, 1]


def test_masked_scatter_and_select() -> None:
    x, src = leaf(2, 2), leaf(5)
    mask = T([[True, False], [True, True]])
    y = x.masked_scatter(mask, src)
    assert y.tolist() == [[0, 1], [1, 2]]
    assert grads(y, x, src) == [[[0, 2], [0, 0]], [1, 3, 4, 0, 0]]
    y = x.masked_select(mask)
    assert y.tolist() == [0, 2, 3]
    assert grads(y, x) == [[[1, 0], [2, 3]]]
    assert grads(x.masked_select(T([[[True, False]], [[True, True]]])), x) == [[[4, 4], [7, 6]]]
    z = torch.zeros(3)
    assert z.masked_scatter_(T([True, False, True]), T([5.0, 6.0])).tolist() == [5, 0, 6]


def test_take_and_put() -> None:
    x, src = leaf(2, 2), leaf(2)
    assert grads(x.take(T([0, -1, 0])), x) == [[[4, 0], [0, 2]]]
    y = x.put(T([3, 0]), src)
    assert y.tolist() == [[1, 1], [2, 0]]
    assert grads(y, x, src) == [[[0, 2], [3, 0]], [4, 1]]
    assert x.put(T([1, 1]), src, accumulate=True).tolist() == [[0, 2], [2, 3]]
    z = torch.zeros(2, 2).t()
    z.put_(T([1]), T([5.0]))
    assert z.tolist() == [[0, 5], [0, 0]]


def test_take_along_dim() -> None:
    x = T([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    assert x.take_along_dim(x.argsort(1), 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert x.take_along_dim(T([[-1]]), 1).tolist() == [[2], [5]]
    assert x.take_along_dim(T([5, 0])).tolist() == [5, 3]


def test_nonzero() -> None:
    x = T([[0, 1], [2, 0]])
    assert x.nonzero().tolist() == [[0, 1], [1, 0]]
    assert [i.tolist() for i in torch.nonzero(x, as_tuple=True)] == [[0, 1], [1, 0]]
    assert T(1.0).nonzero().shape == (1, 0) and T(0.0).nonzero().shape == (0, 0)
    assert T(1.0).nonzero(as_tuple=True)[0].tolist() == [0]
    assert torch.zeros(0, 3).nonzero().shape == (0, 2)
    assert torch.argwhere(x).dtype is torch.int64


def test_select_diagonal_and_slice_scatter() -> None:
    x, src = leaf(2, 2), leaf(2)
    cases = [
        (x.select_scatter(src, 0, -1), [[0, 1], [0, 1]], [[1, 2], [0, 0]], [3, 4]),
        (x.diagonal_scatter(src), [[0, 1], [2, 1]], [[0, 2], [3, 0]], [1, 4]),
        (x.slice_scatter(src[None], 0, 1), [[0, 1], [0, 1]], [[1, 2], [0, 0]], [3, 4]),
        (x.as_strided_scatter(src, (2,), (2,), 1), [[0, 0], [2, 1]], [[1, 0], [3, 0]], [2, 4]),
    ]
    for y, value, gx, gs in cases:
        assert y.tolist() == value
        assert grads(y, x, src) == [gx, gs]
    assert x.tolist() == [[0, 1], [2, 3]]


MASK = torch.ones(4, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.masked_fill(torch.ones(4), 1), RuntimeError, "masked_fill_ only supports boolean masks, but got mask with dtype float"),
        (lambda: X.masked_fill(MASK, torch.ones(1)), RuntimeError, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s)."),
        (lambda: X.masked_fill(MASK, 1j), RuntimeError, "value cannot be converted to type float without overflow"),
        (lambda: X.masked_scatter(MASK, torch.ones(3)), RuntimeError, "Number of elements of source < number of ones in mask"),
        (lambda: X.masked_select(torch.ones(4)), RuntimeError, "masked_select: expected BoolTensor for mask"),
        (lambda: X.masked_select(torch.ones(5, dtype=torch.bool)), RuntimeError, "The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 1"),
        (lambda: X.take(T([12])), IndexError, "out of range: tried to access index 12 on a tensor of 12 elements."),
        (lambda: X.put(T([0]), torch.ones(2)), IndexError, "put_(): Expected source and index to have the same number of elements"),
        (lambda: X.select_scatter(torch.ones(3), 0, 0), RuntimeError, "expected src to have a size equal to the slice of self. src size = [3], slice size = [4]"),
        (lambda: X.slice_scatter(X, step=0), RuntimeError, "slice step must be positive"),
],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_a_region_that_overlaps_itself() -> None:
    x = torch.arange(6.0).requires_grad_()
    src = torch.tensor([[10.0, 11.0], [12.0, 13.0], [14.0, 15.0]], requires_grad=True)
    y = torch.as_strided_scatter(x, src, (3, 2), (1, 1))
    assert y.tolist() == [10, 12, 14, 15, 4, 5]  # the last writer of a place stays
    gx, gs = torch.autograd.grad((y * torch.arange(1.0, 7.0)).sum(), (x, src))
    assert gx.tolist() == [0, 0, 0, 0, 5, 6]
    assert gs.tolist() == [[1, 2], [2, 3], [3, 4]]
    for size, stride in (((3,), (0,)), ((2, 2), (1, 0))):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            torch.as_strided_scatter(x, torch.ones(size), size, stride, 1)
