"""Running sums, products and extremes: zeros, equals, gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as torch
from tests.ops.reduction.helpers import INF, NAN, gradient, same, tensor


def test_cumprod_with_zeros() -> None:
    # y = (a, ab, abc): sum's gradient is (1 + b + bc, a + ac, ab)
    same(gradient(lambda x: x.cumprod(0), [2.0, 0.0, 3.0]), [1.0, 8.0, 0.0])
    same(gradient(lambda x: x.cumprod(0), [0.0, 0.0, 3.0]), [1.0, 0.0, 0.0])
    x = tensor([0.0, 0.0, 3.0], grad=True)
    (g,) = torch.autograd.grad([x.cumprod(0)], [x], [tensor([0.0, 0.0, 1.0])], create_graph=True)
    (h,) = torch.autograd.grad([g], [x], [tensor([1.0, 0.0, 0.0])])
    same(h, [0.0, 3.0, 0.0])


def test_cumsum_cumprod_and_logcumsumexp() -> None:
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
