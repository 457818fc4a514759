"""`Parameter` and `Buffer`: the tensors that a module knows as its own."""

from __future__ import annotations

import typing as _typing
from collections import OrderedDict
from typing import Any, Self

from rushlight.core.graph import TensorBase
from rushlight.missing import face as _face
from rushlight.ops.overriding import disabled_torch_function, overrides
from rushlight.ops.registry import functions
from rushlight.printing import parameter_str
from rushlight.tensor import Tensor, TensorClass
from rushlight.tensor_memory import _make_subclass, _own_attributes

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy",
]  # fmt: skip


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
        if overrides(data):  # a class with functions of its own stays what it is: DTensor
            marked: Self = _marked(data, requires_grad)
            return marked
        if requires_grad and data._array.dtype.kind not in "fcVW":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        t: Self = _make_subclass(cls, data, requires_grad)
        t._storage = data._storage  # one memory, one count of its writes
        return t

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass  # __new__ did it all; that of a subclass may take other arguments

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


def _marked(data: Any, requires_grad: bool) -> Any:
    """A tensor of a class with a `__torch_function__`, as one that says it is a parameter."""
    t = data.detach().requires_grad_(requires_grad)
    if type(t) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
            "detach() returns an instance of the same type, but return type "
            f"{type(t).__name__} was found instead. To use the type as a Parameter, please correct "
            "the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    t._is_param = True
    return t


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


# --- values without a shape -----------------------------------------------------------------------
class UninitializedTensorMixin:
    """A tensor that is given its shape, and with it its class, by `materialize`."""

    cls_to_become: Any = None
    data: Any

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of a shape, whose values do not matter yet."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = functions["empty"](tuple(shape), device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Not known yet: an error."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def numel(self) -> int:
        """Not known yet: an error."""
        raise ValueError(
            "Attempted to use an uninitialized parameter in <method 'numel' of "
            "'torch._C.TensorBase' objects>. This error happens when you are using a `LazyModule` "
            "or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When "
            "using LazyModules Call `forward` with a dummy batch to initialize the parameters "
            "before calling torch functions"
        )

    def share_memory_(self) -> Any:
        """There is nothing to share yet: an error."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]:
        t: Any = self
        return _rebuild_lazy, (type(self), t.requires_grad, self.data.device, self.data.dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        t: Any = self
        made = _rebuild_lazy(type(self), t.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = made
        return made


def _rebuild_lazy(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    return cls(requires_grad, device, dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """UninitializedParameter(requires_grad=True, device=None, dtype=None): a parameter whose shape
    is not known yet; lazy modules have them.

    >>> p = torch.nn.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> type(p).__name__, p.shape
    ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        data = functions["empty"](0, device=device, dtype=dtype)
        return super().__new__(cls, data, requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass  # __new__ did it all


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """UninitializedBuffer(requires_grad=False, device=None, dtype=None, persistent=True): a buffer
    whose shape is not known yet.

    >>> torch.nn.UninitializedBuffer()
    <UninitializedBuffer>
    """

    cls_to_become = Tensor
    persistent: bool
    # else importing this file would exchange the code of all functions: Note [Overrides]
    __torch_function__ = classmethod(disabled_torch_function)

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> Self:  # fmt: skip
        data = functions["empty"](0, device=device, dtype=dtype)
        made: Any = _make_subclass(cls, data, requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made  # type: ignore[no-any-return]

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> None:  # fmt: skip
        pass  # __new__ did it all


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet.

    >>> torch.nn.parameter.is_lazy(torch.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(param, UninitializedTensorMixin)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.parameter", globals())
