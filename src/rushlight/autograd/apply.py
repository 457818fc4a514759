"""Calling a custom function, in four steps that stand alone: `begin` a context, `compute` the
outputs, `settle` their history, `keep` what was saved. `call` takes them one after the other.

What wraps the arguments first (a batch, a level) calls the steps
itself: each takes the tensors as it is given them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.autograd.context import Rules
from rushlight.core.grad_mode import grad_enabled, state
from rushlight.core.graph import DIFFERENTIABLE, TensorBase, View, place, requires_grad, wrap_as
from rushlight.core.observer import observer
from rushlight.core.saved.saved_tensor import save_tensor
from rushlight.core.transforms.forward_ad import disable_forward_ad
from rushlight.core.transforms.lift import lift
from rushlight.core.transforms.stack import innermost, stack
from rushlight.core.views.history import edge_of_view, set_history
from rushlight.core.views.inplace import check_writable, rebase
from rushlight.dtypes import type_name

__all__ = ["begin", "bind", "call", "compute", "keep", "settle"]


def call(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls.apply(*args, **kwargs)`; a profiler shows it as one event."""
    if observer.profile is None:
        return called(cls, args, kwargs)
    from rushlight.autograd.profiler import record_function

    with record_function(cls.__name__):
        return called(cls, args, kwargs)


def called(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if cls.setup_context is not Rules.setup_context:
        args = bind(cls, args, kwargs)
    elif kwargs:
        args = by_position(cls, args, kwargs)
    if stack.batches != 0:
        from rushlight.autograd.batched_function import batch_of, check_support, inside_vmap

        batch = batch_of(args)
        if batch is not None or inside_vmap():
            check_support(cls)
        if batch is not None:
            return call_batched(cls, lift(args))
    ctx = begin(cls, args)
    output = compute(cls, ctx, args)
    return conclude(cls, ctx, args, output)


def call_batched(cls: Any, args: tuple[Any, ...]) -> Any:
    """`call` with arguments of which some are batched: computed one level down, recorded there and
    here."""
    from rushlight.autograd.batched_function import batch_of, call_members

    batch = batch_of(args)
    assert batch is not None
    ctx = begin(cls, args)
    output = call_members(cls, args, batch)
    if is_recorded(ctx) or stack.tangents != 0:
        with disable_forward_ad(False):
            cls.setup_context(ctx, args, output)
    return conclude(cls, ctx, args, output)


def conclude(cls: Any, ctx: Any, args: tuple[Any, ...], output: Any) -> Any:
    """What `apply` returns for the `output` of `compute`: with history, tangents, and all saved."""
    several = isinstance(output, tuple)
    outputs = output if several else (output,)
    kept = to_keep(ctx)
    dirty = marked_dirty(ctx) if ctx.dirty_tensors is not None else ()
    fixed = marked_fixed(ctx) if ctx.non_differentiable is not None else ()
    as_they_are = ids(kept) if cls.setup_context is not Rules.setup_context else NOBODY
    made = settle(ctx, args, outputs, dirty, fixed, as_they_are)
    if stack.tangents != 0:
        from rushlight.autograd.forward_ad import push_custom

        push_custom(ctx, cls, args, outputs, made, dirty, fixed, several)
    ctx.saved_for_forward = None
    keep(ctx)
    return tuple(made) if several else made[0]


# --- before -----------------------------------------------------------------------------------
def bind(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, with the defaults of `forward`."""
    forward = cls.forward
    known = cls.__dict__.get("_signature")
    if known is None or known[0] is not forward:
        signature = inspect.signature(forward)
        kinds = {p.kind for p in signature.parameters.values()}
        simple = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        known = cls._signature = forward, signature, len(signature.parameters) if simple else -1
    if len(args) == known[2] and not kwargs:  # as it nearly always is
        return args
    bound = known[1].bind(*args, **kwargs)
    bound.apply_defaults()
    for name in bound.kwargs:
        raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    found: tuple[Any, ...] = bound.args
    return found


def by_position(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments by keyword put in their places, where tensors have gradients, for a `forward` that
    takes the context first. Defaults stay defaults, and are no inputs."""
    names = [
        p.name
        for p in inspect.signature(cls.forward).parameters.values()
        if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ][1 + len(args) :]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    last = max(names.index(name) for name in kwargs)
    for position, name in enumerate(names[:last]):
        if name not in kwargs:
            raise TypeError(
                f"forward() missing required argument: '{name}' (position {len(args) + position})"
            )
    return (*args, *[kwargs[name] for name in names[: last + 1]])


def node_class(cls: Any) -> Any:
    """The class of a function's nodes: inside a derivative of `func` it has a name of its own."""
    level = innermost()
    if level is None or level.batch is not None:
        return cls._backward_cls
    made = cls.__dict__.get("_generated_cls")
    if made is None:
        title = f"{cls.__name__}GeneratedBackward"
        made = type(title, (cls._backward_cls,), {"__module__": "torch.autograd.function"})
        cls._generated_cls = made
    return made


def begin(cls: Any, args: tuple[Any, ...]) -> Any:
    """A context for a call with these arguments: with edges, if it is to be recorded."""
    ctx = cls._backward_cls() if state.level == 0 else node_class(cls)()
    needs: list[bool] = []
    positions: list[int] = []
    for i, x in enumerate(args):
        if isinstance(x, TensorBase):
            positions.append(i)
            needs.append(x.requires_grad)  # type: ignore[attr-defined]
        else:
            needs.append(False)
    ctx.needs_input_grad = tuple(needs)
    ctx._argument_count = len(args)
    ctx._tensor_positions = tuple(positions)
    if True in needs and grad_enabled():
        connect(ctx, [args[i] for i in positions])
    return ctx


def connect(ctx: Any, tensors: list[Any]) -> None:
    """Give the node its edges, one a tensor argument, and the user's line."""
    nexts: list[Any] = []
    nrs: list[int] = []
    for t in tensors:
        if t.requires_grad:
            nexts.append(edge_of_view(t) if t._view is not None else (t._node or t))
            nrs.append(int(t._output_nr))
        else:
            nexts.append(None)
            nrs.append(0)
    ctx._next_edges = tuple(nexts)
    ctx._output_nrs = tuple(nrs) if any(nrs) else None
    ctx._wanted_metas = tuple([(t._array.shape, t._array.dtype) for t in tensors])
    ctx._fits_as_is = True  # it fits its gradients itself
    place(ctx)


def is_recorded(ctx: Any) -> bool:
    """Whether the call of this context leaves a history."""
    return bool(ctx._seq_nr)


def compute(cls: Any, ctx: Any, args: tuple[Any, ...]) -> Any:
    """Run `forward` (and `setup_context`), unrecorded and without tangents."""
    with disable_forward_ad(False):
        if cls.setup_context is Rules.setup_context:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output


NOBODY: frozenset[int] = frozenset()


def ids(tensors: Sequence[Any]) -> frozenset[int]:
    """Who these objects are, for asking whether another is one of them."""
    return frozenset(map(id, tensors)) if tensors else NOBODY


# --- what the user marked -------------------------------------------------------------------------
def group(ctx: Any, name: str) -> tuple[Any, ...]:
    """What is in an attribute of the context that is to hold a tuple."""
    found: Any = getattr(ctx, name)
    if found is None:
        return ()
    if not isinstance(found, tuple):
        raise RuntimeError(
            f"autograd internal error: {name} attribute is expected to be a tuple but is "
            f"{type_name(found)}"
        )
    return found


def to_keep(ctx: Any) -> tuple[Any, ...]:
    """The tensors that `save_for_backward` and `save_for_forward` were given."""
    kept = group(ctx, "to_save")
    if is_recorded(ctx):
        for i, t in enumerate(kept):
            if t is not None and not isinstance(t, TensorBase):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type "
                    f"{type_name(t)}"
                )
    return kept if ctx.saved_for_forward is None else (*kept, *ctx.saved_for_forward)


def marked_dirty(ctx: Any) -> tuple[Any, ...]:
    """The inputs that `forward` wrote in place: their versions are raised once more."""
    dirty = group(ctx, "dirty_tensors")
    ctx.dirty_tensors = None
    for i, t in enumerate(dirty):
        if not isinstance(t, TensorBase):
            raise RuntimeError(
                f"mark_dirty can only accept variables, but argument {i} is of type {type_name(t)}"
            )
        t._storage.written()
    return dirty


def marked_fixed(ctx: Any) -> tuple[Any, ...]:
    """The outputs that have no gradient."""
    fixed = group(ctx, "non_differentiable")
    ctx.non_differentiable = None
    for t in fixed:
        if not isinstance(t, TensorBase):
            raise RuntimeError(
                f"mark_non_differentiable only accepts variable arguments, but got {type_name(t)}"
            )
    return fixed


# --- after ----------------------------------------------------------------------------------------
def settle(
    ctx: Any, args: tuple[Any, ...], outputs: tuple[Any, ...], dirty: tuple[Any, ...],
    fixed: tuple[Any, ...], as_they_are: frozenset[int],
) -> list[Any]:  # fmt: skip
    """The outputs as the caller gets them, with `ctx` as their history where they have one.

    `as_they_are` holds the ids of tensors that must not be replaced, because they were saved.
    """
    inputs = ids([args[i] for i in ctx._tensor_positions])
    written, constant = ids(dirty), ids(fixed)
    records = is_recorded(ctx)
    if records:
        note_outputs(ctx, outputs)
    made: list[Any] = []
    differentiable = 0
    for nr, o in enumerate(outputs):
        if not isinstance(o, TensorBase):
            made.append(o)
            continue
        me = id(o)
        if me in inputs and me not in written and me in as_they_are:
            refuse_saved_input(records, o)
        if records and o._array.dtype.kind in DIFFERENTIABLE and me not in constant:
            differentiable += 1
            if me in written:
                rewrite(ctx, args, o, nr, me in inputs, len(outputs) > 1)
            t = o if me in written else output_with_history(ctx, o, nr, me in inputs)
        else:
            t = output_without_history(o, me in inputs, me in written)
        if t._view is not None and me not in written:
            t._view.how = "custom"
        made.append(t)
    if differentiable > 1:
        for t in made:
            if isinstance(t, TensorBase) and t._view is not None:
                t._view.how = "multi-output"
    if written and not written <= ids(outputs):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. "
            "The inputs that are modified inplace must all be outputs of the Function."
        )
    return made


def note_outputs(ctx: Any, outputs: tuple[Any, ...]) -> None:
    """Note shape, dtype and kind of array of each output, for gradients that do not arrive."""
    metas = [
        (o._array.shape, o._array.dtype, v.empty(o._array, (0,), o._array.dtype))
        if isinstance(o, TensorBase)
        else None
        for o in outputs
    ]
    if len(metas) == 1:
        ctx._only_meta = metas[0]
    else:
        ctx._output_metas = metas


def refuse_saved_input(records: bool, o: Any) -> None:
    """Where `setup_context` saved an input that `forward` returned, nobody can tell which of the
    two, with their different histories, was meant."""
    if records or not o.requires_grad:
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is "
            "not supported if you override setup_context. You should return and save a view of the "
            "input instead, e.g. with x.view_as(x) or setup ctx inside the forward function itself."
        )


def output_with_history(ctx: Any, o: Any, nr: int, is_input: bool) -> TensorBase:
    """An output that has gradients: output `nr` of the node `ctx`."""
    if is_input:
        o = same_view(o)
        o._node, o._output_nr = ctx, nr
    else:
        set_history(o, ctx, nr)
        if o._view is not None:
            o._view.version = o._storage.version
    found: TensorBase = o
    return found


def output_without_history(o: Any, is_input: bool, is_dirty: bool) -> TensorBase:
    """An output that has none, or of a call that is not recorded."""
    if not o.requires_grad:
        if is_input and not is_dirty:
            o = same_view(o)
    elif is_input:
        o = o.detach()
    elif o._view is None:
        o.detach_()
    # else it stays as a view made under no_grad does: asking, because what it looks into does
    found: TensorBase = o
    return found


def rewrite(
    ctx: Any, args: tuple[Any, ...], o: Any, nr: int, is_input: bool, several: bool
) -> None:
    """An input that forward wrote in place: it gets the node as its new history."""
    if o._node is None and requires_grad(o):
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation."
        )
    if not is_input:
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
            "have been mutated should be passed to ctx.mark_dirty().",
            UserWarning,
            stacklevel=6,
        )
    view = o._view
    if view is not None and several:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your "
            "Function cannot return more than one Tensor. This is not supported by the current "
            "autograd engine. You should either make sure the input is not a view (using .clone() "
            "for example) or make your Function only return one Tensor (potentially splitting it "
            "into two Functions: one doing the inplace that returns a single Tensor and a second "
            "one that does the other operations). You can ask on the forum "
            "https://discuss.pytorch.org/ if you need help to do this change."
        )
    o._accumulated_grad = None  # it was that of the values written over
    if not is_input:
        output_with_history(ctx, o, nr, False)
        if view is not None:
            view.how = "custom"
        return
    check_writable(o, False)
    if view is None:
        set_history(o, ctx, nr)
    else:
        put_first(ctx, args, o)
        rebase(o, view, ctx)
        view.version = -1  # whatever it was: its node is another now
        edge_of_view(o)  # renews it, while that is allowed


def put_first(ctx: Any, args: tuple[Any, ...], o: Any) -> None:
    """Let the edge of the argument `o` be the node's first: that of the region written, to which a
    `CopySlices` adds the rest of the base."""
    at = next(k for k, i in enumerate(ctx._tensor_positions) if args[i] is o)
    if at > 0:
        order = [at, *[k for k in range(len(ctx._tensor_positions)) if k != at]]
        ctx._tensor_positions = tuple([ctx._tensor_positions[k] for k in order])
        ctx._wanted_metas = tuple([ctx._wanted_metas[k] for k in order])
        ctx._next_edges = tuple([ctx._next_edges[k] for k in order])
        if ctx._output_nrs is not None:
            ctx._output_nrs = tuple([ctx._output_nrs[k] for k in order])


def same_view(o: Any) -> Any:
    """A view of all of `o`, unrecorded: an input that is returned keeps its own history."""
    t = wrap_as(o._array, o._storage)
    before = o._view
    if not o._storage.inference:
        base = o if before is None else before.base
        t._view = View(base, (), "custom", o._storage.version, before)
    return t


def keep(ctx: Any) -> None:
    """Turn what `save_for_backward` was given into records without cycles."""
    kept = ctx.to_save
    ctx.to_save = None
    if kept and is_recorded(ctx):
        ctx._records = tuple([None if t is None else save_tensor(t, ctx) for t in kept])
