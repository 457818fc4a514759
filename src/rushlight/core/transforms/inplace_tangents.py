"""Writes in place while forward mode is on: the tangents that they leave.

`inplace_tangent` works them out while the old value is still there, `write_tangent` puts them in
place afterwards. The notes cited here stand in `core.transforms.forward_ad`. Interpreted: few
programs come here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched, lacks
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import DIFFERENTIABLE, Node, TensorBase, normal, requires_grad, wrap
from rushlight.core.record import edge, evaluate, keep_record
from rushlight.core.transforms.forward_ad import (
    DualLevel,
    fit_tangent,
    gather,
    give,
    has_beneath,
    laid_like,
    on_arrays,
    raw_is_enough,
    record_in,
    seeing_beneath,
    seen_levels,
    tangent_in,
    whose,
    zero_tangent,
)
from rushlight.core.transforms.stack import stack
from rushlight.core.transforms.tangents import Tangent
from rushlight.core.views.history import order_of
from rushlight.core.views.views import apply_view


class Pending:
    """The tangent that a write in place will leave in one level, and those of deeper levels;
    `recorded`: it was computed on tensors, and is to be written so."""

    def __init__(
        self, level: DualLevel, value: TensorBase, recorded: bool, deeper: Pending | None = None
    ) -> None:
        self.level = level
        self.value = value
        self.recorded = recorded
        self.deeper = deeper


def inplace_tangent(
    op: Any, target: TensorBase, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any
) -> Pending | None:
    """The tangents that `target` will have once `y` = op(*xs) is written into it. Called while the
    old value is still there; `y` is None where it is not computed apart."""
    array = target._array
    if array.dtype.kind not in DIFFERENTIABLE:
        return None
    levels: list[DualLevel] = []
    ts: Any = None
    for level in seen_levels(xs):
        found = gather(xs, level)
        if found is not None:
            levels.append(level)
            ts = found
    if not levels:
        return None
    values: list[TensorBase] = []
    recorded = False
    if not op.plan.differentiable:
        for _ in levels:
            values.append(wrap(zero_tangent(array, array.dtype)))
    else:
        if y is None:
            y = normal(evaluate(op, *raws))
        if len(levels) == 1 and raw_is_enough(xs, ts, levels[0]):
            if stack.batches != 0:
                ts = copy_overwritten_tangents(target, xs, ts)
            values.append(wrap(fit_tangent(on_arrays(op, ts, raws, y), y, xs, ts)))
        else:
            recorded = True
            result = replay(op, target, xs, raws, y)
            for level in levels:
                values.append(tangent_in(result, level))
    pending: Pending | None = None
    for i in range(len(levels) - 1, -1, -1):
        pending = Pending(levels[i], values[i], recorded, pending)
    return pending


def copy_overwritten_tangents(target: TensorBase, xs: tuple[Any, ...], ts: list[Any]) -> list[Any]:
    """Tangents for `jvp` on arrays: of the target's own, which is about to be overwritten, a copy
    if what is inside its batch is recorded, for a node there may keep it."""
    found: list[Any] = []
    for i in range(len(ts)):
        t: Any = ts[i]
        if t is not None and type(t._array) is Batched and xs[i]._storage is target._storage:
            t = wrap(v.copy(t._array))
        found.append(t)
    return found


def replay(op: Any, target: TensorBase, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any) -> Any:
    """The result of a write as one out of place: of the old value, which is about to go, a copy
    with the same history and tangents."""
    array = target._array
    old = wrap(v.copy(array))
    if grad_enabled() and requires_grad(target):
        came: Any = edge(target)
        if isinstance(came, Node):
            old._node = came
            old._output_nr = target._output_nr
    old._tangent = old_tangent(target)
    before: list[Any] = []
    kept: list[Any] = []
    for i in range(len(xs)):
        before.append(old if xs[i] is target else xs[i])
        kept.append(old._array if raws[i] is array else raws[i])
    return keep_record(op, tuple(before), tuple(kept), v.copy(y) if y is array else y)


def write_tangent(target: TensorBase, pending: Pending | None) -> None:
    """Write the tangents that `inplace_tangent` computed; see Note [Whose tangent]."""
    while pending is not None:
        level = pending.level
        value: Any = pending.value
        pending_in = pending
        pending = pending.deeper
        there = tangent_in(target, level)
        if there is None:
            root = whose(target, level)
            if root is None:
                give(target, level, laid_like(value, target._array))
                continue
            give(root, level, wrap(no_tangent_yet(root._array, value._array)))
            there = tangent_in(target, level)
        elif stack.batches != 0 and lacks(there._array, value._array):
            there = with_room(target, level, value._array)
        if (
            pending_in.recorded
            or type(there._array) is Batched
            or has_beneath(there, level)
            or has_beneath(value, level)
        ):
            mode = seeing_beneath(grad_enabled(), level.depth)
            mode.level = None  # no transform may refuse it
            with mode:
                there.copy_(value)
        else:
            raw: TensorBase = there
            v.overwrite(raw._array, value._array)
            raw._storage.written()


def with_room(target: TensorBase, level: DualLevel, value: Any) -> Any:
    """The tangent of `target`, which exists, after that of its root was made a member of every
    batch that the raw tangent `value` belongs to; see Note [Room for a batch]."""
    record = record_in(target._tangent, level)
    root = target if record is not None and record.value is not None else whose(target, level)
    assert root is not None
    with seeing_beneath(True, level.depth):  # it is the same tangent, with all its history
        whole = tangent_in(root, level)
        whole = whole + wrap(v.full(value, (), 0, whole._array.dtype))
        give(root, level, v.laid_out(whole, order_of(root._array)))
    return tangent_in(target, level)


def no_tangent_yet(array: Any, value: Any) -> Any:
    """Zeros for all of `array`, into a part of which the raw tangent `value` can be written."""
    if type(value) is np.ndarray:
        return zero_tangent(array, value.dtype)
    return v.laid_out(v.full(value, array.shape, 0, value.dtype), order_of(array))


def old_tangent(target: TensorBase) -> Any:
    """A record of `target`'s tangents as they are before a write: copies, for nodes that keep one
    of the old value too."""
    record: Tangent | None = None
    for level in seen_levels((target,)):
        value = tangent_in(target, level)
        if value is not None:
            with seeing_beneath(grad_enabled(), level.depth):
                record = Tangent(level, v.copy(value), None, (), record)
    return record


def turn_tangent(op: Any, target: TensorBase) -> None:
    """Before `target` itself is made to look at its memory another way: so do its tangents."""
    for level in seen_levels((target,)):
        value = tangent_in(target, level)
        if value is not None:
            give(target, level, apply_view(op, value))
