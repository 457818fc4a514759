"""Your own ops: `Function` with static `forward` and `backward`.

How a call goes is in `autograd.apply`, the context in `autograd.context`.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from rushlight.autograd.apply import call
from rushlight.autograd.context import BackwardCFunction, FunctionCtx, Rules
from rushlight.core.grad_mode import grad_enabled, within
from rushlight.core.graph import TensorBase, next_number, node_base
from rushlight.core.node_api import GraphNode
from rushlight.core.views.history import set_history

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]
__dir__ = __all__.copy

_ids = itertools.count()


class FunctionMeta(type):
    """Makes, for each Function, the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = type(
            name + "Backward",
            (BackwardCFunction,),
            {
                "_forward_cls": cls,
                "_autograd_function_id": next(_ids),
                "__module__": "torch.autograd.function",
            },
        )
        super().__init__(name, bases, attrs)


class Function(Rules, metaclass=FunctionMeta):
    """Base class of your own differentiable operations.

    Define `forward` and `backward` as static methods, and call `apply`:

    >>> class Exp(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    >>> x = torch.zeros(2, requires_grad=True)
    >>> Exp.apply(x)
    tensor([1., 1.], grad_fn=<ExpBackward>)

    Or leave `ctx` out of `forward`, and save in `setup_context(ctx, inputs, output)`. `jvp` gives
    the tangents of forward mode, `vmap` the outputs for a batch.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the function and record it."""
        return call(cls, args, kwargs)


class InplaceFunction(Function):
    """A function whose instances say whether it works in place; use `Function` in new code."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for imports of old code; use `Function` with tuples instead."""

    def forward_extended(self, *input: Any) -> None:
        """The forward of old code."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """The backward of old code."""
        raise NotImplementedError


# --- rules that cannot be differentiated ----------------------------------------------------------
class _Error(GraphNode):
    """The history of what cannot be differentiated: says so, if one tries."""

    message = ""

    def name(self) -> str:
        return "torch::autograd::Error"

    def _run(self, g: Any, tensors: bool) -> Any:
        raise RuntimeError(self.message)


_Visible: Any = type("Error", (_Error,), dict(node_base.members))


def _as_leaf(x: Any) -> Any:
    leaf = x.detach()
    leaf._requires_grad = True  # `requires_grad_` is refused inside transforms
    return leaf


def refuse_history(outputs: tuple[Any, ...], message: str) -> tuple[Any, ...]:
    """The same values, with a history that raises `message` when it is followed back."""
    node = _Visible()
    node.message = message
    made = tuple([x.detach() if isinstance(x, TensorBase) else x for x in outputs])  # type: ignore[attr-defined]
    node._next_edges = tuple([_as_leaf(x) if isinstance(x, TensorBase) else None for x in made])
    node._seq_nr = next_number()
    if len(made) > 1:
        node._output_metas = [
            (x._array.shape, x._array.dtype) if isinstance(x, TensorBase) else None for x in made
        ]
    for nr, x in enumerate(made):
        if isinstance(x, TensorBase):
            set_history(x, node, nr)
    return made


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `backward`: it cannot itself be differentiated, and says so if one tries.

    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @torch.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         return g * 2 * ctx.saved_tensors[0].item()
    >>> x = torch.tensor(3., requires_grad=True)
    >>> y = Square.apply(x) * x
    >>> (g,) = torch.autograd.grad(y, x, create_graph=True)
    >>> g.backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: trying to differentiate twice a function that was marked with ...
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with within(False, False):
            outputs = fn(ctx, *args, **kwargs)
        if not grad_enabled():
            return outputs
        if not any(isinstance(x, TensorBase) and x.requires_grad for x in args):  # type: ignore[attr-defined]
            return outputs
        several = isinstance(outputs, tuple)
        made = refuse_history(
            outputs if several else (outputs,),
            "trying to differentiate twice a function that was marked with @once_differentiable",
        )
        return made if several else made[0]

    return wrapper
