"""Standing around ops: a block in which an object sees every op that runs, and may answer for it.

Used by selective checkpoints and by `checkpoint(debug=True)`; imported by `utils` alone.

Note [Layers]
    Each entered block is a layer, held by the mode that it entered, so it belongs to one thread or
    task and ends with its block. The innermost layer is asked first, and passes on to the one
    outside it, the outermost to a profiler if one is on (`observer.timed`), and that to the op.
    What the object does while it is asked is seen by the layers outside it alone. Of an op on
    batches it sees what is computed for all members together, one level down, where that is
    recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self

from rushlight.arrays.batched import deepest_level
from rushlight.core.grad_mode import Mode, ModeBlock, _lock, current, inference_enabled, within
from rushlight.core.observer import observer
from rushlight.core.saved.packed import Saving
from rushlight.core.transforms.stack import stack
from rushlight.ops.apply import run_plain


class Layer:
    """One entered block; see Note [Layers]."""

    def __init__(self, who: Around, mode: Mode) -> None:
        self.who = who
        self.outer: Layer | None = mode.around
        self.alive = True
        self.saving: Saving | None = None  # hooks on saved values that end with it

    def close(self) -> None:
        """End it: called by its mode, and again if an interrupt came between."""
        self.alive = False
        if self.saving is not None:
            self.saving.close()
        with _lock:
            _layers.discard(self)
            if not _layers and observer.profile is ask:
                observer.profile = observer.timed


class Around(ModeBlock):
    """Sees the ops that run inside `with` of it."""

    def __init__(self) -> None:
        super().__init__(None, None)

    def answer(self, op: Any, raws: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """The raw result of `op` on raw inputs: `run()` gives it."""
        raise NotImplementedError

    def fill(self, mode: Mode) -> Self:
        layer = Layer(self, mode)
        mode.around = mode.closes = layer
        with _lock:
            _layers.add(layer)
            observer.profile = ask  # the one place in the core that is asked about every op
        return self


_layers: Final[set[Layer]] = set()


def ask(op: Any, raws: tuple[Any, ...], *action: Any) -> Any:
    """`observer.profile`: the result of an op, from the innermost layer."""
    mode = current()
    if (
        mode is None
        or mode.around is None
        or (stack.batches != 0 and deepest_level(raws) is not None)
    ):
        return run_op(op, raws, action)
    return through(mode.around, op, raws, action)


def through(layer: Layer | None, op: Any, raws: tuple[Any, ...], action: tuple[Any, ...]) -> Any:
    while layer is not None and not layer.alive:
        layer = layer.outer
    if layer is None:
        return run_op(op, raws, action)
    outer = layer.outer
    mode = within(False, inference_enabled())
    mode.around = outer
    with mode:
        return layer.who.answer(op, raws, lambda: through(outer, op, raws, action))


def run_op(op: Any, raws: tuple[Any, ...], action: tuple[Any, ...]) -> Any:
    """The op itself, or what is to be done in its place."""
    timed = observer.timed  # once: the profiler may end meanwhile
    return (run_plain if timed is None else timed)(op, raws, *action)
