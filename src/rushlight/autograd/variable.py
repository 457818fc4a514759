"""`Variable`: before PyTorch 0.4 the tensor that had gradients; today just a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.engine.engine import current_task, queue_callback
from rushlight.core.graph import TensorBase, wrap_alias
from rushlight.tensor import Tensor

__all__ = ["Variable"]
__dir__ = __all__.copy


class Engine:
    """`Variable._execution_engine`: what code that looks behind `backward` asks of it."""

    def queue_callback(self, callback: Callable[[], object]) -> None:
        """Call something when the backward pass that is running here is over.

        >>> x = torch.ones(1, requires_grad=True)
        >>> y = x * 2
        >>> engine = torch.autograd.Variable._execution_engine
        >>> handle = y.register_hook(lambda g: engine.queue_callback(lambda: print(x.grad)))
        >>> y.backward()
        tensor([2.])
        """
        queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether a checkpoint of the older kind may be used in the pass that is running here: not
        where `inputs=` were given."""
        task = current_task()
        return task is None or task.inputs is None


class VariableMeta(type):
    _execution_engine = Engine()

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """Variable(data, requires_grad=False): a tensor on the same memory.

    >>> from rushlight.autograd import Variable
    >>> Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        t: Any = wrap_alias(data._array, data)
        if requires_grad:
            t.requires_grad = True
        return t
