"""`max`, `amax`, `argmax` and their like: ties, forms, nothing to choose from, `out=`."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from tests.ops.reduction.helpers import NAN, gradient, same, tensor


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
