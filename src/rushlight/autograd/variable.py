"""`Variable`: before PyTorch 0.4 the tensor that had gradients; today just a tensor."""

from __future__ import annotations

from typing import Any

from rushlight.core.graph import TensorBase, wrap_alias
from rushlight.tensor import Tensor

__all__ = ["Variable"]


class VariableMeta(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """Variable(data, requires_grad=False): a tensor on the same memory.

    >>> import rushlight as torch
    >>> from rushlight.autograd import Variable
    >>> Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        t: Any = wrap_alias(data.array, data)
        if requires_grad:
            t.requires_grad = True
        return t
