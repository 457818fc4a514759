"""Hooks on saved values: packing them one's own way, on the CPU, or so that they may be written.

Users find these in `autograd.graph`; what a node does with hooks is in `core.saved.packed`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from rushlight.arrays.host import address
from rushlight.core.call_site import Where
from rushlight.core.grad_mode import Mode, Undo
from rushlight.core.graph import Storage, TensorBase, wrap_as
from rushlight.core.saved.packed import Saving, SavingBlock, saving_now
from rushlight.errors import sentence
from rushlight.ops.registry import functions

__all__ = [
    "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu",
    "saved_tensors_hooks",
]  # fmt: skip


class saved_tensors_hooks(SavingBlock):
    """Keep `pack_hook(t)` in place of each tensor `t` that is saved for backward in this block.

    When the value is needed, `unpack_hook` is called with what `pack_hook` returned and must give
    back a tensor of equal values. Of nested pairs only the innermost is used.

    >>> x = torch.ones(2, requires_grad=True)
    >>> def pack(t):
    ...     print("packing", t)
    ...     return t.numpy(force=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
    ...     y = x.pow(3)
    packing tensor([1., 1.], requires_grad=True)
    >>> y.sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        super().__init__()
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def hooks(self) -> Saving:
        pack_hook, unpack_hook = self.pack_hook, self.unpack_hook
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The "
                "following argument types are supported:\n    1. (arg0: collections.abc.Callable, "
                "arg1: collections.abc.Callable) -> None\n\nInvoked with: "
                f"{pack_hook!r}, {unpack_hook!r}"
            )
        outer = saving_now()
        if outer is not None and outer.message is not None:
            raise RuntimeError(outer.message)
        return Saving(pack_hook, unpack_hook, None, None)


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved for backward in the CPU's memory, and bring it back when it is needed.

    Tensors that are on the CPU already are kept as they are. With `pin_memory` they are copied, to
    ordinary memory: rushlight has no page-locked memory.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = x.exp() * x
    >>> y.sum().backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack_to_cpu(t: Any) -> tuple[Any, Any]:
            t = t.detach()
            return t.device, (t.cpu().clone() if pin_memory else t.cpu())

        def unpack_from_cpu(packed: tuple[Any, Any]) -> Any:
            device, t = packed
            return t.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


class disable_saved_tensors_hooks(SavingBlock, ContextDecorator):
    """In this block, setting hooks on saved tensors raises a RuntimeError with this message.

    >>> with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with torch.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
        ...
    RuntimeError: not here
    """

    def __init__(self, error_message: str) -> None:
        super().__init__()
        self.error_message = error_message

    def hooks(self) -> Saving:
        outer = saving_now()
        if outer is not None and outer.message is None:
            raise RuntimeError(self.error_message)
        return Saving(None, None, self.error_message, None)


# --- writing to what was saved --------------------------------------------------------------------
class Kept:
    """Stands in the graph for a saved tensor that may be written; holds its memory's identity."""

    def __init__(self, memory: Storage) -> None:
        self.memory = memory
        self.version = int(memory.version)


class AllowMutationOnSavedContext:
    """What `allow_mutation_on_saved_tensors` gives: the saved tensors not written yet
    (`original`), and copies of those that were (`cloned`)."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[Kept, Any] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[Kept, Any] = WeakKeyDictionary()
        self._same: WeakValueDictionary[Any, Kept] = WeakValueDictionary()
        self._by_memory: dict[int, WeakSet[Kept]] = {}

    def clear(self) -> None:
        """Let go of everything."""
        self.cloned.clear()
        self.original.clear()
        self._same.clear()
        self._by_memory.clear()

    def _pack(self, t: Any) -> Kept:
        memory: Storage = t._storage
        x = t._array
        # while a Kept lives it holds the memory, so that its id cannot be another's
        key = (id(memory), int(memory.version), address(x), x.shape, x.strides, x.dtype)
        kept = self._same.get(key)
        if kept is None:
            kept = Kept(memory)
            self._same[key] = kept
            self.original[kept] = wrap_as(x, memory)
            self._by_memory.setdefault(id(memory), WeakSet()).add(kept)
        return kept

    def _unpack(self, kept: Kept) -> Any:
        found = self.cloned.get(kept)
        if found is not None:
            return found
        found = self.original.get(kept)
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        if kept.memory.version != kept.version:
            raise RuntimeError(
                sentence(
                    "one of the variables needed for gradient computation has been modified by "
                    f"something that 'allow_mutation_on_saved_tensors' cannot see: "
                    f"[{found.type()} {list(found.shape)}] is at version {kept.memory.version}; "
                    f"expected version {kept.version} instead.",
                    f"overwritten at {Where(kept.memory.code, kept.memory.offset)}",
                    "Write it with a tensor's own in-place methods.",
                )
            )
        return found

    def _about_to_write(self, target: TensorBase) -> None:
        for kept in self._by_memory.pop(id(target._storage), ()):
            t = self.original.pop(kept, None)
            if t is not None:
                self.cloned[kept] = functions["clone"](t)


class _Switch:
    """Whether a block of `allow_mutation_on_saved_tensors` is open."""

    on = False


class allow_mutation_on_saved_tensors(SavingBlock, ContextDecorator):
    """Tensors saved in this block may be written in place: they are copied just before.

    Forward and backward must both run inside the block.

    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = torch.tensor([2.], requires_grad=True)
    ...     y = x.clone()
    ...     out = (y ** 2).sum()
    ...     y = y.sin_()
    ...     out.backward()
    >>> x.grad
    tensor([4.])
    """

    def fill(self, mode: Mode) -> AllowMutationOnSavedContext:
        outer = saving_now()
        if outer is not None and outer.message is not None:
            raise RuntimeError(outer.message)
        if _Switch.on:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        ctx = AllowMutationOnSavedContext()
        saving = Saving(ctx._pack, ctx._unpack, None, ctx._about_to_write)
        saving.outer = outer
        mode.saving = saving
        mode.closes = Undo(_end_mutation, saving, ctx)
        _Switch.on = True
        return ctx


def _end_mutation(saving: Saving, ctx: AllowMutationOnSavedContext) -> None:
    saving.close()
    _Switch.on = False
    ctx.clear()
