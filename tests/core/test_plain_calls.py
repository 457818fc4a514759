"""Calls that make tensors without an interpreted frame give what the public functions give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch

DATA: list[Any] = [
    1.5, 7, True, -0.0, math.inf, math.nan, 2**62, [1.0, 2.0], [1, 2, 3], [True, False], [1, 2.5],
    (1, 2), [[1.0], [2.0]], [(1, 2), [3, 4]], [[[1]]], [1e300, -1e300], [2**60, 0.5], [1e-46],
    [[0.1, 0.2], [0.3, 0.4]], [True, 2], [True, 2.0], [], [[]], [[], []], [1 + 2j], 3j,
    [np.float64(1.5)], [np.float32(1.5), 2.0], np.int64(3), [torch.tensor(1.0), 2.0], range(3),
]  # fmt: skip


@pytest.mark.parametrize("data", DATA, ids=repr)
def test_tensors_of_numbers(data: Any) -> None:
    quick, public = torch.tensor(data), torch.tensor(data, dtype=None)  # a keyword: looked at
    assert quick.dtype is public.dtype and quick.shape == public.shape
    assert quick.stride() == public.stride()
    np.testing.assert_array_equal(quick.numpy(), public.numpy())
    np.testing.assert_array_equal(np.signbit(quick.numpy().real), np.signbit(public.numpy().real))


@pytest.mark.parametrize(
    "data", [[[1, 2], [3]], [1, [2]], [[1], 2], 2**63, [2**70], "ab", [None], [[1.0], "a"]]
)
def test_what_is_no_tensor(data: Any) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)) as quick:
        torch.tensor(data)
    with pytest.raises((ValueError, TypeError, RuntimeError)) as public:
        torch.tensor(data, dtype=None)
    assert type(quick.value) is type(public.value)
    assert str(quick.value).split("\n")[0] == str(public.value).split("\n")[0]


def test_requires_grad() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert x.requires_grad and x.is_leaf and x.grad_fn is None
    assert not torch.tensor([1.0], requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        torch.tensor([1, 2], requires_grad=True)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        torch.tensor([1.0], grad=True)
    with torch.inference_mode():
        assert torch.tensor([1.0]).is_inference()


def test_the_default_dtype_and_device() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        made = [torch.tensor(1.0), torch.full((2,), 1.0), torch.zeros(2), torch.empty(2)]
        assert all(t.dtype is torch.float64 for t in made)
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        made = [torch.tensor(1.0), torch.full((2,), 1.0), torch.zeros(2), torch.empty(2)]
        assert all(t.device.type == "meta" for t in made)


@pytest.mark.parametrize("value", [1.5, 0.0, -0.0, 3, -2, 0, True, math.inf, math.nan, 2j])
@pytest.mark.parametrize("size", [(2, 3), (), (0, 4), (3,), [2, 2]])
def test_full(size: Any, value: Any) -> None:
    quick, public = torch.full(size, value), torch.full(size, value, layout=torch.strided)
    assert quick.dtype is public.dtype and quick.shape == public.shape
    np.testing.assert_array_equal(quick.numpy(), public.numpy())
    np.testing.assert_array_equal(np.signbit(quick.numpy().real), np.signbit(public.numpy().real))


def test_what_cannot_be_full() -> None:
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without over"):
        torch.full((2,), 1e300)
    with pytest.raises(RuntimeError, match="Dimension size must be non-negative"):
        torch.full((-2,), 1.0)
    with pytest.raises(TypeError, match="argument 'size' .position 1. must be tuple of ints"):
        torch.full(2, 1.0)


def test_numbers_that_do_not_fit() -> None:
    x = torch.ones(2)
    for value, error in ((1e300, RuntimeError), (-1e39, RuntimeError), (2**70, OverflowError)):
        with pytest.raises(error):
            x.fill_(value)
    assert x.tolist() == [1.0, 1.0] and x._version == 0
    with pytest.raises(OverflowError, match="int too big to convert"):
        torch.full((2,), 10**40)
    assert x.fill_(-math.inf).tolist() == [-math.inf] * 2
    assert torch.ones(1, dtype=torch.float64).fill_(1e300).tolist() == [1e300]
    assert x.fill_(3.4028234663852886e38)[0] == torch.finfo(torch.float32).max


def test_empty() -> None:
    x = torch.empty(2, 3)
    assert x.shape == (2, 3) and x.dtype is torch.float32 and x.is_contiguous()
    like = torch.empty_like(torch.ones(3, 2, dtype=torch.int16).t())
    assert like.shape == (2, 3) and like.dtype is torch.int16 and like.stride() == (1, 2)
    assert torch.empty_like(torch.ones(4)).fill_(2).tolist() == [2.0] * 4
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        torch.empty(-1)
