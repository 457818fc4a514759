"""Running ops on batched arrays: levels of `vmap`, and how an op goes down one level.

A tensor inside `vmap` is an ordinary tensor whose array is a `Batched` one. It is recorded, viewed
and written like any other; only where an op would compute on its arrays (`record.compute`) does it
go down a level instead: the op runs on what stands inside, and the result is wrapped again.

Note [Two tapes]
    What stands inside a batched array may be a tensor of the level beneath, with a history of its
    own: `grad(vmap(f))` records there, `vmap(grad(f))` records here, and each tape knows only its
    own level. A tensor captured from beneath counts as a constant of this level's tape.

Note [Plain inside]
    Where nobody beneath asks for derivatives, raw arrays stand inside, which is quicker. If then a
    captured tensor that does is written into a batch made so, the batch gets tensors inside.

Note [Going down]
    Three ways, the first that an op offers:
    align    the op itself, or one like it, takes the batch as one more leading axis
    words    its forward is run word by word on what stands inside
    lifted   `Lifted(op)` runs the op's own rules on batched arrays: always right, one node
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from rushlight.arrays import batch_index, batch_rules  # noqa: F401  # they fill the rules
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import INPLACE, Batched, deepest, members
from rushlight.core.grad_mode import grad_enabled, within
from rushlight.core.graph import Node, Op, TensorBase, View, requires_grad, wrap, wrap_as
from rushlight.core.node import fit
from rushlight.core.record import apply, compute, normal, slots
from rushlight.core.views.views import replay_views
from rushlight.native import i64

__all__ = [
    "WORDS", "BatchLevel", "Lifted", "as_recorded", "is_tracked", "lifted", "plain_inside",
    "seen_at", "unbatched",
]  # fmt: skip

_depths: Final = count(1)


class BatchLevel:
    """One batch in progress: how many members it has, and what it allows."""

    def __init__(self, size: int, randomness: str = "error", tracked: bool = False) -> None:
        self.size = size
        self.tracked = tracked  # what stands inside may get a history: see Note [Plain inside]
        self.depth: int = next(_depths)
        self.nesting: int = 1  # which transform it is, counted from the outermost
        self.alive: bool = True
        self.randomness = randomness
        self.recording: bool = grad_enabled()  # whether the level beneath records


def lifted(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands at the deepest level among them: those from beneath become shared by its batch."""
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


def lift_operands(target: TensorBase, others: tuple[Any, ...]) -> tuple[Any, ...]:
    """The other operands of a write, at the level of `target`, which none may be deeper than,
    unless all members share it."""
    found = lifted((target, *others))
    while found[0] is not target:
        level = found[0]._array.level
        known = False
        for x in found[1:]:
            if isinstance(x, TensorBase):
                if x._array.has_batch_dim:
                    raise RuntimeError(INPLACE)
                known = known or is_tracked(x)
        if known:  # this level has derivatives of it: the target becomes one of the level's too
            raised(target, level)
            break
        down = [plain_inside(x._array.value) if isinstance(x, TensorBase) else x for x in found[1:]]
        found = lifted((target, *down))
    array = target._array
    if type(array) is Batched:
        for x in found[1:]:
            if isinstance(x, TensorBase):
                follow(target, x._array)
    return found[1:]


def copy_if_saved(op: Any, target: TensorBase, others: tuple[Any, ...]) -> TensorBase:
    """The target of a write as the op should read it: a copy, if the op beneath is recorded and
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


def follow(target: TensorBase, source: Any) -> None:
    """Put a tensor inside a batch that is about to be written, where one stands inside what is
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


def raised(target: TensorBase, level: BatchLevel) -> None:
    """Make a tensor that is about to be written one of a level's, shared by its batch."""
    view = target._view
    base = target if view is None else view.base
    inside: Any = base._array
    if is_tracked(base):  # that is a history of the level beneath
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
    """Let a view see what became of its base since; see `follow` and `raised`."""
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
    """A tensor as a level sees it. It keeps its version, so that writes beneath are noticed."""
    if type(x._array) is Batched and x._array.level is level:
        return x
    x = as_recorded(x, level)
    return wrap_as(Batched(x if is_tracked(x) else x._array, level, False), x._storage)


def as_recorded(x: TensorBase, level: BatchLevel) -> TensorBase:
    """A tensor from beneath a level as it stands inside the level's arrays: without its history, if
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
    """What stands inside a batched array as a tensor."""
    return x if isinstance(x, TensorBase) else wrap(normal(x))


def unbatched(t: TensorBase, level: BatchLevel) -> Any:
    """A tensor of a level as the level beneath sees it, with the batch as first dimension."""
    inside: Any = t
    if type(t._array) is Batched and t._array.level is level:
        inside = plain_inside(t._array.value)
        if t._array.has_batch_dim:
            return inside
    return v.broadcast(inside, (level.size, *inside._array.shape))


def batched(op: Any, raws: tuple[Any, ...]) -> Any:
    """The result of an op on arrays of which some are batched; None if none is."""
    level = deepest(raws)
    if level is None:
        return None
    insides: list[Any] = []
    flags: list[bool] = []
    some = False
    record = False
    for x in raws:
        inside, has_batch_dim = members(x, level)
        insides.append(inside)
        flags.append(has_batch_dim)
        if has_batch_dim:
            some = True
        if isinstance(inside, TensorBase) and is_tracked(inside):
            record = True
    if not some:
        down: Any = op
        xs = tuple(insides)
    else:
        aligned: Any = op.vmap_rule(tuple(insides), tuple(flags), level.size)
        if aligned is None:
            down = Lifted(op, tuple(flags), level.size)
            xs = tuple(insides)
        elif aligned is WORDS:
            ready = tuple([inside_kept(x, record) for x in raws])
            return beneath(level, op.forward, ready) if record else op.forward(*ready)
        else:
            down, xs = aligned
    if record:
        y = beneath(level, run_tensors, (down, xs))
    else:
        y = compute(down, tuple([x._array if isinstance(x, TensorBase) else x for x in xs]))
    if isinstance(y, tuple):
        return tuple([Batched(kept(part, level), level, some) for part in y])
    return Batched(kept(y, level), level, some)


def kept(y: Any, level: BatchLevel) -> Any:
    """A result as it stands inside a batched array of the level: see Note [Plain inside]."""
    y = normal(y)
    return wrap(y) if level.tracked and not isinstance(y, TensorBase) else y


class Words:
    """The answer of `vmap_rule` that means "word by word"."""


WORDS: Final = Words()


def inside_kept(x: Any, record: bool) -> Any:
    """A batched array over a raw array, unless what stands inside is to be recorded."""
    if not record and type(x) is Batched and isinstance(x.value, TensorBase):
        return Batched(x.value._array, x.level, x.has_batch_dim)
    return x


def run_tensors(op: Any, xs: tuple[Any, ...]) -> Any:
    """An op beneath the level, recorded there. Dtypes were settled above."""
    return apply(op, *[plain_inside(x) if hasattr(x, "dtype") else x for x in xs])


def beneath(level: BatchLevel, fn: Any, args: tuple[Any, ...]) -> Any:
    """Call a function in the mode of the level beneath: recorded if that is, and if nobody switched
    recording off since."""
    if level.recording or not grad_enabled():
        return fn(*args)
    with within(False, False):
        return fn(*args)


class Lifted(Op):
    """An op on members, as an op on batches: its rules are run on batched arrays.

    `flags` say which inputs have a batch axis in front. What the rules give for an input that all
    members share is summed over the batch.
    """

    name = "lifted"
    params = ("op", "flags", "size")

    def __init__(self, op: Any, flags: tuple[bool, ...], size: int) -> None:
        super().__init__()
        self.op = op
        self.flags = flags
        self.size = size
        self.plan = op.plan  # saves what the op saves, and its nodes bear its name

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return None

    def given(self, level: BatchLevel, x: Any, flag: bool) -> Any:
        """A value as the op's rules see it."""
        return Batched(x, level, flag) if hasattr(x, "shape") else x

    def taken(self, level: BatchLevel, y: Any) -> Any:
        """A result of the rules, with the batch in front."""
        if type(y) is Batched and y.level is level:
            if y.has_batch_dim:
                return y.value
            y = y.value
        y = normal(y)
        shape: tuple[int, ...] = y.shape
        return v.broadcast(y, (self.size, *shape))

    def forward(self, *xs: Any) -> Any:
        level = BatchLevel(self.size)
        inputs = [self.given(level, x, f) for x, f in zip(xs, self.flags, strict=True)]
        y = self.op.forward(*inputs)
        if isinstance(y, tuple):
            return tuple([self.taken(level, part) for part in y])
        return self.taken(level, y)

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        level = BatchLevel(self.size)
        plan = self.plan
        seen: list[Any] = []
        for j in range(len(saved)):
            source: i64 = j if plan.variadic else plan.sources[j]
            seen.append(self.given(level, saved[j], self.flags[source] if source >= 0 else True))
        inner = self.member_node(node)
        cotangent: Any = g
        if isinstance(g, (list, tuple)):
            cotangent = [None if part is None else Batched(part, level) for part in g]
        else:
            cotangent = Batched(g, level)
        rule: Any = self.op
        outs: list[Any] = []
        position = 0
        for part in rule.vjp(inner, cotangent, *seen):
            outs.append(self.summed(level, inner, position, part))
            position += 1
        return outs

    def summed(self, level: BatchLevel, inner: Node, i: int, part: Any) -> Any:
        """One of the op's gradients, in the shape of its input beneath."""
        if part is None or i >= len(self.flags):
            return None
        shapes: Any = inner._input_shapes
        if shapes is not None and shapes[i] is not None:
            part = fit(part, shapes[i], None)
        if self.flags[i]:
            return self.taken(level, part)
        inside, has_batch_dim = members(part, level)
        if has_batch_dim:
            return v.reduce_sum(inside, (0,), False)
        return inside * self.size

    def member_node(self, node: Node) -> Node:
        """What the op's rule may ask its node, for one member."""
        inner = Node.__new__(Node)
        inner._op = self.op
        inner._next_edges = node._next_edges
        inner._needs_grad_mask = node._needs_grad_mask
        inner._input_dtypes = node._input_dtypes
        flags = self.flags
        if node._input_shapes is not None:
            shapes: list[Any] = []
            for i in range(len(node._input_shapes)):
                shape = node._input_shapes[i]
                shapes.append(tuple(shape[1:]) if shape is not None and flags[i] else shape)
            inner._input_shapes = tuple(shapes)
        if node._output_metas is not None:
            inner._output_metas = [(tuple(shape[1:]), dtype) for shape, dtype in node._output_metas]
        return inner

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        level = BatchLevel(self.size)
        flags = self.flags
        tangents = [
            None if t is None else self.given(level, t, f) for t, f in zip(ts, flags, strict=True)
        ]
        inputs = [self.given(level, x, f) for x, f in zip(xs, flags, strict=True)]
        several = isinstance(y, tuple)
        result: Any = tuple([Batched(p, level) for p in y]) if several else Batched(y, level)
        rule: Any = self.op
        found = rule.jvp(tuple(tangents), tuple(inputs), result)
        if several:
            return tuple([None if p is None else self.taken(level, p) for p in found])
        return None if found is None else self.taken(level, found)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        level = BatchLevel(self.size)
        rule: Any = self.op
        inputs = [self.given(level, x, f) for x, f in zip(xs, self.flags, strict=True)]
        explained: Exception = rule.explain(error, tuple(inputs))
        return explained


slots.batched = batched
slots.lifted = lifted
slots.lift_operands = lift_operands
slots.copy_if_saved = copy_if_saved
