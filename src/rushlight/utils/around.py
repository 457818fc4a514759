"""Standing around ops: a block in which an object sees every op that runs, and may answer for it.

Used by selective checkpoints and by `checkpoint(debug=True)`; imported by `utils` alone.

Note [Layers]
    Each entered block is a layer, held by the mode that it entered, so it belongs to one thread or
    task and ends with its block. The innermost layer is asked first, and passes on to the one
    outside it, the outermost to a profiler if one is on (`slots.timed`), and that to the op. What
    the object does while it is asked is seen by the layers outside it alone. Of an op on batches it
    sees what is computed for all members together, one level down, where that is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self

from rushlight.arrays.batched import deepest
from rushlight.core.modes import (
    Mode,
    _lock,
    current,
    enter,
    grad_asked,
    inference_enabled,
    leave,
)
from rushlight.core.record import slots
from rushlight.ops.run import undisturbed

__all__ = ["Around"]


class Layer:
    """One entered block; see Note [Layers]."""

    def __init__(self, who: Around, mode: Mode) -> None:
        self.who = who
        self.mode = mode
        self.outer: Layer | None = mode.around
        self.alive = True


class Around:
    """Sees the ops that run inside `with` of it."""

    def answer(self, op: Any, raws: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """The raw result of `op` on raw inputs: `run()` gives it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        mode = enter(grad_asked(), inference_enabled())
        mode.around = Layer(self, mode)
        slot.take()
        return self

    def __exit__(self, *error: object) -> None:
        mode = current()
        layer: Layer | None = None if mode is None else mode.around
        while layer is not None and not (layer.alive and layer.who is self):
            layer = layer.outer
        if layer is not None:
            layer.alive = False
            leave(layer.mode)
            slot.give_back()


class Slot:
    """The one place in the core that is asked about every op."""

    def __init__(self) -> None:
        self.users = 0

    def take(self) -> None:
        with _lock:
            self.users += 1
            slots.profile = ask

    def give_back(self) -> None:
        with _lock:
            self.users -= 1
            if self.users == 0:
                slots.profile = slots.timed


slot: Final = Slot()


def ask(op: Any, raws: tuple[Any, ...], *action: Any) -> Any:
    """`slots.profile`: the result of an op, from the innermost layer."""
    mode = current()
    if mode is None or mode.around is None or (slots.batches != 0 and deepest(raws) is not None):
        return plain(op, raws, action)
    return through(mode.around, op, raws, action)


def through(layer: Layer | None, op: Any, raws: tuple[Any, ...], action: tuple[Any, ...]) -> Any:
    while layer is not None and not layer.alive:
        layer = layer.outer
    if layer is None:
        return plain(op, raws, action)
    outer = layer.outer
    mode = enter(False, inference_enabled())
    mode.around = outer
    try:
        return layer.who.answer(op, raws, lambda: through(outer, op, raws, action))
    finally:
        leave(mode)


def plain(op: Any, raws: tuple[Any, ...], action: tuple[Any, ...]) -> Any:
    """The op itself, or what is to be done in its place."""
    timed = slots.timed  # once: the profiler may end meanwhile
    return (undisturbed if timed is None else timed)(op, raws, *action)
