"""Tensors like others, of arrays and of buffers: strides, shared memory, history."""

from __future__ import annotations

import numpy as np

import rushlight as torch
from tests.helpers import raises


def test_like_keeps_the_order_of_strides() -> None:
    turned = torch.ones(2, 3).t()
    assert torch.zeros_like(turned).stride() == (1, 3)
    assert torch.ones_like(turned, memory_format=torch.contiguous_format).stride() == (2, 1)
    assert torch.zeros_like(torch.ones(2, 1).expand(2, 3)).stride() == (3, 1)
    assert torch.full_like(torch.ones(2, dtype=torch.int64), 1.5).tolist() == [1, 1]
    assert torch.zeros_like(torch.ones(2, requires_grad=True)).requires_grad is False
    raises(TypeError, "zeros_like(): argument 'input' (position 1) must be Tensor, not list",
           torch.zeros_like, [1])  # fmt: skip


def test_new() -> None:
    x = torch.ones(2, dtype=torch.float64)
    assert x.new_zeros(2).dtype is torch.float64
    assert x.new_ones((1, 2), dtype=torch.int64).tolist() == [[1, 1]]
    assert x.new_full((2,), 3).tolist() == [3, 3]
    assert x.new_tensor([1, 2]).dtype is torch.float64
    assert x.new_empty(0).shape == (0,)
    assert x.new([1, 2]).dtype is torch.float64
    assert x.new(3, 2).shape == (3, 2)


def test_empty_strided_and_scalar_tensor() -> None:
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.scalar_tensor(2).dtype is torch.float32


def test_as_tensor_keeps_the_history() -> None:
    x = torch.ones(2, requires_grad=True)
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, dtype=torch.float64).grad_fn is not None


def test_asarray() -> None:
    raises(ValueError, "can't alias arbitrary sequence", torch.asarray, [1], copy=False)
    a = np.ones(2)
    assert torch.asarray(a, copy=True).numpy() is not a
    assert torch.asarray(np.ones(1), requires_grad=True).requires_grad


def test_frombuffer() -> None:
    data = bytearray(b"\x01\x00\x02\x00")
    made = torch.frombuffer(data, dtype=torch.int16)
    data[0] = 9
    assert made.tolist() == [9, 2]
    assert torch.frombuffer(data, dtype=torch.uint8, count=1, offset=2).tolist() == [2]
    raises(ValueError, "buffer length (3 bytes) after offset (1 bytes) must be a multiple",
           torch.frombuffer, data, dtype=torch.int16, offset=1)  # fmt: skip
    raises(ValueError, "object does not implement Python buffer protocol", torch.frombuffer, 3,
           dtype=torch.int16)  # fmt: skip
