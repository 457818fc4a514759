"""Checkpoints: forget what a part of a model computed, and compute it again when it is needed.

    y = checkpoint(block, x, use_reentrant=False)

keeps `x` and the function alone. How it is done is in `recompute` (see Note [Recomputing]
there), in `reentrant` for the older kind, and in `selective`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from typing import Any

from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.core.grad_mode import Mode, ModeBlock, Undo, grad_enabled
from rushlight.errors import hide_insides
from rushlight.ops.described import describe_all as _describe_all
from rushlight.utils.recompute import CHECKS, CheckpointError, Frame, GraphExecGroup, Log
from rushlight.utils.reentrant import CheckpointFunction, check_backward_validity, detach_variable
from rushlight.utils.selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    FirstRun,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from rushlight.utils.surroundings import (
    DefaultDeviceType,
    Surroundings,
    get_device_states,
    set_device_states,
)

__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy",
    "DefaultDeviceType", "GraphExecGroup", "SelectiveCheckpointContext", "check_backward_validity",
    "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip
__dir__ = __all__.copy

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class Settings:
    """What the context managers below say about all checkpoints; None: nothing."""

    debug: bool | None = None
    early_stop: bool | None = None


class Set(ModeBlock, ContextDecorator):
    """A block with another value of one of the settings."""

    def __init__(self, name: str, value: bool | None) -> None:
        super().__init__(None, None)
        self.name = name
        self.value = value

    def fill(self, mode: Mode) -> Any:
        mode.closes = Undo(setattr, Settings, self.name, getattr(Settings, self.name))
        setattr(Settings, self.name, self.value)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Set:
    """In this block, checkpoints behave as with `debug=enabled`; None leaves it to each call."""
    return Set("debug", enabled)


def set_checkpoint_early_stop(enable: bool) -> Set:
    """In this block, checkpoints behave as with `early_stop=enable`, whenever backward runs.

    >>> from rushlight.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = torch.ones(2, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(torch.sin, x, use_reentrant=False)
    """
    return Set("early_stop", enable)


def noop_context_fn() -> Contexts:
    """The contexts of a checkpoint that wants none."""
    return nullcontext(), nullcontext()


def _without_reentrance(
    function: Callable[..., Any], preserve: bool, context_fn: Callable[[], Contexts],
    determinism_check: str, debug: bool, early_stop: bool,
    args: tuple[Any, ...], kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    if Settings.debug is not None:
        debug = Settings.debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in CHECKS:
        raise ValueError(
            f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}"
        )
    forward_context, recompute_context = context_fn()
    if not grad_enabled():
        return function(*args, **kwargs)
    surroundings = Surroundings(preserve)

    def again(*arguments: Any) -> None:
        with surroundings.again(), recompute_context:
            function(*arguments, **kwargs)

    early = early_stop if Settings.early_stop is None else Settings.early_stop
    frame = Frame(again, early, CHECKS[determinism_check], debug)
    frame.keep(args)
    if debug:
        forward_context, recompute_context = Log(frame.first_ops), Log(frame.second_ops)
    finished = False
    result: Any = None
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result = function(*args, **kwargs)
        finished = True
    if isinstance(forward_context, FirstRun):
        forward_context.results.settle(result)
    if not finished:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
            "exception raised during the checkpointed forward. This is not supported because "
            "checkpoint cannot return a value for a failed forward."
        )
    frame.complete = True
    return result


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn, determinism_check: str = "default",
    debug: bool = False, early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, whose inner values are computed again in the backward pass
    instead of being kept.

    use_reentrant: False (recommended) records as usual and works with every way to ask for
    gradients; True runs a backward pass within the backward pass, for `backward()` alone.
    preserve_rng_state: draw the same random numbers again (default True).
    context_fn: gives two context managers, for the first run and for the second.
    determinism_check: compare shapes, dtypes and devices of both runs ("default"), or not ("none").
    debug: list what either run saved, and where, if they differ.
    early_stop: end the second run as soon as all values are there.

    >>> from rushlight.utils.checkpoint import checkpoint
    >>> x = torch.tensor(2., requires_grad=True)
    >>> y = checkpoint(lambda t: (t * t).exp(), x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor(218.3926)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    try:
        preserve = kwargs.pop("preserve_rng_state", True)
        if not use_reentrant:
            return _without_reentrance(
                function, preserve, context_fn, determinism_check, debug, early_stop, args, kwargs
            )
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    except Exception as error:
        hide_insides(error)
        raise


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run functions (a list, or an `nn.Sequential`) one after another, as `segments` checkpoints;
    the last segment runs as usual.

    >>> from rushlight.utils.checkpoint import checkpoint_sequential
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint_sequential([torch.sin, torch.cos, torch.exp], 2, x, use_reentrant=False)
    tensor([1.9471, 1.9471], grad_fn=<ExpBackward0>)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if hasattr(functions, "children"):
        functions = list(functions.children())

    def part(start: int, stop: int) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for function in functions[start:stop]:
                x = function(x)
            return x

        return forward

    size = len(functions) // segments
    start = 0
    for _ in range(segments - 1 if size else 0):
        input = checkpoint(
            part(start, start + size), input, use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )  # fmt: skip
        start += size
    return part(start, len(functions))(input)


_describe_all(globals(), __all__)
