"""`torch.tensor(data)`: inferred dtypes and shapes, data that makes no tensor, shared memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.helpers import raises


# --- tensor(...) ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (True, torch.bool, ()),
        (3, torch.int64, ()),
        (2.5, torch.float32, ()),
        (1j, torch.complex64, ()),
        ([], torch.float32, (0,)),
        ([[], []], torch.float32, (2, 0)),
        ([True, 1], torch.int64, (2,)),
        ([True, 1.0], torch.float32, (2,)),
        ([1, 1j], torch.complex64, (2,)),
        ([[1, 2], (3, 4)], torch.int64, (2, 2)),
        (range(3), torch.int64, (3,)),
        (bytearray(b"ab"), torch.int64, (2,)),
        (np.float64(1), torch.float64, ()),
        ([np.float32(1), 2], torch.float32, (2,)),
        ([np.int32(1)], torch.int32, (1,)),
        (np.ones((2, 1), np.int16), torch.int16, (2, 1)),
        ([np.array([1, 2]), np.array([3, 4])], torch.int64, (2, 2)),
        ([torch.tensor(1), torch.tensor(2.0)], torch.float32, (2,)),
        ([torch.tensor([1]), torch.tensor([3])], torch.int64, (2,)),
        ([torch.tensor(1.0, dtype=torch.float64), 2], torch.float64, (2,)),
    ],
)
def test_dtype_and_shape_are_inferred(data: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    made = torch.tensor(data)
    assert made.dtype is dtype
    assert made.shape == shape


def test_values() -> None:
    assert torch.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert torch.tensor([1.5, 2.5], dtype=torch.int32).tolist() == [1, 2]
    assert torch.tensor([-1], dtype=torch.uint8).tolist() == [255]
    assert torch.tensor([float("nan"), 0.0], dtype=torch.bool).tolist() == [True, False]
    assert torch.tensor([1e40]).item() == math.inf
    assert torch.tensor(2**63, dtype=torch.uint64).item() == 2**63
    assert torch.tensor([1], dtype=float).dtype is torch.float64


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ([1, [2, 3]], TypeError, "'list' object cannot be interpreted as an integer"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        ([1.0, "a"], TypeError, "new(): invalid data type 'str'"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([object()], RuntimeError, "Could not infer dtype of object"),
        ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
        ([2**63], ValueError, "Overflow when unpacking long long"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_."),
        (np.arange(3)[::-1], ValueError, "At least one stride in the given numpy array is negat"),
    ],
)
def test_data_that_makes_no_tensor(data: Any, error: type[Exception], text: str) -> None:
    raises(error, text, torch.tensor, data)


def test_options_that_make_no_tensor() -> None:
    overflow = "value cannot be converted to type uint8 without overflow"
    raises(RuntimeError, overflow, torch.tensor, [300], dtype=torch.uint8)
    raises(TypeError, "must be real number, not complex", torch.tensor, [1j], dtype=torch.float32)
    grad = "Only Tensors of floating point and complex dtype can require gradients"
    raises(RuntimeError, grad, torch.tensor, [1], requires_grad=True)
    raises(TypeError, "tensor(): argument 'dtype' must be torch.dtype", torch.tensor, 1, dtype="f")
    raises(
        TypeError, "tensor(): argument 'requires_grad' must be", torch.tensor, 1, requires_grad=1
    )


def test_a_tensor_from_a_tensor_warns_and_copies() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = torch.tensor(x)
    assert y.is_leaf and not y.requires_grad
    y[0] = 5
    assert x.tolist() == [1, 1]


def test_numpy_memory_is_shared_or_not() -> None:
    a = np.zeros(2)
    shared, copied = torch.from_numpy(a), torch.tensor(a)
    also, cast = torch.as_tensor(a), torch.as_tensor(a, dtype=torch.float32)
    a[0] = 7
    assert shared.tolist() == also.tolist() == torch.asarray(a).tolist() == [7, 0]
    assert copied.tolist() == cast.tolist() == [0, 0]
    raises(TypeError, "expected np.ndarray (got list)", torch.from_numpy, [1])
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(np.broadcast_to(np.ones(1), (2,)))
