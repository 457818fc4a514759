"""A backward pass as the user's code meets it: what it was asked for, and which one runs here.

The pass itself is `engine.Run`, which is a `Pass`. Imported by `engine` and the files it is made
of, and by `autograd`, which tells users about the pass they are in.
"""

from __future__ import annotations

from contextvars import ContextVar
from itertools import count
from typing import Any, Final

from rushlight.core.graph import TensorBase, normal, wrap

__all__ = ["Pass", "Place", "Target", "now", "queue_callback", "running", "task_number"]


class Target:
    """An input whose gradient is asked for: a leaf, or output `nr` of a node."""

    def __init__(self, node: Any, nr: int) -> None:
        self.node = node
        self.nr = nr
        self.grad: Any = None


class Pass:
    """What one backward pass was asked for, and the ways it may go.

    Where `targets` are given, `plan` in `core.engine.traverse` fills the last three: `executes` are
    the nodes and leaves that anything is delivered to, `needed` those of them whose rule runs,
    `captures` those whose gradient is handed to a target. Otherwise everything runs.
    """

    def __init__(
        self, keep: bool, tensors: bool, targets: list[Target] | None, store: bool
    ) -> None:
        self.keep = keep  # what nodes saved
        self.tensors = tensors  # gradients travel as tensors, not as raw arrays
        self.record = tensors  # tensors, but not recorded: gradients that carry tangents
        self.store = store  # into `.grad` of the leaves
        self.targets = targets
        self.roots: Any = None  # where it started: a node, or a list of nodes and leaves
        self.depth: int = 0  # how many passes it stands inside of
        self.number: int = -1  # given when someone asks; see `task_number`
        self.callbacks: list[Any] | None = None  # what users want called when it is over
        self.executes: set[Any] | None = None
        self.needed: set[Any] | None = None
        self.captures: dict[Any, list[Target]] | None = None

    def as_tensor(self, g: Any) -> Any:
        """A gradient as the user's code gets it."""
        if g is None or isinstance(g, TensorBase):
            return g
        return wrap(normal(g))

    def as_gradient(self, t: Any) -> Any:
        """What the user's code gave, as gradients travel in this pass."""
        if t is None or self.tensors or not isinstance(t, TensorBase):
            return t
        return t._array


class Place:
    """Where the user's code is called from a pass. After an interrupt the context may still hold a
    place that was left: it has no pass any more."""

    def __init__(self, outer: Place | None) -> None:
        self.outer = outer
        self.run: Pass | None = None


now: Final[ContextVar[Place | None]] = ContextVar("rushlight_run", default=None)
_numbers: Final = count()


def running() -> Pass | None:
    """The innermost backward pass that this code was called from, if any."""
    place = now.get()
    while place is not None and place.run is None:
        place = place.outer
    return None if place is None else place.run


def queue_callback(callback: Any) -> None:
    """Have the pass that this code was called from call something when it is over."""
    run = running()
    if run is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if run.callbacks is None:
        run.callbacks = []
    run.callbacks.append(callback)


def task_number(run: Pass | None) -> int:
    """A number for a pass, the same as long as it lasts and never given again; -1 for none."""
    if run is None:
        return -1
    if run.number < 0:
        run.number = next(_numbers)
    return run.number
