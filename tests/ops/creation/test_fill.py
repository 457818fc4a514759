"""`copy_`, `fill_`, and tensors full of one number: values, gradients, sizes, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.helpers import raises
from tests.ops.indexing.helpers import count, leaf, names


def test_copy_broadcasts_and_casts() -> None:
    x = torch.zeros(2, 2, dtype=torch.int64)
    assert x.copy_(torch.tensor([1.9, -1.9])) is x
    assert x.tolist() == [[1, -1], [1, -1]]
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of"):
        x.copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match=r"output with shape \[2, 2\] doesn't match"):
        x.copy_(torch.ones(1, 2, 2))
    with pytest.raises(TypeError, match=r"argument 'other' \(position 1\) must be Tensor"):
        x.copy_([1, 2])


def test_gradients_of_copy_and_fill() -> None:
    x, v, s = leaf(2, 2), torch.ones(2, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    h = (x * 1).copy_(v)
    assert names(h)[0] == "CopyBackwards"
    gx, gv = torch.autograd.grad([h], [x, v], [count(2, 2)])
    assert gx.tolist() == [[0, 0], [0, 0]] and gv.tolist() == [2, 4]
    h = (x * 1).fill_(s)
    assert names(h)[0] == "FillBackward3" and h.tolist() == [[3, 3], [3, 3]]
    assert torch.autograd.grad([h], [s], [count(2, 2)])[0].item() == 6
    assert names((x * 1).fill_(2))[0] == "FillBackward2"
    assert names((x * 1).zero_())[0] == "ZeroBackward0"
    assert names(torch.fill(x, 2))[0] == "FillBackward0"


def test_numbers_must_fit() -> None:
    byte = torch.zeros(1, dtype=torch.uint8)
    assert byte.fill_(-1).item() == 255
    for value in (300, 1e9, math.nan, -256, -2.5):
        with pytest.raises(RuntimeError, match="type uint8_t without overflow"):
            byte.fill_(value)
    with pytest.raises(RuntimeError, match="type float without overflow"):
        torch.zeros(1).fill_(1e300)
    assert torch.zeros(1).fill_(math.inf).item() == math.inf
    assert torch.zeros(1, dtype=torch.half).fill_(1e300).item() == math.inf
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor"):
        torch.zeros(2).fill_(torch.ones(1))


def test_overlapping_targets() -> None:
    x = torch.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[:] = 2.0
    assert x.fill_(2).tolist() == [2, 2, 2]
    assert x.zero_().tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [(2, 3), ((2, 3),), ([2, 3],), (torch.Size([2, 3]),)])
def test_sizes(size: tuple[Any, ...]) -> None:
    assert torch.zeros(*size).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert torch.empty(*size).shape == (2, 3)


def test_odd_sizes() -> None:
    assert torch.zeros(()).shape == torch.zeros([]).shape == ()
    assert torch.zeros(size=(2,)).shape == (2,)
    assert torch.zeros(np.int64(2), torch.tensor(3)).shape == (2, 3)
    assert torch.ones(0, 3).shape == (0, 3)
    raises(TypeError, 'zeros() missing 1 required positional arguments: "size"', torch.zeros)
    raises(RuntimeError, "zeros: Dimension size must be non-negative.", torch.zeros, -1)
    raises(
        RuntimeError, "Trying to create tensor with negative dimension -1: [-1]", torch.empty, -1
    )
    raises(TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not float",
           torch.zeros, 2.0)  # fmt: skip
    raises(TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not numpy.",
           torch.zeros, np.ones(2))  # fmt: skip
    raises(TypeError, "zeros(): argument 'size' failed to unpack the object at pos 2",
           torch.zeros, 2, "a")  # fmt: skip
    raises(TypeError, "zeros() got an unexpected keyword argument 'foo'", torch.zeros, 2, foo=1)


def test_full_takes_the_dtype_of_its_value() -> None:
    kinds = [torch.full((1,), value).dtype for value in (True, 1, 1.5, 1j)]
    assert kinds == [torch.bool, torch.int64, torch.float32, torch.complex64]
    assert torch.full((2,), torch.tensor(3)).tolist() == [3, 3]
    assert torch.full((1,), 1.5, dtype=torch.int64).tolist() == [1]
    raises(TypeError, "full(): argument 'fill_value' (position 2) must be Number, not str",
           torch.full, (2,), "a")  # fmt: skip
    raises(RuntimeError, "value cannot be converted to type uint8_t without overflow",
           torch.full, (2,), 300, dtype=torch.uint8)  # fmt: skip


def test_eye() -> None:
    assert torch.eye(2, 3, dtype=torch.int64).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert torch.eye(0).shape == (0, 0)
    raises(RuntimeError, "n must be greater or equal to 0, got -1", torch.eye, -1)


def test_out() -> None:
    out = torch.ones(3)
    assert torch.zeros(2, out=out) is out
    assert out.tolist() == [0, 0]
    assert torch.arange(3, out=torch.ones(3)).dtype is torch.float32
    raises(RuntimeError, "dtype Float does not match dtype of out parameter (Long)",
           torch.zeros, 2, out=torch.ones(2, dtype=torch.int64), dtype=torch.float32)  # fmt: skip
