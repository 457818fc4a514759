"""Forward mode: tangents that travel beside the values.

While a level of `autograd.forward_ad` is live, a tensor may have a tangent, the derivative of its
value along one direction. After an op computed its results, `push` gives them the tangents that the
op's own `jvp` says; views, writes in place and saved values have their rules here too. The files
that run ops call in only while `slots.levels` is not 0.

Note [Whose tangent]
    A view of a tensor that has a tangent gets the same view of that tangent: they share memory, so
    a write through one is seen by all. A write of a tangent to a tensor that has none, and is a
    view, makes zeros for the tensor it looks into; that one's tangent is the truth, and other
    views of it find theirs when someone asks. What `make_dual` and `unpack_dual` return shares the
    memory of values, not of tangents: their record ends the search.

Note [On arrays or on tensors]
    If nothing asks for gradients, `jvp` runs on raw arrays. Otherwise it runs on tensors and is
    recorded, so that tangents can be differentiated backward. Meanwhile tangents are switched off
    (`Mode.dual`): one level has no second derivatives.

Note [Layout of tangents]
    A tangent has the order of strides of its value, and memory of its own: every view that the
    value allows is then a view of the tangent too, and a write in place harms nobody else.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.core.families import Bilinear, Elementwise, Linear
from rushlight.core.graph import Node, Op, Plan, TensorBase, asks, wrap
from rushlight.core.modes import (
    Mode,
    _lock,
    current,
    enter,
    grad_enabled,
    inference_enabled,
    leave,
    state,
)
from rushlight.core.quiet import quietly
from rushlight.core.record import apply, edge, evaluate, keep_record, normal, slots
from rushlight.core.views import look_at, look_at_many, order_of
from rushlight.native import i64

__all__ = [
    "Level", "Pending", "Tangent", "foresee", "fulfil", "give", "keep_tangents", "laid_like",
    "live", "mine", "mute", "muted", "now", "old_tangent", "open_level", "push", "refuse_out",
    "tangent_of", "turned",
]  # fmt: skip

_DIFFERENTIABLE: Final = "fcVW"
_REAL: Final = "iufVW"
_F32: Final = np.dtype(np.float32)


class Level:
    """One derivative in progress. Tangents count only while their level is alive."""

    def __init__(self) -> None:
        self.alive: bool = True
        # ids are used again as tensors die, so this grows no larger than the level's peak
        self.owners: dict[int, Any] = {}

    def close(self) -> None:
        """End the level: all its tangents are gone."""
        if not self.alive:
            return
        self.alive = False
        with _lock:
            state.active -= 1
            slots.levels -= 1
        for reference in list(self.owners.values()):
            owner: Any = reference()
            if owner is not None:
                t: TensorBase = owner
                record = t.tangent
                if record is not None and record.level is self:
                    record.value = None  # a node may hold the record longer
                    t.tangent = None
        self.owners.clear()
        _open.remove(self)
        if _level.get() is self:
            _level.set(None)


class Tangent:
    """A tensor's tangent in one level. Where it has none, `root` and `ops` say of whose tangent
    it would be a view; without a root, of nobody's. See Note [Whose tangent]."""

    def __init__(
        self, level: Level, value: TensorBase | None, root: TensorBase | None, ops: tuple[Op, ...]
    ) -> None:
        self.level = level
        self.value = value
        self.root = root
        self.ops = ops


class Pending:
    """The tangent that a write in place will leave; `recorded`: it has a history to be kept."""

    def __init__(self, level: Level, value: TensorBase, recorded: bool) -> None:
        self.level = level
        self.value = value
        self.recorded = recorded


_open: Final[list[Level]] = []
_level: Final[ContextVar[Level | None]] = ContextVar("rushlight_dual_level", default=None)


def open_level() -> Level:
    """Begin a level in this context."""
    level = Level()
    with _lock:
        state.active += 1
        slots.levels += 1
    _open.append(level)
    _level.set(level)
    return level


def mine() -> Level | None:
    """The level that was begun in this context, a thread or a task."""
    level = _level.get()
    return level if level is not None and level.alive else None


def now() -> Level | None:
    """The level that a tangent made here belongs to: that of this context, or else the newest of
    those that others have open. Threads may share the work inside a level, or have their own."""
    level = mine()
    if level is None:
        others = list(_open)
        if others:
            return others[-1]
    return level


def muted() -> bool:
    """Whether tangents are switched off here."""
    mode = current()
    return mode is not None and (mode.dual is not None or mode.inference)


def mute(grad: bool) -> Mode:
    """Switch tangents off; give the result to `leave`, in a `finally`."""
    mode = enter(grad, inference_enabled())
    mode.dual = False
    return mode


# --- reading and giving ---------------------------------------------------------------------------
def tangent_of(x: TensorBase) -> Any:
    """The tangent of `x`, or None, as code that runs now may see it."""
    if slots.levels == 0 or muted():
        return None
    return live(x)


def live(x: TensorBase) -> Any:
    """The tangent of `x`, or None, even where tangents are switched off."""
    record: Tangent | None = x.tangent
    if record is not None and not record.level.alive:
        x.tangent = None
        record = None
    if record is not None:
        if record.value is not None or record.root is None:
            return record.value
        base: TensorBase = record.root
        ops = record.ops
    elif x.as_view is not None:
        base = x.as_view.base
        ops = x.as_view.ops
    else:
        return None
    root: Tangent | None = base.tangent
    if root is None or root.value is None or not root.level.alive:
        return None
    value: Any = root.value
    for op in ops:
        value = look_at(op, value)
    give(x, root.level, value)
    return value


def give(x: TensorBase, level: Level, value: TensorBase) -> None:
    """Make `value` the tangent of `x`."""
    x.tangent = Tangent(level, value, None, ())
    level.owners[id(x)] = weakref.ref(x)


def gather(xs: tuple[Any, ...]) -> list[Any] | None:
    """The tangents of an op's inputs, None for those without; None if no input has one."""
    found = False
    ts: list[Any] = []
    for x in xs:
        t: Any = None
        if isinstance(x, TensorBase):
            t = live(x)
            if t is not None:
                found = True
        ts.append(t)
    return ts if found else None


def level_of(xs: tuple[Any, ...], ts: list[Any]) -> Level:
    """The level of the tangents found."""
    for i in range(len(ts)):
        if ts[i] is not None:
            record: Tangent = xs[i].tangent
            return record.level
    raise AssertionError("no input has a tangent")


def refuse_out(name: str, xs: tuple[Any, ...]) -> None:
    """PyTorch's error for `out=` where tangents would be lost."""
    if slots.levels != 0 and not muted() and gather(xs) is not None:
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an "
            "out= function"
        )


# --- ops ------------------------------------------------------------------------------------------
def push(
    op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...], results: list[TensorBase], several: bool
) -> None:
    """Give the results of an op their tangents. `several`: the op returns a tuple."""
    if muted() or not op.plan.differentiable:
        return
    ts = gather(xs)
    if ts is None:
        return
    level = level_of(xs, ts)
    if wanted(xs, ts):
        mode = mute(True)
        try:
            y: Any = tuple(results) if several else results[0]
            found = on_tensors(op, ts, xs, y)
            parts = list(found) if several else [found]
            for k in range(len(results)):
                t = results[k]
                if t.array.dtype.kind in _DIFFERENTIABLE:
                    give(t, level, fitted_tensor(parts[k], t.array, xs, ts))
        finally:
            leave(mode)
        return
    ys = [t.array for t in results]
    found = on_arrays(op, ts, raws, tuple(ys) if several else ys[0])
    parts = list(found) if several else [found]
    for k in range(len(results)):
        t = results[k]
        if t.array.dtype.kind in _DIFFERENTIABLE:
            give(t, level, wrap(fitted(parts[k], t.array, xs, ts)))


def wanted(xs: tuple[Any, ...], ts: list[Any]) -> bool:
    """Whether the way from tangent to tangent is to be recorded."""
    if not grad_enabled():
        return False
    for x in xs:
        if isinstance(x, TensorBase) and asks(x):
            return True
    for t in ts:
        if t is not None and asks(t):
            return True
    return False


def on_arrays(op: Any, ts: list[Any], raws: tuple[Any, ...], y: Any) -> Any:
    """The op's `jvp` on raw arrays, with PyTorch's silence."""
    arrays: list[Any] = [None if t is None else t.array for t in ts]
    if isinstance(op, Elementwise) and not isinstance(y, tuple):
        # as the op itself did: inputs in the common dtype, low precision in float32
        low = v.low_precision(y.dtype)
        inside = _F32 if low else y.dtype
        if inside.kind == "f":
            raws = tuple([inside_of(r, inside) for r in raws])
            if low:
                arrays = [inside_of(t, inside) for t in arrays]
                y = inside_of(y, inside)
    rule: Any = op.jvp
    state.busy = True
    try:
        found = rule(tuple(arrays), raws, y)
    except RuntimeWarning:
        state.busy = False
        return quietly(rule, tuple(arrays), raws, y)
    except BaseException:
        state.busy = False
        raise
    state.busy = False
    return found


def inside_of(x: Any, dtype: Any) -> Any:
    """An array or tensor of real numbers in `dtype`; anything else as it is."""
    if x is None or isinstance(x, (bool, int, float, complex)):
        return x
    have: Any = x.array.dtype if isinstance(x, TensorBase) else x.dtype
    return x if have is dtype or have.kind not in _REAL else v.cast(x, dtype)


def on_tensors(op: Any, ts: list[Any], xs: tuple[Any, ...], y: Any) -> Any:
    """The op's `jvp`, recorded."""
    if isinstance(op, Linear):
        return apply(op, ts[0])
    if isinstance(op, Bilinear):
        a, b = xs
        left: Any = None if ts[0] is None else apply(op, ts[0], b)
        right: Any = None if ts[1] is None else apply(op, a, ts[1])
        if left is None:
            return right
        return left if right is None else left + right
    if isinstance(op, Elementwise) and isinstance(y, TensorBase) and y.array.dtype.kind == "f":
        xs = tuple([inside_of(x, y.array.dtype) for x in xs])
    rule: Any = op
    return rule.jvp(tuple(ts), xs, y)


def own_dtypes(xs: tuple[Any, ...], ts: list[Any]) -> bool:
    """Whether each tangent has its value's dtype, so that the result's is known too. The user may
    give others; a real one for a complex value is as good."""
    for i in range(len(ts)):
        if ts[i] is not None:
            have = ts[i].array.dtype
            want = xs[i].array.dtype
            if have != want and not (have.kind == "f" and want.kind == "c"):
                return False
    return True


def owner_of(array: Any) -> Any:
    """The array whose memory another looks into."""
    while array.base is not None and isinstance(array.base, type(array)):
        array = array.base
    return array


def shared(t: Any, xs: tuple[Any, ...], ts: list[Any], y: Any) -> bool:
    """Whether a computed tangent shares memory with what it was computed from."""
    owner = owner_of(t)
    if owner is owner_of(y):
        return True
    for x in xs:
        if isinstance(x, TensorBase) and owner_of(x.array) is owner:
            return True
    for s in ts:
        if s is not None and owner_of(s.array) is owner:
            return True
    return False


def same_layout(a: Any, b: Any) -> bool:
    """Whether two arrays of one shape have the same strides, counted in elements."""
    p: tuple[int, ...] = a.strides
    q: tuple[int, ...] = b.strides
    shape: tuple[int, ...] = a.shape
    m: int = a.dtype.itemsize
    n: int = b.dtype.itemsize
    for d in range(len(shape)):
        if shape[d] > 1 and p[d] * n != q[d] * m:
            return False
    return True


def zeros_like(y: Any, dtype: Any) -> Any:
    """Zeros in the shape and order of strides of the raw array `y`."""
    out = v.empty_as(y, dtype)
    v.overwrite(out, v.constant(out, 0, dtype))
    return out


def fitted(t: Any, y: Any, xs: tuple[Any, ...], ts: list[Any]) -> Any:
    """What `jvp` gave for the raw result `y`, as its tangent; see Note [Layout of tangents]."""
    if t is None:
        return zeros_like(y, y.dtype)
    t = normal(t)
    if t.dtype is not y.dtype and t.dtype != y.dtype and own_dtypes(xs, ts):
        t = v.cast(t, y.dtype)
    if t.shape != y.shape:
        t = v.broadcast(t, y.shape)
    if shared(t, xs, ts, y) or not same_layout(t, y):
        t = v.laid_out(t, order_of(y))
    return t


def fitted_tensor(t: Any, y: Any, xs: tuple[Any, ...], ts: list[Any]) -> Any:
    """`fitted` for tensors: recorded."""
    if t is None:
        return wrap(zeros_like(y, y.dtype))
    if t.array.dtype != y.dtype and own_dtypes(xs, ts):
        t = v.cast(t, y.dtype)
    if t.array.shape != y.shape:
        t = v.broadcast(t, y.shape)
    if shared(t.array, xs, ts, y) or not same_layout(t.array, y):
        t = v.laid_out(t, order_of(y))
    return t


def laid_like(t: Any, y: Any) -> Any:
    """The tensor `t` in the order of strides of the raw array `y`."""
    return t if same_layout(t.array, y) else v.laid_out(t, order_of(y))


# --- views ----------------------------------------------------------------------------------------
def push_view(op: Any, x: TensorBase, t: TensorBase) -> None:
    """Give the view `t` of `x` the same view of `x`'s tangent."""
    if muted():
        return
    value = live(x)
    record: Tangent | None = x.tangent
    if record is None:
        return
    if value is not None:
        if value.array.dtype.kind != "c" and x.array.dtype.kind == "c":
            value = v.cast(value, x.array.dtype)  # views of complex numbers need their parts
        give(t, record.level, look_at(op, value))
        return
    root = x if record.root is None else record.root
    t.tangent = Tangent(record.level, None, root, (*record.ops, op))


def push_views(op: Any, x: TensorBase, ts: list[TensorBase], parts: list[Any]) -> None:
    """`push_view` for an op with several outputs."""
    if muted():
        return
    value = live(x)
    if value is None:
        for k in range(len(ts)):
            push_view(parts[k], x, ts[k])
        return
    record: Tangent = x.tangent
    for t, s in zip(ts, look_at_many(op, value, parts), strict=True):
        give(t, record.level, s)


def turned(op: Any, target: TensorBase) -> None:
    """Before `target` itself is made to look at its memory another way: so does its tangent."""
    value = None if muted() else live(target)
    if value is not None:
        record: Tangent = target.tangent
        give(target, record.level, look_at(op, value))


# --- writes in place ------------------------------------------------------------------------------
def foresee(
    op: Any, target: TensorBase, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any
) -> Pending | None:
    """The tangent that `target` will have once `y` = op(*xs) is written into it. Called while the
    old value is still there; `y` is None where it is not computed apart."""
    array = target.array
    if muted() or array.dtype.kind not in _DIFFERENTIABLE:
        return None
    ts = gather(xs)
    if ts is None:
        return None
    level = level_of(xs, ts)
    if not op.plan.differentiable:
        return Pending(level, wrap(zeros_like(array, array.dtype)), False)
    if y is None:
        y = normal(evaluate(op, *raws))
    if not wanted(xs, ts):
        found = on_arrays(op, ts, raws, y)
        return Pending(level, wrap(fitted(found, y, xs, ts)), False)
    mode = mute(True)
    try:
        # the rule reads the old value, which is about to go: a copy with the same history
        old = wrap(v.copy(array))
        if asks(target):
            came: Any = edge(target)
            if isinstance(came, Node):
                old.node = came
                old.index = target.index
        before = tuple([old if x is target else x for x in xs])
        kept = tuple([x.array if isinstance(x, TensorBase) else x for x in before])
        ts = [v.copy(t) if t is not None and x is target else t for x, t in zip(xs, ts)]
        if y is array:
            y = v.copy(y)
        result = keep_record(op, before, kept, y)
        found = on_tensors(op, ts, before, result)
        return Pending(level, fitted_tensor(found, y, before, ts), True)
    finally:
        leave(mode)


def fulfil(target: TensorBase, pending: Pending) -> None:
    """Write the tangent that `foresee` computed; see Note [Whose tangent]."""
    level = pending.level
    value: Any = pending.value
    there = live(target)
    if there is None:
        record: Tangent | None = target.tangent
        root: TensorBase | None = None
        if record is not None:
            root = record.root
        elif target.as_view is not None:
            root = target.as_view.base
        if root is None:
            give(target, level, laid_like(value, target.array))
            return
        give(root, level, wrap(zeros_like(root.array, value.array.dtype)))
        there = live(target)
    if pending.recorded:
        mode = mute(True)
        try:
            there.copy_(value)
        finally:
            leave(mode)
    else:
        raw: TensorBase = there
        v.overwrite(raw.array, value.array)
        raw.memory.written()


# --- what nodes save ------------------------------------------------------------------------------
def old_tangent(target: TensorBase) -> Any:
    """A record of `target`'s tangent as it is before a write: a copy, for nodes that keep one of
    the old value too."""
    value = None if muted() else live(target)
    if value is None:
        return None
    record: Tangent = target.tangent
    mode = mute(grad_enabled())
    try:
        return Tangent(record.level, v.copy(value), None, ())
    finally:
        leave(mode)


def keep_tangents(
    node: Node, plan: Plan, xs: tuple[Any, ...], results: list[TensorBase], first: Any
) -> None:
    """Let a node that saves values save their tangents, for derivatives of its gradients.

    `first`, if given, is the record for the first input, which was overwritten.
    """
    if muted():
        return
    found = False
    kept: list[Any] = []
    for j in range(len(node.saved)):
        record: Any = None
        if node.saved[j] is not None:
            source: i64 = j if plan.variadic else plan.sources[j]
            if source == 0 and first is not None:
                record = first
            else:
                x: Any = xs[source] if source >= 0 else results[-1 - source]
                if isinstance(x, TensorBase) and live(x) is not None:
                    record = x.tangent
        if record is not None:
            found = True
        kept.append(record)
    if found:
        node.duals = tuple(kept)


slots.push = push
slots.push_view = push_view
slots.push_views = push_views
slots.keep_tangents = keep_tangents
