"""Operands at one level of `vmap`: tensors from below become shared by its batch.

See `core.transforms.vmap` for what then happens to the op.
"""

from __future__ import annotations

from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import INPLACE, Batched
from rushlight.core.graph import TensorBase, View, normal, requires_grad, wrap, wrap_as
from rushlight.core.views.history import replay_views


def lift(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands at the deepest level among them: those from below become shared by its batch."""
    level: Any = None
    for x in xs:
        if isinstance(x, TensorBase) and x._view is not None:
            look_again(x, x._view)
        array: Any = x._array if isinstance(x, TensorBase) else x
        if type(array) is Batched:
            found = array.level
            if level is None or found.depth > level.depth:
                level = found
    if level is None:
        return xs
    return tuple([seen_at(x, level) if isinstance(x, TensorBase) else x for x in xs])


def lift_to_target(target: TensorBase, others: tuple[Any, ...]) -> tuple[Any, ...]:
    """The other operands of a write, at the level of `target`, which none may be deeper than,
    unless all members share it."""
    found = lift((target, *others))
    while found[0] is not target:
        level = found[0]._array.level
        known = False
        for x in found[1:]:
            if isinstance(x, TensorBase):
                if x._array.has_batch_dim:
                    raise RuntimeError(INPLACE)
                known = known or is_tracked(x)
        if known:  # this level has derivatives of it: the target becomes one of the level's too
            raise_to_level(target, level)
            break
        down = [plain_inside(x._array.value) if isinstance(x, TensorBase) else x for x in found[1:]]
        found = lift((target, *down))
    array = target._array
    if type(array) is Batched:
        for x in found[1:]:
            if isinstance(x, TensorBase):
                lift_target(target, x._array)
    return found[1:]


def copy_if_saved(op: Any, target: TensorBase, others: tuple[Any, ...]) -> TensorBase:
    """The target of a write as the op should read it: a copy, if the op below is recorded and
    keeps the old value, which the write would overwrite."""
    if type(target._array) is not Batched or 0 not in op.plan.sources:
        return target
    record = False
    for x in (target, *others):
        if isinstance(x, TensorBase) and type(x._array) is Batched:
            inside = x._array.value
            if isinstance(inside, TensorBase) and is_tracked(inside):
                record = True
    if not record:
        return target
    array = target._array
    return wrap(Batched(v.copy(plain_inside(array.value)), array.level, array.has_batch_dim))


def lift_target(target: TensorBase, source: Any) -> None:
    """Put a tensor inside a batch that is about to be written, where one is inside what is
    written: so that it can have a history."""
    view = target._view
    mine: Any = target._array if view is None else view.base._array
    while type(mine) is Batched and type(source) is Batched and mine.level is source.level:
        if isinstance(mine.value, TensorBase):
            return
        deeper = type(source.value) is Batched and type(mine.value) is not Batched
        if deeper or isinstance(source.value, TensorBase):
            mine.value = wrap(mine.value)
            break
        mine, source = mine.value, source.value
    if view is not None:
        look_again(target, view)


def raise_to_level(target: TensorBase, level: Any) -> None:
    """Make a tensor that is about to be written one of a level's, shared by its batch."""
    view = target._view
    base = target if view is None else view.base
    inside: Any = base._array
    if is_tracked(base):  # that is a history of the level below
        inside = wrap(base._array)
        inside._node, inside._output_nr, inside._requires_grad = (
            base._node,
            base._output_nr,
            base._requires_grad,
        )
        inside._tangent = base._tangent
        base._node, base._output_nr, base._requires_grad, base._tangent = None, 0, False, None
    base._array = Batched(inside, level, False)
    if view is not None:
        look_again(target, view)


def look_again(x: TensorBase, view: View) -> None:
    """Let a view see what became of its base since; see `lift_target` and `raise_to_level`."""
    array: Any = x._array
    whole: Any = view.base._array
    while type(whole) is Batched:
        known = isinstance(whole.value, TensorBase)
        beneath = type(array) is not Batched or array.level is not whole.level
        if beneath or isinstance(array.value, TensorBase) is not known:
            x._array = replay_views(view.base._array, view.ops)
            view.origin = view.base._array
            if beneath:  # so was its history, which the base's is now
                x._node, x._output_nr, x._tangent = None, 0, None
            return
        if known:
            return
        array, whole = array.value, whole.value


def seen_at(x: TensorBase, level: Any) -> TensorBase:
    """A tensor as a level sees it. It keeps its version, so that writes below are noticed."""
    if type(x._array) is Batched and x._array.level is level:
        return x
    x = as_recorded(x, level)
    return wrap_as(Batched(x if is_tracked(x) else x._array, level, False), x._storage)


def as_recorded(x: TensorBase, level: Any) -> TensorBase:
    """A tensor from below a level as it is inside the level's arrays: without its history, if
    nothing was being recorded when the level began."""
    if level.recording or not requires_grad(x):
        return x
    bare = wrap_as(x._array, x._storage)
    bare._tangent = x._tangent
    return bare


def is_tracked(x: TensorBase) -> bool:
    """Whether a tensor is more than its array: it has a history, or a tangent."""
    return requires_grad(x) or x._tangent is not None


def plain_inside(x: Any) -> Any:
    """What is inside a batched array as a tensor."""
    return x if isinstance(x, TensorBase) else wrap(normal(x))
