"""The tangents that tensors have, and where an op hands them on.

The files that run ops call in only while `stack.tangents` is not 0. What a level does with an op
is in `core.transforms.forward_ad`, and so are the notes that are cited here.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.grad_mode import current
from rushlight.core.graph import Node, Op, OpSpec, TensorBase
from rushlight.core.transforms.stack import Level, stack
from rushlight.native import i64

EVERYTHING: Final = float("inf")


class Tangent:
    """A tensor's tangent in one level, and the records of the levels below (`outer`).

    Where it has none, `root` and `ops` say of whose tangent it would be a view; without a root, of
    nobody's. See Note [Whose tangent]. Nodes keep records, so they are not changed but replaced.
    """

    def __init__(
        self, level: Level, value: TensorBase | None, root: TensorBase | None, ops: tuple[Op, ...],
        outer: Tangent | None,
    ) -> None:  # fmt: skip
        self.level = level
        self.value = value
        self.root = root
        self.ops = ops
        self.outer = outer


def limit() -> float:
    """Levels of lesser depth can be seen here; see Note [What can be seen]."""
    mode = current()
    if mode is None:
        return EVERYTHING
    dual: Any = mode.dual
    seen = EVERYTHING if dual is None else float(dual)
    # those opened inside inference mode have depths below 0, the others not
    return min(seen, 0.0) if mode.inference else seen


def note_levels(record: Tangent | None, seen: float, found: list[Level]) -> None:
    while record is not None:
        level = record.level
        if level.alive and level.depth < seen:
            at = len(found)
            while at > 0 and found[at - 1].depth > level.depth:
                at -= 1
            if at == 0 or found[at - 1] is not level:
                found.insert(at, level)
        record = record.outer


def levels_of(xs: tuple[Any, ...], seen: float) -> list[Level]:
    """The levels less deep than `seen` in which an input has a tangent, or a record; the lowest
    first."""
    found: list[Level] = []
    for x in xs:
        if isinstance(x, TensorBase):
            if x._tangent is not None:
                note_levels(x._tangent, seen, found)
            if x._view is not None and x._view.base._tangent is not None:
                note_levels(x._view.base._tangent, seen, found)
    return found


def tangent_of(x: TensorBase) -> Any:
    """The deepest tangent of `x`, or None, as code that runs now may see it."""
    return None if stack.tangents == 0 else deepest(x, limit())


def deepest(x: TensorBase, seen: float) -> Any:
    """The tangent of `x` in the deepest level less deep than `seen` in which it has one."""
    levels = levels_of((x,), seen)
    for i in range(len(levels) - 1, -1, -1):
        value = levels[i].tangent_of(x)
        if value is not None:
            return value
    return None


# --- ops ------------------------------------------------------------------------------------------
def push(
    op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...], results: list[TensorBase], several: bool
) -> None:
    """Give the results of an op their tangents. `several`: the op returns a tuple."""
    if not op.plan.differentiable:
        return
    for level in levels_of(xs, limit()):  # the lowest first: see Note [Levels nest]
        level.push(op, xs, raws, results, several)


def push_view(op: Any, x: TensorBase, t: TensorBase) -> None:
    """Give the view `t` of `x` the same view of `x`'s tangents."""
    seen = limit()
    for level in levels_of((x,), EVERYTHING):
        level.push_view(op, x, t, level.depth < seen)


def push_views(op: Any, x: TensorBase, ts: list[TensorBase], parts: list[Any]) -> None:
    """`push_view` for an op with several outputs."""
    seen = limit()
    for level in levels_of((x,), EVERYTHING):
        level.push_views(op, x, ts, parts, level.depth < seen)


# --- what nodes save ------------------------------------------------------------------------------
def visible_record(x: TensorBase) -> Tangent | None:
    """The record of `x`'s tangents, as code that runs now may see them, for someone to keep."""
    if stack.tangents == 0:
        return None
    seen = limit()
    if deepest(x, seen) is None:
        return None
    for level in levels_of((x,), seen):
        level.tangent_of(x)  # a view may have to look for its own first
    record: Tangent | None = x._tangent
    while record is not None and not (record.level.alive and record.level.depth < seen):
        record = record.outer
    return record


def keep_tangents(
    node: Node, plan: OpSpec, xs: tuple[Any, ...], results: list[TensorBase], first: Any
) -> None:
    """Let a node that saves values save their tangents, for derivatives of its gradients.

    `first`, if given, is the record for the first input, which was overwritten.
    """
    found = False
    kept: list[Any] = []
    for j in range(len(node._kept_values)):
        record: Any = None
        if node._kept_values[j] is not None:
            source: i64 = j if plan.variadic else plan.sources[j]
            if source == 0 and first is not None:
                record = first
            else:
                x: Any = xs[source] if source >= 0 else results[-1 - source]
                if isinstance(x, TensorBase):
                    record = visible_record(x)
        if record is not None:
            found = True
        kept.append(record)
    if found:
        node._kept_tangents = tuple(kept)
