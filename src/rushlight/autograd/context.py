"""The context of a custom function, which is also its node: what it keeps, and how its rule runs.

Note [The context is the node]
    As in PyTorch, the `ctx` that `forward` and `backward` receive is the node itself: `y.grad_fn`
    is that object. It keeps saved tensors as arrays and edges (`core.saved.saved_tensor`), never
    the tensors the function made, so no cycle arises.

Note [Names on the context]
    Users put attributes of their own on `ctx`. What it has itself is therefore either one of
    PyTorch's names or begins with an underscore, and its work is done by functions, not methods.
    `where`, which PyTorch does not have, gives way to an attribute of that name.
"""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import settled
from rushlight.core.call_site import Where, WhereMade
from rushlight.core.engine.engine import current_task
from rushlight.core.grad_mode import grad_enabled, within
from rushlight.core.graph import DIFFERENTIABLE, TensorBase, normal, wrap, wrap_alias, wrap_as
from rushlight.core.node import fit
from rushlight.core.node_api import GraphNode
from rushlight.core.saved.errors import describe_freed
from rushlight.core.transforms.stack import stack
from rushlight.dtypes import type_name

__all__ = ["BackwardCFunction", "FunctionCtx", "Rules"]


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
        """Keep tensors for `jvp`; read them there from `ctx.saved_tensors`.

        >>> from rushlight.autograd import forward_ad
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * x
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * t
        >>> with forward_ad.dual_level():
        ...     y = Square.apply(forward_ad.make_dual(torch.tensor(3.), torch.tensor(1.)))
        ...     print(forward_ad.unpack_dual(y).tangent)
        tensor(6.)
        """
        for t in tensors:
            if not isinstance(t, TensorBase) and t is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs `forward` wrote in place; each must also be returned.

        >>> class Double_(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.mark_dirty(x)
        ...         return x.mul_(2)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 1
        >>> Double_.apply(y) is y
        True
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 2.])
        """
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
        """Say which outputs have no gradient (indices, masks).

        >>> class Sort(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         values, order = x.sort()
        ...         ctx.mark_non_differentiable(order)
        ...         ctx.save_for_backward(order)
        ...         return values, order
        ...     @staticmethod
        ...     def backward(ctx, g, _):
        ...         return torch.zeros_like(g).index_add(0, ctx.saved_tensors[0], g)
        >>> values, order = Sort.apply(torch.tensor([3., 1.], requires_grad=True))
        >>> values.requires_grad, order.requires_grad
        (True, False)
        """
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """With False, `backward` gets None instead of zeros for outputs nobody used.

        >>> class Both(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.set_materialize_grads(False)
        ...         return x * 2, x * 3
        ...     @staticmethod
        ...     def backward(ctx, a, b):
        ...         print(a, b)
        >>> Both.apply(torch.ones(2, requires_grad=True))[0].sum().backward()
        tensor([1., 1.]) None
        """
        if value is not True and value is not False:
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got (), but "
                "expected (bool)"
            )
        self.materialize_grads = value


def records_beneath() -> bool:
    """Whether a backward pass is going on that records what is inside batched arrays, and not
    what it does itself (`engine.backward`)."""
    if stack.batches == 0:
        return False
    current = current_task()
    return current is not None and current.record and not current.tensors


def without_history(t: Any) -> Any:
    """The same values without the history they have outside their array; tangents stay."""
    if t is None:
        return None
    made = wrap_alias(t._array, t)
    made._tangent = t._tangent
    return made


class Rules(FunctionCtx):
    """What a `Function` consists of, each part refusing until you write it."""

    clear_saved_tensors_on_access = False  # True: `saved_tensors` may be read once, and is freed
    boxed_grads_call = False  # True: `backward(ctx, grads)` gets one list, to empty as it goes
    generate_vmap_rule = False  # True: `vmap` runs `forward` and `backward` themselves, batched

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
    def backward(ctx: Any, *grad_outputs: Any, **kwargs: Any) -> Any:
        """One gradient an argument of `forward`, from one gradient an output."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **kwargs: Any) -> Any:
        """Tangents of the outputs from tangents of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for a batch of arguments, and where their batch dimension is:
        `(output, out_dims)`."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )


class BackwardCFunction(FunctionCtx, GraphNode):
    """The node of a custom function; see Note [The context is the node]."""

    where = WhereMade()

    _forward_cls: Any = None
    _autograd_function_id: int = -1

    def __init__(self) -> None:
        self._records: Any = ()
        self._records_cleared = False  # the records were read and let go
        self._only_meta: Any = None  # (shape, dtype, like) of the output, where there is one
        self._wanted_metas: tuple[Any, ...] = ()  # (shape, dtype) of the tensor arguments
        self._tensor_positions: tuple[int, ...] = ()  # of the tensor arguments
        self._argument_count: int = 0

    def name(self) -> str:
        return type(self).__name__

    # --- what it keeps ------------------------------------------------------------------------
    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; in `jvp`, what `save_for_forward` did."""
        if self.saved_for_forward is not None:
            return tuple(self.saved_for_forward)
        check_not_freed(self)
        found = tuple([None if r is None else r.unpack(self) for r in self._records])
        self.maybe_clear_saved_tensors()
        return tuple(map(without_history, found)) if records_beneath() else found

    saved_variables = saved_tensors

    def maybe_clear_saved_tensors(self) -> None:
        """Let go of the saved tensors if the function says that they are read once."""
        if self._forward_cls.clear_saved_tensors_on_access and self._records:
            self._records = ()
            self._records_cleared = True

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        check_not_freed(self)
        return tuple([self._raw(i) for i in range(len(self._records))])

    def _value_saved(self, position: int) -> Any:
        check_not_freed(self)
        record = self._records[position]
        return None if record is None else record.unpack(self)

    def _kept_value(self, position: int) -> Any:
        record = self._records[position] if position < len(self._records) else None
        if record is None or record.packed is not None:
            return None if record is None else record.packed
        return wrap_as(record.array, record.storage)

    def _only_output(self) -> Any:
        return self._only_meta

    def _keep_packed(self, position: int, hook: Any, unpack_hook: Any) -> None:
        record = self._records[position]
        record.pack(hook, unpack_hook, wrap_as(record.array, record.storage))

    def _release(self, where: Where) -> None:
        self._records = ()
        self._freed_at = where

    # --- its rules ----------------------------------------------------------------------------
    def _get_user_fn(self) -> Any:
        """The user's `backward` or `vjp`."""
        cls = self._forward_cls
        backward_fn, vjp_fn = cls.backward, cls.vjp
        if backward_fn is not Rules.backward and vjp_fn is not Rules.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return vjp_fn if vjp_fn is not Rules.vjp else backward_fn

    def apply(self, *grads: Any) -> Any:
        """Call the user's rule."""
        rule = self._get_user_fn()
        return rule(self, list(grads)) if self._forward_cls.boxed_grads_call else rule(self, *grads)

    def apply_boxed(self, grads: Any) -> Any:
        """`apply` of a list of gradients, for rules that take one."""
        return self._get_user_fn()(self, grads)

    def apply_jvp(self, *tangents: Any) -> Any:
        """Call the user's `jvp`."""
        return self._forward_cls.jvp(self, *tangents)

    def _run(self, g: Any, tensors: bool) -> Any:
        with within((tensors or records_beneath()) and grad_enabled(), False):
            outs = self.apply(*materialize_gradients(self, g))
        return check_returned_gradients(self, outs, tensors)

    def __getstate__(self) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


def check_not_freed(ctx: BackwardCFunction) -> None:
    """Raise if what was saved is gone."""
    if ctx._records_cleared:
        raise RuntimeError(
            "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
            "is set on the autograd.Function. Either access saved_tensors only once, or set "
            "clear_saved_tensors_on_access=False."
        )
    if ctx._freed_at is not None:
        raise RuntimeError(describe_freed(ctx))


def materialize_gradients(ctx: BackwardCFunction, g: Any) -> list[Any]:
    """The gradients of all outputs as tensors, with zeros for those that nothing reached."""
    gs = list(g) if ctx._output_metas is not None else [g]
    metas = ctx._output_metas if ctx._output_metas is not None else [ctx._only_meta]
    for i, x in enumerate(gs):
        if x is None:
            if ctx.materialize_grads and metas[i] is not None:
                shape, dtype, like = metas[i]
                gs[i] = wrap(v.full(like, shape, 0, dtype))
        elif not isinstance(x, TensorBase):
            gs[i] = wrap(normal(x))
    return gs


def check_returned_gradients(ctx: BackwardCFunction, outs: Any, tensors: bool) -> list[Any]:
    """What `backward` returned, checked, for the tensors among the arguments."""
    given = outs if isinstance(outs, tuple) else (outs,)
    expected = ctx._argument_count
    if len(given) > expected and all(x is None for x in given[expected:]):
        given = given[:expected]
    if len(given) != expected:
        raise RuntimeError(
            f"function {type(ctx).__name__} returned an incorrect number of gradients "
            f"(expected {expected}, got {len(given)})"
        )
    found = gradients_of_tensors(ctx, given)
    for k, x in enumerate(found):
        if x is not None:
            found[k] = (
                None if ctx._next_edges[k] is None else check_returned_gradient(ctx, x, k, tensors)
            )
    return found


def gradients_of_tensors(ctx: BackwardCFunction, given: tuple[Any, ...]) -> list[Any]:
    """The gradients at the positions of tensors; elsewhere there must be none."""
    places = frozenset(ctx._tensor_positions)
    for i, x in enumerate(given):
        if x is None:
            continue
        if i not in places:
            raise RuntimeError(
                f"function {type(ctx).__name__} returned a gradient different than None at "
                f"position {i + 1}, but the corresponding forward input was not a Variable"
            )
        if not isinstance(x, TensorBase):
            raise RuntimeError(
                f"expected Variable or None (got {type_name(x)}), in what "
                f"{type(ctx).__name__} returned as gradient of argument {i + 1}"
            )
    return [given[i] for i in ctx._tensor_positions]


def check_returned_gradient(ctx: BackwardCFunction, x: Any, k: int, tensors: bool) -> Any:
    """A gradient for tensor number `k`, in its shape and dtype."""
    shape, dtype = ctx._wanted_metas[k]
    have: tuple[int, ...] = x._array.shape
    if have != shape and not sums_to(have, shape):
        raise RuntimeError(
            f"Function {type(ctx).__name__} returned an invalid gradient at index {k} - got "
            f"{list(have)} but expected shape compatible with {list(shape)}"
        )
    kind = x._array.dtype.kind
    if (kind == "c") != (dtype.kind == "c") and (kind == "c" or kind not in DIFFERENTIABLE):
        raise RuntimeError(
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
            f"grad_is_complex) to be true, but got false: {type(ctx).__name__} returned a "
            f"gradient of {x.dtype} at index {k}, for an input of another kind"
        )
    t = fit(x, shape, dtype)
    return t if tensors else settled(t._array)


def sums_to(have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Whether summing what was broadcast takes one shape to the other."""
    lead = len(have) - len(want)
    return lead >= 0 and all(w in (h, 1) for h, w in zip(have[lead:], want, strict=True))
