"""Custom functions inside `vmap`: their own `vmap` rule, or one made from their other rules.

`autograd.apply` hands a call over when an argument is batched. The function is applied to what
is inside the batch, one level down, where it is recorded like any other call; what it gives is
wrapped again.

Note [A rule made from the others]
    With `generate_vmap_rule` the function one level down is `Members`: its forward, backward and
    jvp run those of the user's function on batched tensors. What the user's context saved is kept
    as what is inside, so that it has its history there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched
from rushlight.autograd.context import FunctionCtx, Rules
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.node import fit
from rushlight.core.transforms.lift import plain_inside
from rushlight.core.transforms.stack import Transform, innermost
from rushlight.core.transforms.vmap import BatchLevel, unbatch
from rushlight.ops.registry import functions
from rushlight.trees import broadcast_prefix, tree_flatten, tree_structure, tree_unflatten

__all__ = ["VmapInfo", "batch_of", "call_members", "check_support", "inside_vmap"]

_SEE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a `vmap` rule is told about the batch."""

    batch_size: int
    randomness: str


def batch_of(args: tuple[Any, ...]) -> BatchLevel | None:
    """The deepest batch among the arguments of a call."""
    found: BatchLevel | None = None
    for x in args:
        if isinstance(x, TensorBase) and type(x._array) is Batched:
            level: BatchLevel = x._array.level
            if found is None or level.depth > found.depth:
                found = level
    return found


def inside_vmap() -> bool:
    """Whether the innermost transform around the running code is a `vmap`."""
    level = innermost()
    return level is not None and level.batch is not None


def check_support(cls: Any) -> None:
    """Refuse a function that says nothing, or two things, about batches."""
    if cls.setup_context is Rules.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            f"jacrev, ...), it must override the setup_context staticmethod. {_SEE}"
        )
    has_rule = cls.vmap is not Rules.vmap
    if cls.generate_vmap_rule and has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_SEE}"
        )
    if not cls.generate_vmap_rule and not has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            f"override and implement the vmap staticmethod or set generate_vmap_rule=True. {_SEE}"
        )


def call_members(cls: Any, args: tuple[Any, ...], batch: BatchLevel) -> Any:
    """What `forward` gives for a batch: a tensor or a tuple of them, batched."""
    insides: list[Any] = []
    dims: list[int | None] = []
    for x in args:
        hidden = isinstance(x, TensorBase) and type(x._array) is Batched and x._array.level is batch
        if hidden:
            insides.append(plain_inside(x._array.value))
            dims.append(0 if x._array.has_batch_dim else None)
        else:
            insides.append(x)
            dims.append(None)
    if cls.generate_vmap_rule:
        members = Members(cls, batch.size, tuple(d is not None for d in dims))
        found, out_dims = members.apply(*insides), 0
        return rewrap(found, out_dims, batch)
    info = VmapInfo(batch.size, batch.randomness)
    answer = cls.vmap(info, tuple(dims), *insides)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with "
            f"pytree structure compatible with the output. Got a {type(answer)} instead"
        )
    return rewrap(*answer, batch)


def rewrap(found: Any, out_dims: Any, batch: BatchLevel) -> Any:
    """What was computed one level down, as the batch's own: its dimension in front, hidden."""
    flat, spec = tree_flatten(found)
    dims = broadcast_prefix(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {tree_structure(out_dims)} but output has structure {spec}. "
            f"{_SEE}"
        )
    made: list[Any] = []
    for y, d in zip(flat, dims, strict=True):
        if not isinstance(y, TensorBase):
            made.append(y)
        elif d is None:
            made.append(wrap(Batched(y, batch, False)))
        else:
            front = y if d == 0 else functions["movedim"](y, d, 0)
            made.append(wrap(Batched(front, batch)))
    return tree_unflatten(made, spec)


# --- a rule made from the others ------------------------------------------------------------------
class MemberContext(FunctionCtx):
    """The context that the user's rules see for one member."""

    saved_tensors: tuple[Any, ...] = ()


class Members:
    """A custom function on batches, as a custom function of its own; see Note [A rule made from
    the others]. `flags` say which arguments have a batch in front."""

    def __init__(self, cls: Any, size: int, flags: tuple[bool, ...]) -> None:
        self.cls = cls
        self.flags = flags
        self.batch = BatchLevel(size, "error", True)
        self.context = MemberContext()
        self.saved: list[bool | None] = []  # which saved values have a batch; None: no tensor
        self.kept = False  # whether a context one level down has what the user's saved

    def apply(self, *args: Any) -> Any:
        return members_function(self.cls).apply(self, *args)

    # --- wrapping -----------------------------------------------------------------------------
    def block(self) -> Transform:
        self.batch.alive = True
        around = innermost()
        if around is not None and around.batch is not None:
            self.batch.randomness = around.batch.randomness
        return Transform("vmap", self.batch)

    def inside(self, x: Any, flag: bool) -> Any:
        return wrap(Batched(x, self.batch, flag)) if isinstance(x, TensorBase) else x

    def outside(self, y: Any) -> Any:
        return unbatch(y, self.batch) if isinstance(y, TensorBase) else y

    def hides(self, t: Any) -> bool:
        """Whether a tensor that the user's rules made differs from member to member."""
        array = t._array
        return type(array) is Batched and array.level is self.batch and bool(array.has_batch_dim)

    def beneath(self, t: Any) -> Any:
        array = t._array
        own = type(array) is Batched and array.level is self.batch
        return plain_inside(array.value) if own else t

    # --- the rules ----------------------------------------------------------------------------
    def forward(self, args: tuple[Any, ...]) -> Any:
        with self.block():
            inside = [self.inside(x, f) for x, f in zip(args, self.flags, strict=True)]
            found = self.cls.forward(*inside)
            self.context.needs_input_grad = (True,) * len(args)
            self.cls.setup_context(self.context, tuple(inside), found)
            if isinstance(found, tuple):
                return tuple([self.outside(y) for y in found])
            return self.outside(found)

    def again(self, args: tuple[Any, ...], output: Any) -> Members:
        """The same for a context of another level, in a batch around: the user's context is set up
        anew, with the arguments and the output as that level sees them."""
        other = Members(self.cls, self.batch.size, self.flags)
        other.batch.recording = self.batch.recording  # nothing is while contexts are set up
        with other.block():
            inside = [other.inside(x, f) for x, f in zip(args, self.flags, strict=True)]
            found: Any = other.inside(output, True)
            if isinstance(output, tuple):
                found = tuple([other.inside(y, True) for y in output])
            other.context.needs_input_grad = (True,) * len(args)
            self.cls.setup_context(other.context, tuple(inside), found)
        return other

    def keep(self, ctx: Any) -> None:
        """Save one level down what the user's context saved here."""
        self.kept = True
        mine = self.context
        kept = (*(mine.to_save or ()), *(mine.saved_for_forward or ()))
        self.saved = [self.hides(t) if isinstance(t, TensorBase) else None for t in kept]
        below = [self.beneath(t) if isinstance(t, TensorBase) else t for t in kept]
        count = len(mine.to_save or ())
        ctx.save_for_backward(*below[:count])
        ctx.save_for_forward(*(below[count:] or below))
        ctx.set_materialize_grads(mine.materialize_grads)
        mine.to_save = mine.saved_for_forward = None

    def restore(self, saved: tuple[Any, ...]) -> None:
        self.context.saved_tensors = tuple(
            [t if f is None else self.inside(t, f) for t, f in zip(saved, self.saved)]
        )

    def backward(self, ctx: Any, gs: tuple[Any, ...]) -> Any:
        try:
            with self.block():
                self.restore(ctx.saved_tensors)
                self.context.needs_input_grad = ctx.needs_input_grad[1:]
                found = self.cls.backward(self.context, *[self.inside(g, True) for g in gs])
                if not isinstance(found, tuple):
                    found = (found,)
                return (None, *[self.summed(ctx, i, g) for i, g in enumerate(found)])
        finally:
            self.context.saved_tensors = ()

    def summed(self, ctx: Any, i: int, g: Any) -> Any:
        """A gradient, as it is one level down: summed, if all members share the input."""
        if not isinstance(g, TensorBase) or i >= len(self.flags):
            return g
        shape, _ = ctx.shapes_below[i]
        if self.flags[i]:
            return self.outside(fit(g, shape[1:], None))
        g = fit(g, shape, None)
        if self.hides(g):
            return v.reduce_sum(self.beneath(g), (0,), False)
        return self.beneath(g) * self.batch.size

    def jvp(self, ctx: Any, ts: tuple[Any, ...]) -> Any:
        try:
            with self.block():
                self.restore(ctx.saved_tensors)
                inside = [
                    t if t is None else self.inside(t, f)
                    for t, f in zip(ts, self.flags, strict=True)
                ]
                found = self.cls.jvp(self.context, *inside)
                if isinstance(found, tuple):
                    return tuple([self.outside(t) for t in found])
                return self.outside(found)
        finally:
            self.context.saved_tensors = ()


_made: list[Any] = []


def members_function(cls: Any) -> Any:
    """The function one level down, under a name of its own: that of nodes and errors."""
    made = cls.__dict__.get("_vmapped_cls")
    if made is None:
        base = base_function()
        made = cls._vmapped_cls = type(base)(f"Vmapped{cls.__name__}", (base,), {})
    return made


def base_function() -> Any:
    """What these functions do; made when first needed, since `function` imports this file."""
    if _made:
        return _made[0]
    from rushlight.autograd.function import Function

    class BatchedFunction(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(members: Any, *args: Any) -> Any:
            return members.forward(args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            members, *args = inputs
            if members.kept:
                members = members.again(tuple(args), output)
            ctx.members = members
            ctx.shapes_below = [
                (x._array.shape, None) if isinstance(x, TensorBase) else ((), None) for x in args
            ]
            members.keep(ctx)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            return ctx.members.backward(ctx, gs)

        @staticmethod
        def jvp(ctx: Any, _: Any, *ts: Any) -> Any:
            return ctx.members.jvp(ctx, ts)

    _made.append(BatchedFunction)
    return BatchedFunction
