"""`Parameter` and `Buffer`: the tensors that a module knows as its own."""

from __future__ import annotations

import typing as _typing
from collections import OrderedDict
from typing import Any, Self

from rushlight.core.graph import TensorBase
from rushlight.missing import face as _face
from rushlight.ops.overriding import disabled_torch_function
from rushlight.ops.registry import functions
from rushlight.printing import parameter_str
from rushlight.tensor import Tensor, TensorClass
from rushlight.tensor_memory import _make_subclass, _own_attributes

__all__ = ["Buffer", "Parameter"]


class ParameterClass(TensorClass):
    """The class of Parameter: also knows tensors of other classes that say they are parameters."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, TensorBase)
            and getattr(instance, "_is_param", False) is True
        )

    def __repr__(cls) -> str:
        return "<class 'torch.nn.parameter.Parameter'>" if cls is Parameter else type.__repr__(cls)


class Parameter(Tensor, metaclass=ParameterClass):
    """Parameter(data, requires_grad=True): a tensor that modules learn.

    Assigned to an attribute of a module it becomes one of its `parameters()`.

    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    # what is computed from a parameter is a tensor, no parameter
    __torch_function__ = classmethod(disabled_torch_function)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = functions["empty"](0)
        if not isinstance(data, TensorBase):
            data = data.detach()  # PyTorch's AttributeError for what is no tensor
        if requires_grad and data._array.dtype.kind not in "fcVW":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        t: Self = _make_subclass(cls, data, requires_grad)
        t._storage = data._storage  # one memory, one count of its writes
        return t

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        pass  # __new__ did it all

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]:
        state = _own_attributes(self)
        arguments: tuple[Any, ...] = (type(self), self.data, self.requires_grad, OrderedDict())
        return _rebuild_parameter, (*arguments, state) if state else arguments

    # mypy drops the names of a dunder method's arguments, and then misses this one
    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return parameter_str(self, tensor_contents)


def _rebuild_parameter(
    cls: Any, data: Any, requires_grad: bool, hooks: Any, state: dict[str, Any] | None = None
) -> Any:
    made = cls(data, requires_grad)
    for key, value in (state or {}).items():
        setattr(made, key, value)
    return made


class BufferClass(TensorClass):
    """The class of Buffer: an instance is any tensor that `Buffer` marked."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TensorBase) and getattr(instance, "_is_buffer", False) is True


class Buffer(Tensor, metaclass=BufferClass):
    """Buffer(data, *, persistent=True): a tensor that belongs to a module but is not learned.

    >>> m = torch.nn.Module()
    >>> m.mean = torch.nn.Buffer(torch.zeros(2))
    >>> list(m.state_dict())
    ['mean']
    """

    persistent: bool
    __torch_function__ = classmethod(disabled_torch_function)

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = functions["empty"](0)
        t = data.detach()
        t.requires_grad = data.requires_grad
        t.persistent = persistent
        t._is_buffer = True
        return t


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.parameter", globals())
