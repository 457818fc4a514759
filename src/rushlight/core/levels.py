"""Transforms in progress: which `grad`, `jvp` or `vmap` of `func` the running code is inside of.

Levels form a chain from the innermost outward; a mode of this context holds it, so threads and
tasks each have their own.

Note [Captured tensors]
    A transform may not write into a tensor that it did not make and was not given: what the write
    means for derivatives outside could not be told. A storage remembers the number of the newest
    level that was open, anywhere, when it was made; numbers only grow, so a storage whose number is
    smaller than a level's was made before it.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.graph import TensorBase
from rushlight.core.modes import Mode, _lock, current, enter, inference_enabled, leave, state
from rushlight.core.record import slots
from rushlight.native import i64

__all__ = ["Level", "close_level", "innermost", "open_level", "refuse_inside"]

_open: Final[list[int]] = []


class Level:
    """One transform in progress. `batch` is the level of a `vmap` (`core.batches`), else None;
    `given` are the storages of its inputs, which it may write into."""

    def __init__(self, kind: str, outer: Level | None, batch: Any) -> None:
        self.kind = kind
        self.outer = outer
        self.batch = batch
        self.number: i64 = 0
        self.recording: bool = True  # whether the code around it was being recorded
        self.given: set[int] = set()
        self.mode: Mode | None = None


class Numbers:
    """The last number given to a level."""

    def __init__(self) -> None:
        self.last: int = 0


_numbers: Final = Numbers()


def innermost() -> Level | None:
    """The innermost transform that the running code is inside of."""
    if state.level == 0:
        return None
    mode = current()
    if mode is None:
        return None
    found: Level | None = mode.level
    return found


def open_level(kind: str, batch: Any = None) -> Level:
    """Begin a transform; give the result to `close_level`, in a `finally`."""
    mode = current()
    grad = mode is None or mode.grad
    level = Level(kind, innermost(), batch)
    level.recording = grad
    with _lock:
        _numbers.last += 1
        level.number = _numbers.last
        _open.append(_numbers.last)
        state.level = _numbers.last
        if batch is not None:
            slots.batches += 1
    inside = enter(True if kind == "grad" else grad, inference_enabled())
    inside.level = level
    level.mode = inside
    return level


def close_level(level: Level) -> None:
    """End a transform."""
    if level.mode is None:
        return
    leave(level.mode)
    level.mode = None
    with _lock:
        _open.remove(level.number)
        state.level = max(_open) if _open else 0
        if level.batch is not None:
            slots.batches -= 1
            level.batch.alive = False


def check_captured(target: TensorBase) -> None:
    """Refuse a write to a tensor that the innermost `grad` or `jvp` captured."""
    level = innermost()
    while level is not None and level.kind == "vmap":
        level = level.outer
    if level is None or target.memory.level >= level.number or id(target.memory) in level.given:
        return
    raise RuntimeError(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
        "in-place operation that would mutate a captured Tensor. This is not supported; please "
        "rewrite the function being transformed to explicitly accept the mutated Tensor(s) as "
        "inputs."
    )


def refuse_inside(name: str) -> None:
    """Refuse what a function that is being transformed may not call."""
    if innermost() is None:
        return
    if name == "backward":
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
            "transforms."
        )
    apis = "(or perhaps using torch.autograd.functional.* APIs) " if name == "requires_grad_" else ""
    raise RuntimeError(
        f"You are attempting to call Tensor.{name}() {apis}inside of a function being transformed "
        "by a functorch transform. This is unsupported, please attempt to use the functorch "
        "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
        f"{name}() outside of a function being transformed instead."
    )


slots.check_captured = check_captured
