"""Forward mode: tangents that travel next to the values.

While a level of `autograd.forward_ad` is live, a tensor may have a tangent, the derivative of its
value along one direction. After an op computed its results, `push` gives them the tangents that the
op's own `jvp` says; views, writes in place and saved values have their rules here too. The files
that run ops come here by way of `core.transforms.tangents`, while `stack.tangents` is not 0.

Note [Levels nest]
    A tensor may have a tangent in each of several levels: `x.tangent` is the record of the deepest,
    whose `outer` is the next. With a level's tangent t, `x` stands for x + eps t, where eps is that
    level's own; t in turn may have tangents in the levels below, never in its own or deeper. So
    an op does the lowest level first, and a level's `jvp` runs where only the levels below can
    be seen: what it computes then has their tangents, and two levels are never taken for one.

Note [What can be seen]
    `Mode.dual` is a limit: levels of lesser depth can be seen, all of them if it is None. A level
    is deeper than all that were open before; but one opened for a derivative inside code that may
    not see some levels (a custom function's `jvp`, say) is below those and above the others,
    so that the same limit shows it.

Note [Whose tangent]
    A view of a tensor that has a tangent gets the same view of that tangent: they share memory, so
    a write through one is seen by all. A write of a tangent to a tensor that has none, and is a
    view, makes zeros for the tensor it looks into; that one's tangent is the truth, and other
    views of it find theirs when someone asks. What `make_dual` and `unpack_dual` return shares the
    memory of values, not of tangents: their record ends the search. All this holds in each level.

Note [Room for a batch]
    Inside `vmap` a write may bring a tangent that differs from member to member, where the tangent
    that is there is shared by all. The root's is then replaced by one with a place for each, and
    so views do not keep theirs, but look at the root's each time.

Note [On arrays or on tensors]
    If nothing wants gradients, and no level below has a part in it, `jvp` runs on raw arrays.
    Otherwise it runs on tensors, so that tangents can be differentiated backward and forward.

Note [Layout of tangents]
    A tangent has the order of strides of its value, and memory of its own: every view that the
    value allows is then a view of the tangent too, and a write in place harms nobody else.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import Any, Final, cast

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched, bottom
from rushlight.core.families import Bilinear, Elementwise, Linear
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import (
    Mode,
    ModeBlock,
    _lock,
    grad_enabled,
    inference_enabled,
    state,
    within,
)
from rushlight.core.graph import DIFFERENTIABLE, Op, TensorBase, normal, requires_grad, wrap
from rushlight.core.record import apply, finish
from rushlight.core.transforms.stack import Level, stack
from rushlight.core.transforms.tangents import EVERYTHING, Tangent, levels_of, limit, tangent_of
from rushlight.core.views.history import order_of
from rushlight.core.views.views import apply_view, look_at_many
from rushlight.native import mypyc_attr

_REAL: Final = "iufVW"
_F32: Final = np.dtype(np.float32)
_ndarray: Final = np.ndarray


class DualLevel(Level):
    """One derivative in progress. Tangents count only while their level is alive; of two levels
    that are alive, the depths are never the same.

    `outside` is the level that was this context's before.
    """

    def __init__(self, depth: float, outside: DualLevel | None) -> None:
        super().__init__("dual", depth)
        self.outside = outside
        self.counted: bool = False  # in `state.active`
        # ids are used again as tensors die, so this grows no larger than the level's peak
        self.owners: dict[int, Any] = {}

    def close(self) -> None:
        """End the level: all its tangents are gone, those of other levels stay. What an interrupt
        leaves undone is done by another call."""
        self.alive = False
        for reference in list(self.owners.values()):
            owner: Any = reference()
            if owner is not None:
                t: TensorBase = owner
                record = record_in(t._tangent, self)
                if record is not None:
                    record.value = None  # a node may hold the record longer
                t._tangent = prune(t._tangent)
        self.owners.clear()
        if _level.get() is self:
            _level.set(self.outside)
        with _lock:
            stack.open.pop(self, None)
            stack.count()
            if self.counted:  # assignments alone: see Note [Interrupts] in `core.grad_mode`
                self.counted = False
                state.active -= 1

    def tangent_of(self, x: TensorBase) -> Any:
        return tangent_in(x, self)

    def push(
        self, op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...], results: list[TensorBase],
        several: bool,
    ) -> None:  # fmt: skip
        ts = gather(xs, self)
        if ts is None:
            return
        if raw_is_enough(xs, ts, self):
            ys = [t._array for t in results]
            found = on_arrays(op, ts, raws, tuple(ys) if several else ys[0])
            parts = list(found) if several else [found]
            for k in range(len(results)):
                t = results[k]
                if t._array.dtype.kind in DIFFERENTIABLE:
                    give(t, self, finish(wrap(fit_tangent(parts[k], t._array, xs, ts))))
            return
        with seeing_beneath(grad_enabled(), self.depth):
            found = on_tensors(op, ts, xs, tuple(results) if several else results[0])
            parts = list(found) if several else [found]
            for k in range(len(results)):
                t = results[k]
                if t._array.dtype.kind in DIFFERENTIABLE:
                    give(t, self, fit_tangent_tensor(parts[k], t._array, xs, ts))

    def push_view(self, op: Any, x: TensorBase, t: TensorBase, visible: bool) -> None:
        """Where `x` has no tangent, `t` will look for it where `x` would; and in `x` itself where
        it may not be seen now."""
        value = tangent_in(x, self) if visible else None
        if value is not None:
            if value._array.dtype.kind != "c" and x._array.dtype.kind == "c":
                value = v.cast(value, x._array.dtype)  # views of complex numbers need their parts
            elif stack.batches != 0 and look_later(self, op, x, t):
                return
            give(t, self, apply_view(op, value))
            return
        look_later(self, op, x, t)

    def push_views(
        self, op: Any, x: TensorBase, ts: list[TensorBase], parts: list[Any], visible: bool
    ) -> None:
        value = tangent_in(x, self) if visible else None
        if value is None or stack.batches != 0:
            for k in range(len(ts)):
                self.push_view(parts[k], x, ts[k], visible)
            return
        for t, s in zip(ts, look_at_many(op, value, parts), strict=True):
            give(t, self, s)


# --- levels ---------------------------------------------------------------------------------------
_level: Final[ContextVar[DualLevel | None]] = ContextVar("rushlight_dual_level", default=None)


def open_level(visible: bool = False, mode: Mode | None = None) -> DualLevel:
    """Begin a level in this context; `visible` even where tangents are switched off, by being
    below what is hidden. See Note [What can be seen]. It ends with `mode`, if that is given."""
    seen = limit() if visible else EVERYTHING
    outside = mine()
    with _lock:
        top = -EVERYTHING
        for other in stack.tangent_levels():
            if top < other.depth < seen:
                top = other.depth
        if seen == EVERYTHING:
            depth = max(top, -1.0) + 1.0
        elif top == -EVERYTHING:
            depth = seen - 1.0
        else:
            depth = (top + seen) / 2
            if not top < depth < seen:
                raise RuntimeError("Too many levels of forward mode are nested where others hide")
        level = DualLevel(depth, outside)
        if mode is not None:
            mode.closes = level
        state.active += 1
        level.counted = True
        stack.open[level] = None
        stack.count()
    _level.set(level)
    return level


@mypyc_attr(allow_interpreted_subclasses=True)
class LevelBlock(ModeBlock):
    """`with LevelBlock(visible) as level`: a level for a block; see `open_level`."""

    def __init__(self, visible: bool) -> None:
        super().__init__(None, None)
        self._visible = visible

    def fill(self, mode: Mode) -> Any:
        return open_level(self._visible, mode)


def mine() -> DualLevel | None:
    """The innermost level that was begun in this context, a thread or a task."""
    level = _level.get()
    while level is not None and not level.alive:
        level = level.outside
    return level


def now() -> DualLevel | None:
    """The level that a tangent made here belongs to: that of this context, or else the newest of
    those that others have open. Threads may share the work inside a level, or have their own."""
    level = mine()
    if level is None:
        others = stack.tangent_levels()
        if others:
            return cast(DualLevel, others[-1])
    return level


def muted() -> bool:
    """Whether tangents are switched off here: of the levels there are, none can be seen."""
    seen = limit()
    if seen == EVERYTHING:
        return False
    for level in stack.tangent_levels():
        if level.depth < seen:
            return False
    return True


def seeing_beneath(grad: bool, depth: float) -> Mode:
    """For `with`: hide the levels of this depth and deeper."""
    mode = within(grad, inference_enabled())
    mode.dual = depth if mode.dual is None else min(depth, float(mode.dual))
    return mode


def disable_forward_ad(grad: bool) -> Mode:
    """For `with`: switch tangents off."""
    lowest = 0.0
    for level in stack.tangent_levels():
        lowest = min(lowest, level.depth)
    return seeing_beneath(grad, lowest)


# --- records --------------------------------------------------------------------------------------
def record_in(record: Tangent | None, level: DualLevel) -> Tangent | None:
    """The record of a level in a chain of records."""
    while record is not None:
        if record.level is level:
            return record
        record = record.outer
    return None


def prune(record: Tangent | None) -> Tangent | None:
    """A chain without the records of dead levels."""
    while record is not None and not record.level.alive:
        record = record.outer
    if record is None or record.outer is None:
        return record
    rest = prune(record.outer)
    if rest is record.outer:
        return record
    return Tangent(record.level, record.value, record.root, record.ops, rest)


def link(
    record: Tangent | None, level: DualLevel, value: TensorBase | None, root: TensorBase | None,
    ops: tuple[Op, ...],
) -> Tangent:  # fmt: skip
    """A chain with this record for a level, in its place among the live ones."""
    while record is not None and not record.level.alive:
        record = record.outer
    if record is None or record.level.depth < level.depth:
        return Tangent(level, value, root, ops, record)
    if record.level is level:
        return Tangent(level, value, root, ops, record.outer)
    rest = link(record.outer, level, value, root, ops)
    return Tangent(record.level, record.value, record.root, record.ops, rest)


def seen_levels(xs: tuple[Any, ...]) -> list[DualLevel]:
    """The levels of tangents that code which runs now may see on its operands."""
    return [cast(DualLevel, level) for level in levels_of(xs, limit())]


# --- reading and giving ---------------------------------------------------------------------------
def tangent_in(x: TensorBase, level: DualLevel) -> Any:
    """The tangent of `x` in a live level, or None."""
    record = record_in(x._tangent, level)
    if record is not None and record.value is not None:
        return record.value
    base = whose(x, level)
    root = None if base is None else record_in(base._tangent, level)
    if root is None or root.value is None:
        return None
    value: Any = root.value
    if record is not None:
        ops = record.ops
    else:
        ops = () if x._view is None else x._view.ops
    for op in ops:
        value = apply_view(op, value)
    if stack.batches == 0:  # else the root may get another: see Note [Room for a batch]
        give(x, level, value)
    return value


def seen_in(x: TensorBase, level: DualLevel) -> Any:
    """The tangent of `x` in a live level, or None, as code that runs now may see it."""
    return tangent_in(x, level) if level.depth < limit() else None


def whose(target: TensorBase, level: DualLevel) -> TensorBase | None:
    """The tensor of whose tangent that of `target`, which has none, would be a view."""
    record = record_in(target._tangent, level)
    if record is not None:
        return record.root
    return None if target._view is None else target._view.base


def give(x: TensorBase, level: DualLevel, value: TensorBase) -> None:
    """Make `value` the tangent of `x` in a level; it may have tangents in those below only."""
    note(x, level, value, None, ())


def end_tangent(x: TensorBase, level: DualLevel) -> None:
    """Let `x` have no tangent in a level, whatever it is a view of."""
    note(x, level, None, None, ())


def note(
    x: TensorBase, level: DualLevel, value: Any, root: TensorBase | None, ops: tuple[Op, ...]
) -> None:
    """Give `x` a record in a level."""
    if x._tangent is None:
        x._tangent = Tangent(level, value, root, ops, None)
    else:
        x._tangent = link(x._tangent, level, value, root, ops)
    level.owners[id(x)] = weakref.ref(x)


def gather(xs: tuple[Any, ...], level: DualLevel) -> list[Any] | None:
    """The tangents of an op's inputs in a level, None for those without; None if no input has
    one."""
    found = False
    ts: list[Any] = []
    for x in xs:
        t: Any = None
        if isinstance(x, TensorBase):
            t = tangent_in(x, level)
            if t is not None:
                found = True
        ts.append(t)
    return ts if found else None


def refuse_out(name: str, xs: tuple[Any, ...]) -> None:
    """PyTorch's error for `out=` where tangents would be lost."""
    if stack.tangents == 0:
        return
    for x in xs:
        if isinstance(x, TensorBase) and tangent_of(x) is not None:
            raise NotImplementedError(
                f"Trying to use forward AD with {name}_out that does not support it because it is "
                "an out= function"
            )


# --- ops ------------------------------------------------------------------------------------------
def raw_is_enough(xs: tuple[Any, ...], ts: list[Any], level: DualLevel) -> bool:
    """Whether nobody will differentiate the way from tangent to tangent: backward, or forward in
    a level below. See Note [On arrays or on tensors]."""
    grad = grad_enabled()
    for x in xs:
        if isinstance(x, TensorBase):
            if (grad and requires_grad(x)) or has_beneath(x, level):
                return False
    for t in ts:
        if t is not None:
            if (grad and requires_grad(t)) or has_beneath(t, level):
                return False
    return True


def has_beneath(x: TensorBase, level: DualLevel) -> bool:
    """Whether `x` may have a tangent in a level below this one."""
    record: Tangent | None = x._tangent
    while record is not None:
        if record.level.depth < level.depth and record.level.alive:
            return True
        record = record.outer
    view = x._view
    return view is not None and view.base._tangent is not None and has_beneath(view.base, level)


def on_arrays(op: Any, ts: list[Any], raws: tuple[Any, ...], y: Any) -> Any:
    """The op's `jvp` on raw arrays, with PyTorch's silence."""
    arrays: list[Any] = [None if t is None else t._array for t in ts]
    if isinstance(op, Elementwise) and not isinstance(y, tuple):
        # as the op itself did: inputs in the common dtype, low precision in float32
        low = v.low_precision(y.dtype)
        inside = _F32 if low else y.dtype
        if inside.kind == "f":
            if low:  # a 0-d operand of a wider dtype is rounded to the common one first
                raws = tuple([inside_of(r, y.dtype) for r in raws])
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
    have: Any = x._array.dtype if isinstance(x, TensorBase) else x.dtype
    return x if have is dtype or have.kind not in _REAL else v.cast(x, dtype)


def on_tensors(op: Any, ts: list[Any], xs: tuple[Any, ...], y: Any) -> Any:
    """The op's `jvp` on tensors: recorded, and with the tangents of the levels below."""
    if isinstance(op, Linear):
        return apply(op, ts[0])
    if isinstance(op, Bilinear):
        a, b = xs
        left: Any = None if ts[0] is None else apply(op, ts[0], b)
        right: Any = None if ts[1] is None else apply(op, a, ts[1])
        if left is None:
            return right
        return left if right is None else left + right
    if isinstance(op, Elementwise) and isinstance(y, TensorBase) and y._array.dtype.kind == "f":
        xs = tuple([inside_of(x, y._array.dtype) for x in xs])
    rule: Any = op
    return rule.jvp(tuple(ts), xs, y)


def own_dtypes(xs: tuple[Any, ...], ts: list[Any]) -> bool:
    """Whether each tangent has its value's dtype, so that the result's is known too. The user may
    give others; a real one for a complex value is as good."""
    for i in range(len(ts)):
        if ts[i] is not None:
            have = ts[i]._array.dtype
            want = xs[i]._array.dtype
            if have != want and not (have.kind == "f" and want.kind == "c"):
                return False
    return True


def owner_of(array: Any) -> Any:
    """The array whose memory another looks into."""
    if type(array) is not _ndarray:
        array = bottom(array)
    while array.base is not None and isinstance(array.base, type(array)):
        array = array.base
    return array


def shares(a: Any, b: Any) -> bool:
    """Whether two raw arrays lie in the same memory."""
    return owner_of(a) is owner_of(b)


def shares_memory(t: Any, xs: tuple[Any, ...], ts: list[Any], y: Any) -> bool:
    """Whether a computed tangent shares memory with what it was computed from."""
    owner = owner_of(t)
    if owner is owner_of(y):
        return True
    for x in xs:
        if isinstance(x, TensorBase) and owner_of(x._array) is owner:
            return True
    for s in ts:
        if s is not None and owner_of(s._array) is owner:
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


def zero_tangent(y: Any, dtype: Any) -> Any:
    """Zeros in the shape and order of strides of the raw array `y`."""
    out = v.empty_as(y, dtype)
    v.overwrite(out, v.constant(out, 0, dtype))
    return out


def batches_in(x: Any, found: list[Any]) -> None:
    """Add the levels of `vmap` in whose batches an array differs from member to member."""
    while type(x) is Batched:
        if x.has_batch_dim and x.level not in found:
            found.append(x.level)
        inside: Any = x.value
        x = inside._array if isinstance(inside, TensorBase) else inside


def missing_members(t: Any, y: Any, ts: list[Any]) -> Any:
    """Zeros to be added to a tangent for it to have room for every batch that its value or the
    tangents it came from have, so that others can be written into it; None if it has."""
    want: list[Any] = []
    batches_in(y, want)
    for s in ts:
        if s is not None:
            batches_in(s._array, want)
    have: list[Any] = []
    batches_in(t, have)
    if len(have) >= len(want):
        return None
    one: Any = v.constant(bottom(y), 0, t.dtype)
    for x in [y, *[s._array for s in ts if s is not None]]:
        one = one + v.full(x, (), 0, t.dtype)
    return one


def fit_tangent(t: Any, y: Any, xs: tuple[Any, ...], ts: list[Any]) -> Any:
    """What `jvp` gave for the raw result `y`, as its tangent; see Note [Layout of tangents]."""
    t = zero_tangent(y, y.dtype) if t is None else normal(t)
    if t.dtype is not y.dtype and t.dtype != y.dtype and own_dtypes(xs, ts):
        t = v.cast(t, y.dtype)
    if stack.batches != 0:
        zero = missing_members(t, y, ts)
        if zero is not None:
            t = normal(t + zero)
    if t.shape != y.shape:
        t = v.broadcast(t, y.shape)
    if shares_memory(t, xs, ts, y) or not same_layout(t, y):
        t = v.laid_out(t, order_of(y))
    return t


def fit_tangent_tensor(t: Any, y: Any, xs: tuple[Any, ...], ts: list[Any]) -> Any:
    """`fit_tangent` for tensors."""
    if t is None:
        t = wrap(zero_tangent(y, y.dtype))
    if t._array.dtype != y.dtype and own_dtypes(xs, ts):
        t = v.cast(t, y.dtype)
    if stack.batches != 0:
        zero = missing_members(t._array, y, ts)
        if zero is not None:
            t = t + wrap(zero)
    if t._array.shape != y.shape:
        t = v.broadcast(t, y.shape)
    if shares_memory(t._array, xs, ts, y) or not same_layout(t._array, y):
        t = v.laid_out(t, order_of(y))
    return t


def laid_like(t: Any, y: Any) -> Any:
    """The tensor `t` in the order of strides of the raw array `y`."""
    return t if same_layout(t._array, y) else v.laid_out(t, order_of(y))


# --- views ----------------------------------------------------------------------------------------
def look_later(level: DualLevel, op: Any, x: TensorBase, t: TensorBase) -> bool:
    """Let the view `t` of `x` look for its tangent where `x` would, each time it is asked for; not
    if nothing says where."""
    record = record_in(x._tangent, level)
    if record is None:
        return False
    root = x if record.root is None else record.root
    note(t, level, None, root, (*record.ops, op))
    return True


# --- what nodes save ------------------------------------------------------------------------------
