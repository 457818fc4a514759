"""Checkpoints that are not reentrant: saved values are forgotten, and computed again when needed.

Users find these in `utils.checkpoint`.

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

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from typing import Any, Final

from rushlight import dtypes
from rushlight.autograd.grad_mode import enable_grad
from rushlight.autograd.graph import _current_graph_task_id, saved_tensors_hooks
from rushlight.core.graph import TensorBase, here
from rushlight.core.saved.saved_tensor import SavedVariable, save_tensor
from rushlight.ops.compat.overloads import overload_of
from rushlight.utils.around import Around


class CheckpointError(RuntimeError):
    """A function computed something else the second time, or a value was asked for twice."""


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
        self.first_ops: list[str] = []
        self.second_ops: list[str] = []
        self.first_log: list[str] = []
        self.second_log: list[str] = []

    def keep(self, args: tuple[Any, ...]) -> None:
        """Save the arguments as the hooks outside want it; see Note [Nested checkpoints]."""
        self.arguments = [save_tensor(x, None) if isinstance(x, TensorBase) else x for x in args]

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
        arguments = [x.unpack(None) if isinstance(x, SavedVariable) else x for x in self.arguments]
        second = Second(self, task)
        self.second_ops.clear()
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
        parts = [
            " An error happened while unpacking tensors; dumping logs of latest computation\n"
            "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
            "Scroll all the way down for guidance on how to navigate these logs."
        ]
        for what, first, second in (
            ("Operations executed during", self.first_ops, self.second_ops),
            ("Tensors saved during", self.first_log, self.second_log),
        ):
            for title, log in (("the original forward", first), ("recomputation", second)):
                parts.append(f"{what} {title}:")
                parts.append("\n".join(f"  {i}: {line}" for i, line in enumerate(log)) or "  none")
            pairs = enumerate(zip(first, second, strict=False))
            places = [i for i, (a, b) in pairs if a != b]
            if places:
                parts.append(f"The first that differ are those at position {places[0]}.")
        parts.append(str(error).split("\n\n")[0])
        return "\n\n".join(parts)


class Log(Around):
    """Writes down which ops run, on what, and for which line of the user's."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines

    def answer(self, op: Any, raws: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        y = run()
        inputs = ", ".join(map(brief, raws))
        self.lines.append(f"{overload_of(op, raws)}({inputs}) = {brief(y)}, at {here()}")
        return y


def brief(x: Any) -> str:
    """A raw value in a few letters: dtype and shape of an array, a number as it is."""
    if isinstance(x, tuple):
        return f"({', '.join(map(brief, x))})"
    if not hasattr(x, "dtype"):
        return repr(x)
    return f"{dtypes.of(x.dtype)}{list(x.shape)}"


class Second:
    """The second run of a frame's function, for one pass."""

    def __init__(self, frame: Frame, task: Any) -> None:
        self.frame = frame
        self.task = task

    def pack(self, t: Any) -> Any:
        frame, task = self.frame, self.task
        if frame.debug:
            frame.second_log.append(frame.line(t))
        if t.requires_grad:
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


CHECKS: Final[dict[str, Callable[[Any], Any]]] = {"default": _shape_dtype_device, "none": _nothing}


# --- passes that share a second run ---------------------------------------------------------------
class GraphExecGroup:
    """Backward passes inside one `with` of this class run a checkpointed function again once
    between them; no two of them may need the same saved value.

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
