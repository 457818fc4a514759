"""Running ops on batched arrays: levels of `vmap`, and how an op goes down one level.

A tensor inside `vmap` is an ordinary tensor whose array is a `Batched` one. It is recorded, viewed
and written like any other; only where an op would compute on its arrays (`record.compute`) does it
go down a level instead: the op runs on what is inside, and the result is wrapped again.

Note [Two tapes]
    What is inside a batched array may be a tensor of the level below, with a history of its
    own: `grad(vmap(f))` records there, `vmap(grad(f))` records here, and each tape knows only its
    own level. A tensor captured from below counts as a constant of this level's tape.

Note [Plain inside]
    Where nobody below wants derivatives, raw arrays stand inside, which is quicker. If then a
    captured tensor that does is written into a batch made so, the batch gets tensors inside.

Note [Going down]
    Three ways, the first that an op offers:
    align    the op itself, or one like it, takes the batch as one more leading axis
    words    its forward is run word by word on what is inside
    lifted   `Lifted(op)` runs the op's own rules on batched arrays: always right, one node
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from rushlight.arrays import batch_index, batch_rules  # noqa: F401  # they fill the rules
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched, members
from rushlight.core.grad_mode import grad_enabled, within
from rushlight.core.graph import Node, Op, TensorBase, normal, wrap
from rushlight.core.node import fit
from rushlight.core.record import apply, compute
from rushlight.core.transforms.lift import is_tracked, plain_inside
from rushlight.core.transforms.stack import Level
from rushlight.native import i64

_depths: Final = count(1)


class BatchLevel(Level):
    """One batch in progress: how many members it has, and what it allows."""

    def __init__(self, size: int, randomness: str = "error", tracked: bool = False) -> None:
        super().__init__("batch", next(_depths))
        self.size = size
        self.tracked = tracked  # what is inside may get a history: see Note [Plain inside]
        self.nesting: int = 1  # which transform it is, counted from the outermost
        self.randomness = randomness
        self.recording: bool = grad_enabled()  # whether the level below records

    def close(self) -> None:
        self.alive = False

    def compute(self, op: Any, raws: tuple[Any, ...]) -> Any:
        return apply_batched(self, op, raws)


def unbatch(t: TensorBase, level: BatchLevel) -> Any:
    """A tensor of a level as the level below sees it, with the batch as first dimension."""
    inside: Any = t
    if type(t._array) is Batched and t._array.level is level:
        inside = plain_inside(t._array.value)
        if t._array.has_batch_dim:
            return inside
    return v.broadcast(inside, (level.size, *inside._array.shape))


def apply_batched(level: BatchLevel, op: Any, raws: tuple[Any, ...]) -> Any:
    """The result of an op on arrays of which some are batched, the deepest at this level."""
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
        return tuple([Batched(keep_inside(part, level), level, some) for part in y])
    return Batched(keep_inside(y, level), level, some)


def keep_inside(y: Any, level: BatchLevel) -> Any:
    """A result as it is inside a batched array of the level: see Note [Plain inside]."""
    y = normal(y)
    return wrap(y) if level.tracked and not isinstance(y, TensorBase) else y


class Words:
    """The answer of `vmap_rule` that means "word by word"."""


WORDS: Final = Words()


def inside_kept(x: Any, record: bool) -> Any:
    """A batched array over a raw array, unless what is inside is to be recorded."""
    if not record and type(x) is Batched and isinstance(x.value, TensorBase):
        return Batched(x.value._array, x.level, x.has_batch_dim)
    return x


def run_tensors(op: Any, xs: tuple[Any, ...]) -> Any:
    """An op below the level, recorded there. Dtypes were settled above."""
    return apply(op, *[plain_inside(x) if hasattr(x, "dtype") else x for x in xs])


def beneath(level: BatchLevel, fn: Any, args: tuple[Any, ...]) -> Any:
    """Call a function in the mode of the level below: recorded if that is, and if nobody switched
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
    aten = None
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
        """One of the op's gradients, in the shape of its input below."""
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
