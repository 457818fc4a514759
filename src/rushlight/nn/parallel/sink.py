"""Learning of the end of a backward pass, at its very beginning."""

from __future__ import annotations

import weakref
from typing import Any

from rushlight.autograd.function import Function
from rushlight.autograd.variable import Variable
from rushlight.nn.parallel.outputs import find_tensors, map_tensors
from rushlight.nn.parallel.reducer import Reducer

__all__ = ["watch_end"]
__dir__ = __all__.copy


class _DDPSink(Function):
    """The identity of the outputs; its backward is the first to run, and asks to be told of the
    end. Outputs that the loss does not use send None through, and so those parameters answer too.
    """

    @staticmethod
    def forward(ctx: Any, reducer: weakref.ref[Reducer], *outputs: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.reducer = reducer
        return tuple(t.clone() for t in outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        reducer = ctx.reducer()
        if reducer is not None:
            Variable._execution_engine.queue_callback(reducer.end_of_backward)
        return None, *grads


def watch_end(output: Any, reducer: Reducer) -> Any:
    """A module's output, equal but such that its backward pass ends with
    `reducer.end_of_backward`."""
    tracked = [t for t in find_tensors(output) if t.grad_fn is not None]
    if not tracked:
        return output
    sunk = _DDPSink.apply(weakref.ref(reducer), *tracked)
    instead = {id(t): s for t, s in zip(tracked, sunk)}
    return map_tensors(lambda t: instead.get(id(t), t), output)
