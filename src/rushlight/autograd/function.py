"""Your own ops: `Function` with static `forward` and `backward`, and the context they share.

Note [The context is the node]
    As in PyTorch, the `ctx` that `forward` and `backward` receive is the node itself: `y.grad_fn`
    is that object. It keeps saved tensors as arrays and edges (`Saved`), never the tensors the
    function made, so no cycle arises.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Storage, TensorBase, View, title_of, wrap, wrap_as
from rushlight.core.inplace import check_writable, rebase, set_history
from rushlight.core.modes import enter, grad_enabled, inference_enabled, leave, next_number
from rushlight.core.node import GraphNode, accumulate_of, describe_freed, fit, with_history
from rushlight.core.packed import Packed, open_packed, pack, saving_now
from rushlight.core.record import normal, slots
from rushlight.core.views import edge_of_view
from rushlight.core.where import Where, caller
from rushlight.errors import sentence
from rushlight.tensor import Tensor

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "NestedIOFunction",
    "once_differentiable",
]


class Saved:
    """A tensor kept for backward: leaves as they are, others as array and edge, or packed by the
    hooks in force. Whoever keeps it is its `owner`: a node, or None."""

    __slots__ = (
        "array", "edge", "memory", "nr", "output", "packed", "tangent", "tensor", "version",
    )  # fmt: skip

    def __init__(self, t: Any, owner: Node | None) -> None:
        self.memory: Storage | None = t.memory
        self.version: int = t.memory.version
        edge: Any = edge_of_view(t) if t.as_view is not None else t.node
        self.output = edge is not None and edge is owner
        self.nr = int(t.index)
        self.array = t.array
        self.tensor: Any = None
        self.edge: Any = None
        self.packed: Packed | None = None
        self.tangent: Any = t.tangent
        if edge is None or isinstance(edge, TensorBase):
            self.tensor = t
        elif not self.output:
            self.edge = edge
        saving = saving_now()
        if saving is not None and saving.pack is not None:
            self.pack(saving.pack, saving.unpack, t)

    def pack(self, pack_hook: Any, unpack_hook: Any, t: Any) -> None:
        """Keep what a hook makes of the tensor, and no longer the tensor."""
        self.packed = pack(pack_hook, unpack_hook, t)
        leaf = self.tensor
        if leaf is not None and leaf.leaf:
            self.edge = accumulate_of(leaf)
        self.tensor = self.array = self.memory = None

    def unpack(self, owner: Node | None) -> Any:
        """The tensor again, with the history it had; raises if it was written since."""
        if self.packed is not None:
            data = open_packed(self.packed)
            return with_history(data, owner if self.output else self.edge, self.nr)
        memory = self.memory
        assert memory is not None
        if memory.version != self.version:
            raise RuntimeError(self.overwritten(owner, memory))
        if self.tensor is not None:
            return self.tensor
        t = wrap_as(self.array, memory)
        t.node = owner if self.output else self.edge
        t.index = self.nr
        t.tangent = self.tangent
        return t

    def overwritten(self, owner: Node | None, memory: Storage) -> str:
        t = wrap(self.array)
        maker = owner if self.output else self.edge
        which = "" if maker is None else f", which is output {self.nr} of {title_of(maker)},"
        saved, copied = "an argument of a checkpoint", "give the checkpoint a copy: `x.clone()`."
        if owner is not None:
            saved = f"saved for {type(owner).__name__} at {Where(owner.code, owner.offset)}"
            copied = "save a copy: `ctx.save_for_backward(x.clone())`."
        return sentence(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{t.type()} {list(self.array.shape)}]{which} is at version "  # type: ignore[attr-defined]
            f"{memory.version}; expected version {self.version} instead.",
            f"{saved}\noverwritten at {Where(memory.code, memory.offset)}",
            f"Write the second line out of place, or {copied}",
        )


class FunctionCtx:
    """What a `Function`'s static methods share: saved tensors, flags, and your own attributes."""

    to_save: Any = None
    saved_for_forward: Any = None  # until `jvp` has run
    dirty_tensors: Any = None
    non_differentiable: Any = None
    materialize_grads: bool = True
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs for `backward`; read them there from `ctx.saved_tensors`.

        >>> import rushlight as torch
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * g
        >>> x = torch.tensor(3., requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor(6.)
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        for t in tensors:
            if not isinstance(t, TensorBase) and t is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs `forward` wrote in place; each must also be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Gone from PyTorch since 0.4; kept for its warning."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient (indices, masks)."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """With False, `backward` gets None instead of zeros for outputs nobody used."""
        self.materialize_grads = value


class BackwardCFunction(FunctionCtx, GraphNode):
    """The node of a custom function; see Note [The context is the node]."""

    _forward_cls: Any = None

    def __init__(self) -> None:
        self.records: Any = ()
        self.only: Any = None  # (shape, dtype, like) of the output, where there is one
        self.wanted: tuple[Any, ...] = ()  # (shape, dtype) of the tensors among the arguments
        self.positions: tuple[int, ...] = ()  # of the tensors among the arguments
        self.arguments: int = 0

    def name(self) -> str:
        return type(self).__name__

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept."""
        if self.freed is not None:
            raise RuntimeError(describe_freed(self))
        if self.saved_for_forward is not None:
            return tuple(self.saved_for_forward)
        if self.to_save is not None:  # still inside forward
            return tuple(self.to_save)
        return tuple(None if r is None else r.unpack(self) for r in self.records)

    saved_variables = saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self.freed is not None:
            raise RuntimeError(describe_freed(self))
        return tuple(self._raw(i) for i in range(len(self.records)))

    def _saved(self, position: int) -> Any:
        if self.freed is not None:
            raise RuntimeError(describe_freed(self))
        record = self.records[position]
        return None if record is None else record.unpack(self)

    def _kept_value(self, position: int) -> Any:
        record = None if self.freed is not None else self.records[position]
        if record is None or record.packed is not None:
            return None if record is None else record.packed
        return wrap_as(record.array, record.memory)

    def _only_output(self) -> Any:
        return self.only

    def _keep_packed(self, position: int, hook: Any, unpack_hook: Any) -> None:
        record = self.records[position]
        record.pack(hook, unpack_hook, wrap_as(record.array, record.memory))

    def release(self, where: Where) -> None:
        if self.records:
            self.records = ()
            self.freed = where

    def apply(self, *grads: Any) -> Any:
        """Call the user's `backward` (or `vjp`)."""
        cls = self._forward_cls
        backward_fn, vjp_fn = cls.backward, cls.vjp
        if backward_fn is not Function.backward and vjp_fn is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        user_fn = vjp_fn if vjp_fn is not Function.vjp else backward_fn
        return user_fn(self, *grads)

    def run(self, g: Any, tensors: bool) -> Any:
        gs = list(g) if self.outs is not None else [g]
        metas = self.outs if self.outs is not None else [self.only]
        for i, x in enumerate(gs):
            if x is None:
                if self.materialize_grads and metas[i] is not None:
                    shape, dtype, like = metas[i]
                    gs[i] = wrap(v.full(like, shape, 0, dtype))
            elif not isinstance(x, TensorBase):
                gs[i] = wrap(normal(x))
        mode = enter(tensors and grad_enabled(), False)
        try:
            outs = self.apply(*gs)
        finally:
            leave(mode)
        return self.sorted_out(outs, tensors)

    def sorted_out(self, outs: Any, tensors: bool) -> list[Any]:
        """What `backward` returned, checked, for the tensors among the arguments."""
        name = type(self).__name__
        if not isinstance(outs, tuple):
            outs = (outs,) if not isinstance(outs, list) else tuple(outs)
        expected = self.arguments
        if len(outs) > expected and all(x is None for x in outs[expected:]):
            outs = outs[:expected]
        if len(outs) != expected:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {expected}, "
                f"got {len(outs)})"
            )
        found: list[Any] = []
        places = frozenset(self.positions)
        for i, x in enumerate(outs):
            if i not in places:
                if x is not None:
                    raise RuntimeError(
                        f"function {name} returned a gradient different from None at position "
                        f"{i + 1}, but the corresponding forward input was not a Variable"
                    )
                continue
            k = len(found)
            if x is None or self.nexts[k] is None:
                found.append(None)
                continue
            if not isinstance(x, TensorBase):
                raise TypeError(
                    f"function {name} returned an invalid gradient at index {i}: expected Variable "
                    f"or None (got {type(x).__name__})"
                )
            shape, dtype = self.wanted[k]
            self.check_shape(x.array.shape, shape, i)
            t = fit(x, shape, dtype)
            found.append(t if tensors else t.array)
        return found

    def check_shape(self, have: tuple[int, ...], want: tuple[int, ...], i: int) -> None:
        fits = len(have) >= len(want) and all(
            w in (h, 1) for h, w in zip(have[len(have) - len(want) :], want, strict=True)
        )
        if not fits:
            raise RuntimeError(
                f"Function {type(self).__name__} returned an invalid gradient at index {i} - got "
                f"{list(have)} but expected shape compatible with {list(want)}"
            )

    def __getstate__(self) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


class FunctionMeta(type):
    """Makes, for each Function, the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = type(
            name + "Backward",
            (BackwardCFunction,),
            {"_forward_cls": cls, "__module__": "torch.autograd.function"},
        )
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    """Base class of your own differentiable operations.

    Define `forward` and `backward` as static methods, and call `apply`:

    >>> import rushlight as torch
    >>> class Exp(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    >>> x = torch.zeros(2, requires_grad=True)
    >>> Exp.apply(x)
    tensor([1., 1.], grad_fn=<ExpBackward>)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: `forward(ctx, *args)`, or `forward(*args)` with `setup_context`."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what `backward` needs, where `forward` takes no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient an argument of `forward`, from one gradient an output."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs from tangents of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the function and record it."""
        return call(cls, args, kwargs)


def call(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls.apply(*args)`: run forward without recording, then make its node the history."""
    ctx = cls._backward_cls()
    with_setup = cls.setup_context is not Function.setup_context
    if with_setup and kwargs:
        import inspect

        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        args, kwargs = bound.args, {}
    needs = tuple(isinstance(x, TensorBase) and x.requires_grad for x in args)  # type: ignore[attr-defined]
    executable = grad_enabled() and any(needs)
    ctx.needs_input_grad = needs
    ctx.arguments = len(args)
    ctx.positions = tuple(i for i, x in enumerate(args) if isinstance(x, TensorBase))
    tensors = [args[i] for i in ctx.positions]
    if executable:
        connect(ctx, tensors)
    mode = enter(False, inference_enabled())
    mode.dual = False
    try:
        if with_setup:
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args, **kwargs)
    finally:
        leave(mode)
    several = isinstance(output, (tuple, list))
    outputs = tuple(output) if several else (output,)
    if not several and not isinstance(output, TensorBase) and output is not None:
        raise TypeError(
            f"{cls.__name__}.forward: expected Tensor or tuple of Tensor (got "
            f"{type(output).__name__}) for return value 0"
        )
    dirty, fixed = ctx.dirty_tensors or (), ctx.non_differentiable or ()
    made = attach(ctx, tensors, outputs, executable)
    if slots.levels != 0:
        from rushlight.autograd.forward_ad import push_custom

        push_custom(ctx, cls, args, outputs, made, dirty, fixed)
    ctx.saved_for_forward = None
    save(ctx, tensors, outputs, made, executable)
    return tuple(made) if several else made[0]


def connect(ctx: Any, tensors: list[Any]) -> None:
    """Give the node its edges, one a tensor argument, and the user's line."""
    nexts: list[Any] = []
    nrs: list[int] = []
    for t in tensors:
        if t.requires_grad:
            nexts.append(edge_of_view(t) if t.as_view is not None else (t.node or t))
            nrs.append(int(t.index))
        else:
            nexts.append(None)
            nrs.append(0)
    ctx.nexts = tuple(nexts)
    ctx.nrs = tuple(nrs) if any(nrs) else None
    ctx.wanted = tuple((t.array.shape, t.array.dtype) for t in tensors)
    ctx.number = next_number()
    frame = caller()
    if frame is not None:
        ctx.code, ctx.offset = frame.f_code, frame.f_lasti


def attach(ctx: Any, tensors: list[Any], outputs: tuple[Any, ...], executable: bool) -> list[Any]:
    """The outputs as the caller gets them, with `ctx` as their history where they have one."""
    dirty = ctx.dirty_tensors or ()
    fixed = ctx.non_differentiable or ()
    ctx.dirty_tensors = ctx.non_differentiable = None
    for t in dirty:
        if not any(t is o for o in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
    metas = [
        (o.array.shape, o.array.dtype, v.empty(o.array, (0,), o.array.dtype))
        if isinstance(o, TensorBase)
        else None
        for o in outputs
    ]
    made: list[Any] = []
    for nr, o in enumerate(outputs):
        if not isinstance(o, TensorBase):
            made.append(o)
            continue
        is_input = any(o is t for t in tensors)
        is_dirty = any(o is t for t in dirty)
        floating = o.array.dtype.kind in "fcVW"
        asks = executable and floating and not any(o is t for t in fixed)
        if is_dirty:
            made.append(rewritten(ctx, o, nr, asks))
        elif is_input:
            made.append(returned_as_is(ctx, o, nr, asks))
        else:
            if o.node is ctx:  # returned twice: the same object, the last of the outputs
                o.index = nr
                made.append(o)
                continue
            if o.node is not None or o.leaf:
                view = o.as_view
                o = wrap_as(o.array, o.memory)
                o.as_view = view
            if asks:
                if o.as_view is not None:
                    o.as_view.how = "custom"
                o.node, o.index, o.leaf = ctx, nr, False
            made.append(o)
    if len(outputs) > 1:
        ctx.outs = metas
    else:
        ctx.only = metas[0]
    return made


def rewritten(ctx: Any, o: Any, nr: int, asks: bool) -> Any:
    """An input that forward wrote in place: it gets the node as its new history."""
    o.memory.written()  # once more than the writes themselves, as in PyTorch
    if asks:
        check_writable(o, False)
        if o.as_view is not None:
            rebase(o, o.as_view, ctx)
        else:
            set_history(o, ctx, nr)
    return o


def returned_as_is(ctx: Any, o: Any, nr: int, asks: bool) -> Any:
    """An input returned untouched: a view of it, so that the input keeps its own history."""
    t = wrap_as(o.array, o.memory)
    base = o if o.as_view is None else o.as_view.base
    ops = () if o.as_view is None else o.as_view.ops
    t.as_view = View(base, ops, "custom" if asks else "no_grad", o.memory.version)
    if asks:
        t.node, t.index = ctx, nr
    return t


def save(
    ctx: Any, tensors: list[Any], outputs: tuple[Any, ...], made: list[Any], executable: bool
) -> None:
    """Turn what `save_for_backward` was given into records without cycles."""
    kept = ctx.to_save
    ctx.to_save = None
    if kept is None or not executable:
        return
    records: list[Any] = []
    for t in kept:
        if t is None:
            records.append(None)
            continue
        if not isinstance(t, TensorBase):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(records)} is of "
                f"type {type(t).__name__}"
            )
        for o, m in zip(outputs, made, strict=True):
            if o is t and isinstance(m, TensorBase):
                t = m
        records.append(Saved(t, ctx))
    ctx.records = tuple(records)


class DelayedError(Function):
    """Passes values on, and raises when someone differentiates through them."""

    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        return tuple(x.clone() if isinstance(x, Tensor) else x for x in xs)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `backward`: it cannot itself be differentiated, and says so if one tries."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        mode = enter(False, False)
        try:
            outputs = fn(ctx, *args)
        finally:
            leave(mode)
        if not grad_enabled():
            return outputs
        if not any(isinstance(x, TensorBase) and x.requires_grad for x in args):  # type: ignore[attr-defined]
            return outputs
        several = isinstance(outputs, tuple)
        found = outputs if several else (outputs,)
        asking = [x.detach().requires_grad_() if isinstance(x, Tensor) else x for x in found]
        result = DelayedError.apply(*asking)
        return result if several else result[0]

    return wrapper


class NestedIOFunction(Function):
    """Kept for imports of old code; use `Function` with tuples instead."""
