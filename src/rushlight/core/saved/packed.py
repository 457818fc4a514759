"""Saved values in the user's own wrapping: the hooks in force, and what they made of a value.

While `saved_tensors_hooks` is in force, a node keeps, in place of a saved array, a `Packed`: what
the pack hook returned, and the hook that makes a tensor of it again. Its memory is not watched for
writes: nobody can know what a hook did with it. Imported by `core.record` and `core.node`.

Note [Innermost hooks]
    The hooks stand in the current mode (`Mode.saving`), and modes inside inherit them. A mode that
    was not left when its hooks were must not go on packing: hence `alive`, and `outer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.grad_mode import Mode, ModeBlock, current, inference_enabled, state, within
from rushlight.core.graph import Node, OpSpec, Storage, TensorBase, wrap, wrap_as
from rushlight.native import i64, mypyc_attr


class Saving:
    """Hooks on saved values, from entering to leaving them.

    `message` forbids further hooks and says why; `watcher` is called with each tensor that is
    about to be written in place.
    """

    def __init__(self, pack: Any, unpack: Any, message: str | None, watcher: Any) -> None:
        self.pack = pack
        self.unpack = unpack
        self.message = message
        self.watcher = watcher
        self.alive = True
        self.outer: Saving | None = None

    def close(self) -> None:
        """End the hooks: modes entered inside and still alive see those outside them again."""
        self.alive = False


class Packed:
    """One saved value as its pack hook left it."""

    def __init__(self, value: Any, unpack: Any) -> None:
        self.value = value
        self.unpack = unpack


def saving_now() -> Saving | None:
    """The innermost hooks still in force here; see Note [Innermost hooks]."""
    if state.active == 0:
        return None
    mode = current()
    saving: Saving | None = None if mode is None else mode.saving
    while saving is not None and not saving.alive:
        saving = saving.outer
    return saving


@mypyc_attr(allow_interpreted_subclasses=True)
class SavingBlock(ModeBlock):
    """A block, in one thread or task, with hooks on saved values: those that `hooks` gives."""

    def __init__(self) -> None:
        super().__init__(None, None)

    def hooks(self) -> Saving:
        raise NotImplementedError

    def fill(self, mode: Mode) -> Any:
        saving = self.hooks()
        saving.outer = saving_now()
        mode.saving = saving
        mode.closes = saving
        return None


def before_write(target: TensorBase) -> None:
    """Tell whoever keeps this tensor's memory that it is about to be written."""
    saving = saving_now()
    while saving is not None:
        if saving.alive and saving.watcher is not None:
            saving.watcher(target)
        saving = saving.outer


# --- packing --------------------------------------------------------------------------------------
def pack(hook: Callable[[Any], Any], unpack: Any, t: TensorBase) -> Packed:
    """Call a pack hook on a tensor that is being saved."""
    memory: Storage = t._storage
    if memory.inference:
        refuse_inference()
    version = memory.version
    with within(False, inference_enabled()):
        value = hook(t)
    if memory.version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook cannot be modified by in-place operations as this can lead to unexpected "
            "side-effects. Please open an issue if you need to perform in-place operations on the "
            "input to a pack hook."
        )
    return Packed(value, unpack)


def packed_value(node: Node, saving: Saving, x: Any, value: Any, source: i64, later: bool) -> Any:
    """What a node keeps of one value under hooks: `value` is the array of `x`, from `source`.

    With `later` a result is not written yet: `pack_written` packs it when it is.
    """
    if source < 0:
        if later:
            return value
        return pack(saving.pack, saving.unpack, _as_output(x, node, -1 - source))
    if not isinstance(x, TensorBase):
        if value is None or isinstance(value, (int, float, complex)):
            return value
        x = _as_input(value, node, source)  # an in-place op's copy of the old value
    return pack(saving.pack, saving.unpack, x)


def pack_written(node: Node, plan: OpSpec, target: TensorBase) -> None:
    """Pack the result of an in-place op, now that it is written."""
    saving = saving_now()
    if saving is None or plan.variadic:
        return
    values = list(node._kept_values)
    for j in range(len(values)):
        source: i64 = plan.sources[j]
        if source < 0 and values[j] is not None and not isinstance(values[j], Packed):
            values[j] = pack(saving.pack, saving.unpack, _as_output(target, node, -1 - source))
    node._kept_values = tuple(values)


def _as_output(result: TensorBase, node: Node, index: i64) -> TensorBase:
    """A result as the hook sees it: with its history, which the tensor itself is given later."""
    t = wrap_as(result._array, result._storage)
    if result._array.dtype.kind in "fcVW":  # indices have no history
        t._node = node
        t._output_nr = index
    return t


def _as_input(value: Any, node: Node, source: i64) -> TensorBase:
    t = wrap(value)
    target = node._next_edges[source]
    if isinstance(target, Node):
        t._node = target
        t._output_nr = 0 if node._output_nrs is None else node._output_nrs[source]
    return t


def refuse_inference() -> None:
    """An inference tensor is to be kept: an error, but for derivatives that a transform of `func`
    takes, which end with it."""
    if state.level != 0:
        mode = current()
        if mode is not None and mode.level is not None:
            return
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in computation tracked by autograd. To work around this, you can make "
        "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
        "instead of `torch.inference_mode()`."
    )


# --- unpacking ------------------------------------------------------------------------------------
def open_packed(packed: Packed) -> TensorBase:
    """Call the unpack hook; what it returned, if that is a tensor."""
    data = packed.unpack(packed.value)
    if not isinstance(data, TensorBase):
        raise TypeError(
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
            f"{type(data).__name__}"
        )
    return data


def rebuild(data: TensorBase, maker: Node | None, index: i64) -> TensorBase:
    """What a hook returned, with the history of the value that was packed."""
    if maker is None and data._node is None and not data._requires_grad and data._view is None:
        return data
    t = wrap_as(data._array, data._storage)
    if maker is not None:
        t._node = maker
        t._output_nr = index
    return t
