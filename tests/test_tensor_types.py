"""`type()`, `FloatTensor` and its like, the default type."""

from __future__ import annotations

import rushlight as torch
from tests.helpers import raises


def test_type() -> None:
    x = torch.ones(2)
    assert x.type() == "torch.FloatTensor"
    for kind in (torch.int64, "torch.LongTensor", torch.LongTensor):
        assert x.type(kind).dtype is torch.int64
    assert x.type(torch.FloatTensor) is x
    raises(ValueError, "invalid type: 'torch.FooTensor'", x.type, "torch.FooTensor")
    raises(TypeError, "dtype must be a type, str, or dtype object", x.type, 3)


def test_typed_constructors() -> None:
    assert torch.Tensor([[1, 0]]).dtype is torch.float32
    assert torch.Tensor().shape == (0,)
    assert torch.Tensor(2, 3).shape == torch.Tensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.LongTensor([1.5, 2]).tolist() == [1, 2]
    assert torch.BoolTensor([1, 0]).tolist() == [True, False]
    assert isinstance(torch.ones(2), torch.FloatTensor)
    assert not isinstance(torch.ones(2), torch.LongTensor)
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    raises(TypeError, "new(): data must be a sequence (got float)", torch.Tensor, 2.5)
    raises(TypeError, "expected TensorOptions(dtype=long int", torch.LongTensor, torch.ones(2))


def test_default_tensor_type() -> None:
    try:
        torch.set_default_tensor_type("torch.DoubleTensor")
        assert torch.tensor([1.5]).dtype is torch.float64
        assert torch.Tensor(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    raises(TypeError, "only floating-point types are supported", torch.set_default_tensor_type,
           torch.LongTensor)  # fmt: skip
