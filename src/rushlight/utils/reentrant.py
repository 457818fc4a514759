"""Checkpoints of the reentrant kind: the backward pass of a part runs within that of the whole.

Users find these in `utils.checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.autograd.api import backward as run_backward
from rushlight.autograd.function import Function
from rushlight.autograd.grad_mode import enable_grad, no_grad
from rushlight.core.engine.engine import current_task
from rushlight.core.graph import TensorBase
from rushlight.ops.warned import warn_caller
from rushlight.utils.surroundings import Surroundings


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors among `inputs` outside the graph, as leaves that require grad where they did.

    >>> x = torch.ones(2, requires_grad=True) * 2
    >>> torch.utils.checkpoint.detach_variable((x, 3))
    (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    found: list[Any] = []
    for x in inputs:
        if isinstance(x, TensorBase):
            t: Any = x
            x = t.detach()
            x.requires_grad = t.requires_grad
        found.append(x)
    return tuple(found)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input of a reentrant checkpoint requires grad."""
    tensors: list[Any] = [x for x in inputs if isinstance(x, TensorBase)]
    if not any(t.requires_grad for t in tensors):
        warn_caller("None of the inputs have requires_grad=True. Gradients will be None")


class CheckpointFunction(Function):
    """Runs a function without recording; its backward runs it again, recording, and starts a
    backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings(preserve_rng_state)
        ctx.inputs = [None if isinstance(x, TensorBase) else x for x in args]
        ctx.tensor_indices = [i for i, x in enumerate(args) if isinstance(x, TensorBase)]
        ctx.save_for_backward(*[args[i] for i in ctx.tensor_indices])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        task = current_task()
        if task is not None and task.inputs is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for i, t in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = t
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, TensorBase):
            outputs = (outputs,)
        asking = [
            (y, g)
            for y, g in zip(outputs, grads, strict=True)
            if isinstance(y, TensorBase) and y.requires_grad  # type: ignore[attr-defined]
        ]
        if not asking:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        run_backward([y for y, _ in asking], [g for _, g in asking])
        return None, None, *[x.grad if isinstance(x, TensorBase) else None for x in detached]  # type: ignore[attr-defined]
