"""Checkpoints: forget what a part of a model computed, and compute it again when it is needed.

    y = checkpoint(block, x, use_reentrant=False)

keeps `x` and the function alone. Imported by users.

Note [Recomputing]
    Inside a checkpoint every saved value is replaced by an empty `Slot`. The first slot that a
    backward pass opens runs the function once more; the n-th value saved then belongs to the n-th
    slot, and when the last slot has its value the run is stopped. A slot gives its value away once
    a pass: the values of a pass never pile up, and a second pass (`retain_graph`) computes anew.

Note [Nested checkpoints]
    The arguments of a checkpoint are saved values themselves, of whatever hooks are in force
    outside it. So an inner checkpoint keeps nothing but slots of the outer one, and opening one of
    its own slots first makes the outer one compute its arguments.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from itertools import count
from typing import Any, Final

from rushlight.arrays.device import get_default_device
from rushlight.autograd.api import backward as run_backward
from rushlight.autograd.function import Function, Saved
from rushlight.autograd.grad_mode import enable_grad, no_grad
from rushlight.autograd.graph import _current_graph_task_id, saved_tensors_hooks
from rushlight.core.engine import running
from rushlight.core.graph import TensorBase
from rushlight.core.modes import grad_enabled
from rushlight.core.where import here
from rushlight.random import default_generator, fork_rng, get_rng_state, set_rng_state

__all__ = [
    "CheckpointError", "CheckpointFunction", "DefaultDeviceType", "GraphExecGroup",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "detach_variable",
    "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """A function computed something else the second time, or a value was asked for twice."""


class Settings:
    """What the context managers below say about all checkpoints; None: nothing."""

    debug: bool | None = None
    early_stop: bool | None = None


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """In this block, checkpoints behave as with `debug=enabled`; None leaves it to each call."""
    before = Settings.debug
    Settings.debug = enabled
    try:
        yield
    finally:
        Settings.debug = before


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """In this block, checkpoints behave as with `early_stop=enable`, whenever backward runs.

    >>> import rushlight as torch
    >>> from rushlight.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = torch.ones(2, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(torch.sin, x, use_reentrant=False)
    """
    before = Settings.early_stop
    Settings.early_stop = enable
    try:
        yield
    finally:
        Settings.early_stop = before


def noop_context_fn() -> Contexts:
    """The contexts of a checkpoint that asks for none."""
    return nullcontext(), nullcontext()


# --- what both kinds need -------------------------------------------------------------------------
def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors among `inputs` outside the graph, as leaves that require grad where they did.

    >>> import rushlight as torch
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
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class DefaultDeviceType:
    """The device whose random state is kept; one generator serves every device of rushlight."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Name the device."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The device that was named, or else the one that tensors are made on."""
        return DefaultDeviceType._default_device_type or get_default_device().type


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The numbers of the GPUs the arguments are on, and the state of the generator for each."""
    tensors: list[Any] = [x for x in args if isinstance(x, TensorBase)]
    numbers = [t.get_device() for t in tensors if t.device.type != "cpu"]
    return numbers, [get_rng_state() for _ in numbers]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Put the generator into the states that `get_device_states` gave."""
    for _, state in zip(devices, states, strict=False):
        set_rng_state(state)


class Surroundings:
    """What a function finds around it: the random state (if kept) and the default device."""

    def __init__(self, preserve: bool) -> None:
        self.random = default_generator.raw_state() if preserve else None
        self.device = get_default_device()

    @contextmanager
    def again(self) -> Iterator[None]:
        """The same surroundings once more; what is drawn inside leaves no trace outside."""
        device: Any = self.device
        with fork_rng(enabled=self.random is not None):
            if self.random is not None:
                default_generator.load(self.random)
            if device == get_default_device():
                yield
            else:
                with device:
                    yield


# --- the reentrant kind ---------------------------------------------------------------------------
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
        run = running()
        if run is not None and run.targets is not None:
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


# --- the kind without reentrance ------------------------------------------------------------------
class Slot:
    """The place of one saved value: by pass, the value computed again; None once it was given."""

    __slots__ = ("__weakref__", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}


class Enough(Exception):
    """Ends a second run of a function: all that was asked for is there."""


class Frame:
    """One call of a checkpointed function; see Note [Recomputing]."""

    def __init__(self, again: Any, early_stop: bool, meta: Any, debug: bool) -> None:
        self.again: Callable[..., None] = again
        self.early_stop = early_stop
        self.meta: Callable[[Any], Any] = meta
        self.arguments: list[Any] = []
        self.slots: list[weakref.ref[Slot]] = []
        self.metas: list[Any] = []
        self.computed: dict[Any, int] = {}  # by pass: how many values the second run has saved
        self.done: set[Any] = set()  # the passes it has run for
        self.complete = False  # the first run is over
        self.partial = False  # a pass inside the first run asked for less than it saves in all
        self.debug = debug
        self.first_log: list[str] = []
        self.second_log: list[str] = []

    def keep(self, args: tuple[Any, ...]) -> None:
        """Save the arguments as the hooks outside want it; see Note [Nested checkpoints]."""
        self.arguments = [Saved(x, None) if isinstance(x, TensorBase) else x for x in args]

    # --- the first run: hooks that keep nothing
    def pack(self, t: Any) -> Slot:
        slot = Slot()
        self.slots.append(weakref.ref(slot))
        self.metas.append(self.meta(t))
        if self.debug:
            self.first_log.append(self.line(t))
        return slot

    def unpack(self, slot: Slot) -> Any:
        try:
            return self.value(slot)
        except CheckpointError as error:
            if not self.debug:
                raise
            raise CheckpointError(self.report(error)) from error

    def value(self, slot: Slot) -> Any:
        """A slot's value for the running pass."""
        group = GraphExecGroup._get_current_group()
        task: Any = group
        if group is None:
            task = _current_graph_task_id()
            if task == -1:
                task = ("outside", next(_outside))  # someone looks at `grad_fn._saved_self`
        if task not in self.done:
            self.recompute(task)
        if task not in slot.values:
            raise AssertionError(
                "Something went unexpectedly wrong in activation checkpoint. Please report this "
                "bug by filing an issue to PyTorch."
            )
        if slot.values[task] is None:
            extra = (
                "Performing two backward calls that overlap (i.e. require the same saved "
                "activation in order to compute gradients) is not allowed while under the "
                "torch.utils.checkpoint.GraphExecGroup context. "
                if group is not None
                else ""
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                f"unpacked once. {extra}If you are calling ctx.saved_tensors in backward, make "
                "sure to do so only once. Otherwise please open an issue with details on your use "
                "case."
            )
        found = slot.values[task]
        slot.values[task] = None
        return found

    # --- the second run: hooks that fill the slots
    def recompute(self, task: Any) -> None:
        arguments = [x.unpack(None) if isinstance(x, Saved) else x for x in self.arguments]
        second = Second(self, task)
        self.second_log.clear()
        try:
            with saved_tensors_hooks(second.pack, second.unpack), enable_grad():
                self.again(*arguments)
        except Enough as enough:
            if enough.args[0] is not self:
                raise
        self.done.add(task)
        self.check(task)

    def check(self, task: Any) -> None:
        """Raise if the second run saved other values than the first."""
        if self.partial:
            return
        computed = self.computed.get(task, 0)
        if computed != len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.slots)}\n"
                f"Number of tensors saved during recomputation: {computed}.\n{_TIP}"
            )
        different = ""
        for i, reference in enumerate(self.slots):
            slot = reference()
            if slot is None:
                continue
            meta = self.meta(slot.values[task])
            if meta != self.metas[i]:
                different += (
                    f"tensor at position {i}:\nsaved metadata: {self.metas[i]}\n"
                    f"recomputed metadata: {meta}\n"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{different}.\n{_TIP}"
            )

    # --- debug
    def line(self, t: Any) -> str:
        """What was saved, and for which line of the user's."""
        maker = "" if t.grad_fn is None else f", of {t.grad_fn.name()}"
        return f"{t.dtype} {list(t.shape)}{maker}, saved at {here()}"

    def report(self, error: CheckpointError) -> str:
        sides = (("original forward", self.first_log), ("recomputation", self.second_log))
        parts = [
            " An error happened while unpacking tensors; dumping logs of latest computation\n"
            "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`."
        ]
        for title, log in sides:
            parts.append(f"Tensors saved during the {title}:")
            parts.append("\n".join(f"  {i}: {line}" for i, line in enumerate(log)) or "  none")
        pairs = enumerate(zip(self.first_log, self.second_log, strict=False))
        places = [i for i, (a, b) in pairs if a != b]
        if places:
            parts.append(f"The first that differ are those at position {places[0]}.")
        parts.append(str(error).split("\n\n")[0])
        return "\n\n".join(parts)


class Second:
    """The second run of a frame's function, for one pass."""

    def __init__(self, frame: Frame, task: Any) -> None:
        self.frame = frame
        self.task = task

    def pack(self, t: Any) -> Any:
        frame, task = self.frame, self.task
        if frame.debug:
            frame.second_log.append(frame.line(t))
        t = t.detach()
        at = frame.computed.get(task, 0)
        frame.computed[task] = at + 1
        if at >= len(frame.slots):
            if not frame.complete:  # a backward pass inside the first run, which is not over
                frame.partial = True
                return t
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                f"during the original forward pass.\n{_TIP}"
            )
        slot = frame.slots[at]()
        if slot is not None:  # else a pass inside the function has used and freed it
            slot.values[task] = t
        if frame.early_stop and at + 1 == len(frame.slots):
            raise Enough(frame)
        return t  # the function may run a backward pass of its own

    def unpack(self, t: Any) -> Any:
        return t


_outside: Final = count()
_TIP: Final = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to "
    "`torch.utils.checkpoint.checkpoint(...)` or use "
    "`with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):`."
)


def _shape_dtype_device(t: Any) -> dict[str, Any]:
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


def _nothing(t: Any) -> None:
    return None


_CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    "default": _shape_dtype_device,
    "none": _nothing,
}


def _without_reentrance(
    function: Callable[..., Any], preserve: bool, context_fn: Callable[[], Contexts],
    determinism_check: str, debug: bool, early_stop: bool,
    args: tuple[Any, ...], kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    if Settings.debug is not None:
        debug = Settings.debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _CHECKS:
        raise ValueError(
            f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}"
        )
    forward_context, recompute_context = context_fn()
    if not grad_enabled():
        return function(*args, **kwargs)
    surroundings = Surroundings(preserve)

    def again(*arguments: Any) -> None:
        with surroundings.again(), recompute_context:
            function(*arguments, **kwargs)

    early = early_stop if Settings.early_stop is None else Settings.early_stop
    frame = Frame(again, early, _CHECKS[determinism_check], debug)
    frame.keep(args)
    finished = False
    result: Any = None
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result = function(*args, **kwargs)
        finished = True
    if not finished:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
            "exception raised during the checkpointed forward. This is not supported because "
            "checkpoint cannot return a value for a failed forward."
        )
    frame.complete = True
    return result


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose inner values are computed again in the backward pass
    instead of being kept.

    use_reentrant: False (recommended) records as usual and works with every way to ask for
    gradients; True runs a backward pass within the backward pass, for `backward()` alone.
    preserve_rng_state: draw the same random numbers again (default True).
    context_fn: gives two context managers, for the first run and for the second.
    determinism_check: compare shapes, dtypes and devices of both runs ("default"), or not ("none").
    debug: list what either run saved, and where, if they differ.
    early_stop: end the second run as soon as all values are there.

    >>> import rushlight as torch
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


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run functions (a list, or an `nn.Sequential`) one after another, as `segments` checkpoints;
    the last segment runs as usual.

    >>> import rushlight as torch
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
            part(start, start + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
        start += size
    return part(start, len(functions))(input)


# --- passes that share a second run ---------------------------------------------------------------
class GraphExecGroup:
    """Backward passes inside one `with` of this class run a checkpointed function again once
    between them; no two of them may need the same saved value.

    >>> import rushlight as torch
    >>> from rushlight.utils.checkpoint import GraphExecGroup, checkpoint
    >>> x = torch.ones(2, requires_grad=True)
    >>> a, b = checkpoint(lambda t: (t.sin(), t.cos()), x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     a.sum().backward()
    ...     b.sum().backward()
    """

    def __enter__(self) -> GraphExecGroup:
        inside = _group.get()
        if inside is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {inside}"
            )
        _group.set(self)
        return self

    def __exit__(self, *args: object) -> None:
        _group.set(None)

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _group.get()


_group: Final[ContextVar[GraphExecGroup | None]] = ContextVar("rushlight_group", default=None)
