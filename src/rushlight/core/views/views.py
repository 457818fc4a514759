"""Views: tensors that look into another's memory, and what a write through one does.

A view knows its root (`base`) and the view ops that lead from there. That is recorded even when
nothing requires grad, because a later write may give the base a history.

Note [Rebased history]
    After a write through a view, the base's node is a `CopySlices`: its gradient is that of the
    old base outside the written region, and of the written value inside it. Every other view of
    the base is then stale; it gets a new node from the base the next time someone asks.

Note [Layout of a rebuilt base]
    `put` copies a base in the base's own order of strides: a chain of views that was possible on
    the base's memory is then possible on the copy, and writes reach it.
"""

from __future__ import annotations

import weakref
from typing import Any

from rushlight.arrays.batched import Batched, joined
from rushlight.arrays.host import ByteBounds
from rushlight.arrays.vocabulary import full, laid_out, overwrite, restrided, unstrided
from rushlight.core.grad_mode import current, state
from rushlight.core.graph import (
    Node,
    Op,
    OpSpec,
    Sharer,
    TensorBase,
    View,
    begin_node,
    requires_grad,
    title_of,
    wrap_as,
)
from rushlight.core.record import apply, normal, slots
from rushlight.errors import alone
from rushlight.native import i64

__all__ = [
    "AsStrided",
    "Put",
    "Written",
    "apply_view",
    "edge_of_view",
    "forget_view_ops",
    "look_at_many",
    "put",
    "refresh",
    "replay_views",
    "view_ops_from_base",
]  # fmt: skip


def replay_views(x: Any, ops: tuple[Op, ...]) -> Any:
    """What a chain of view ops shows of `x`, an array or a tensor."""
    x = normal(x)  # NumPy's 0-d results are scalars, and what one sees of a scalar is a copy
    for op in ops:
        rule: Any = op
        x = rule.forward(x)
    return x


def apply_view(op: Any, x: TensorBase) -> Any:
    """Apply a view op: the result shares `x`'s memory and version."""
    raw = x._array
    profile: Any = slots.profile if state.active != 0 else None  # asked once: it may end meanwhile
    try:
        y = op.forward(raw) if profile is None else profile(op, (raw,))
    except Exception as error:
        raise alone(op.explain(error, (raw,))) from None
    t = wrap_as(y, x._storage)
    _attach(op, x, t, "")
    if requires_grad(x):
        _record(op, (t,), x, None)
    if slots.levels != 0:
        slots.push_view(op, x, t)
    return t


def look_at_many(op: Any, x: TensorBase, parts: list[Any]) -> tuple[Any, ...]:
    """Apply a view op with several outputs (`unbind`, `split`): `parts` are the single views
    that lead to each output, `op` is the one node they share."""
    profile: Any = slots.profile if state.active != 0 else None
    if profile is None:
        shown = [part.forward(x._array) for part in parts]
    else:
        shown = profile(op, (x._array,), lambda raw: [part.forward(raw) for part in parts])
    results: list[TensorBase] = []
    for k in range(len(parts)):
        t = wrap_as(shown[k], x._storage)
        _attach(parts[k], x, t, "multi-output")
        results.append(t)
    if results and requires_grad(x):
        _record(op, tuple(results), x, [(t._array.shape, t._array.dtype) for t in results])
    if slots.levels != 0:
        slots.push_views(op, x, results, parts)
    return tuple(results)


def _attach(op: Any, x: TensorBase, t: TensorBase, how: str) -> None:
    memory = x._storage
    if memory.inference:
        if memory.owner is None:
            memory.owner = Sharer(x)
        return  # nothing can be recorded of it, inside `inference_mode` or out
    if state.active != 0:
        mode = current()
        if mode is not None:
            if mode.inference:
                how = "inference"
            elif not mode.grad:
                how = "no_grad"
    old = x._view
    if old is None:
        t._view = View(x, (op,), how, memory.version)
    else:
        if how == "" or old.how == "inference":
            how = old.how
        t._view = View(old.base, (op,), how, memory.version, old)


def _record(op: Any, ts: tuple[TensorBase, ...], x: TensorBase, outs: list[Any] | None) -> None:
    if x._storage.inference:
        return
    if state.active != 0:
        mode = current()
        if mode is not None and not mode.grad:
            return
    plan: OpSpec = op.plan
    target = slots.edge_of_view(x) if x._view is not None else (x._node or x)
    node = begin_node(plan, op)
    node._next_edges = (target,)
    node._needs_grad_mask = 1
    if x._output_nr != 0:
        node._output_nrs = (x._output_nr,)
    node._input_shapes = (x._array.shape,)
    node._input_dtypes = (x._array.dtype,)
    node._output_metas = outs
    index: i64 = 0
    for t in ts:
        t._node = node
        t._output_nr = index
        index += 1


def edge_of_view(t: TensorBase) -> Any:
    """The edge of a view; renews its node if the base was written since it was made.

    A view that was not recorded asks for gradients because its base does, and leads nowhere.
    """
    view = t._view
    if view is not None and view.version != t._storage.version:
        refresh(t, view)
    if t._node is not None:
        return t._node
    return t if t._requires_grad else None


def refresh(t: TensorBase, view: View) -> None:
    """Give a stale view the node that its base's new history implies."""
    base = view.base
    if t._node is None and base._node is None and not base._requires_grad:
        return
    if view.how != "":
        raise_forbidden(t, view)
    view.version = t._storage.version
    x: Any = base._array
    target: Any = base._node if base._node is not None else (base if base._requires_grad else None)
    nr: i64 = base._output_nr
    node = nodes_along(view_ops_from_base(t, view), target, nr, x)
    if node is None:
        t._node = None
        t._output_nr = 0
    else:
        slots.renewed(t, node)


def nodes_along(ops: tuple[Op, ...], target: Any, nr: i64, x: Any) -> Node | None:
    """The node of a view: one for the whole chain of view ops on the raw `x`, output `nr` of
    `target`.

    No strides lead from one dtype to another. If the chain does, PyTorch repeats the views: one
    node up to the first change, and one a view from there on; none, if the base has no history.
    """
    base = x
    end: Any = target
    shapes: list[Any] = []
    changed = False
    for at in range(len(ops)):
        op: Any = ops[at]
        y: Any = op.forward(x)
        changes = y.dtype != x.dtype
        if not changed and not changes:
            shapes.append(x.shape)
        else:
            if not changed and at > 0:
                whole = AsStrided(ops[:at], tuple(shapes))
                end = node_on(whole, end, nr, base.shape, base.dtype)
                nr = 0
            changed = True
            step: Any = op if changes else AsStrided((op,), (x.shape,))
            end = node_on(step, end, nr, x.shape, x.dtype)
            nr = 0
        x = y
    if not changed:
        return node_on(AsStrided(ops, tuple(shapes)), target, nr, base.shape, base.dtype)
    if target is None:
        return None
    last: Node = end
    return last


def view_ops_from_base(t: TensorBase, view: View) -> tuple[Op, ...]:
    """The view ops that lead from the base, as it is now, to `t`."""
    x = view.base._array
    ops = view.ops
    if x is view.origin or type(x) is Batched:
        return ops
    y: Any = t._array
    done = len(ops)
    if view.origin is not None:
        y = view.origin
        for done in range(len(ops)):
            op: Any = ops[done]
            z: Any = op.forward(y)
            if z.dtype != y.dtype:
                break  # strides lead this far
            y = z
        else:
            done = len(ops)
    if y.dtype != x.dtype:
        return ops
    size: int = x.dtype.itemsize
    inside = tuple([s // size for s in x.strides])
    stride = tuple([s // size for s in y.strides])
    start = ByteBounds(y).offset - ByteBounds(x).offset
    return (Region(y.shape, stride, start // size, inside), *ops[done:])


def forget_view_ops(t: TensorBase) -> None:
    """Note that a tensor was made to look elsewhere: if it is a view, not where its ops lead."""
    view = t._view
    if view is not None:
        view = View(view.base, (), view.how, view.version)
        view.origin = None
        t._view = view


def node_on(op: Any, target: Any, nr: i64, shape: Any, dtype: Any) -> Node:
    """A node of `op` on an array of this shape and dtype, which is output `nr` of `target`."""
    node = begin_node(op.plan, op)
    node._next_edges = (target,)
    node._needs_grad_mask = 0 if target is None else 1
    if nr != 0 and target is not None:
        node._output_nrs = (nr,)
    node._input_shapes = (shape,)
    node._input_dtypes = (dtype,)
    return node


class Written:
    """What a write through a view left there, for rules that read it: output of the view's node.

    That node leads to the base's, and the write's own stands inside the base's: it must keep
    neither. If nobody else keeps the view's, there is another.
    """

    def __init__(self, view: Node, base: Node) -> None:
        self.view: Any = weakref.ref(view)
        self.base: Any = weakref.ref(base)
        self.op: Any = view._op
        self.shape: Any = None if view._input_shapes is None else view._input_shapes[0]
        self.dtype: Any = None if view._input_dtypes is None else view._input_dtypes[0]

    def node(self) -> Node | None:
        """The view's node; None if nobody keeps the base's."""
        found: Any = self.view()
        if found is None:
            base: Any = self.base()
            if base is None:
                return None
            found = node_on(self.op, base, 0, self.shape, self.dtype)
        node: Node = found
        return node


def raise_forbidden(t: TensorBase, view: View, written: bool = False) -> None:
    """A view whose history cannot be renewed was written, or used after its base was written."""
    what = "is being" if written else "its base or another view of its base has been"
    if view.how == "inference":
        made, now = "in inference mode", " in normal mode"
    else:
        made, now = "in no_grad mode", " with grad mode enabled"
    if t._node is None:
        start = f"A view was created {made}"
    else:
        start = f"Output {t._output_nr} of {title_of(t._node)} is a view"
        if view.how == "no_grad" or view.how == "inference":
            start += f" of a view which was created {made}"
        else:
            now = ""
    start = f"{start} and {what} modified inplace{now}."
    if view.how == "multi-output":
        raise RuntimeError(
            f"{start} This view is the output of a function that returns multiple views. Such "
            "functions do not allow the output views to be modified inplace. You should replace "
            "the inplace operation by an out-of-place one."
        )
    if view.how == "custom":
        raise RuntimeError(
            f"{start} This view was created inside a custom Function (or because an input was "
            "returned as-is) and the autograd logic to handle view+inplace would override the "
            "custom backward associated with the custom Function, leading to incorrect gradients. "
            "This behavior is forbidden. You can fix this by cloning the output of the custom "
            "Function."
        )
    block = "inference_mode" if view.how == "inference" else "no_grad"
    raise RuntimeError(
        f"{start} Given that this use case is ambiguous and error-prone, it is forbidden. You can "
        f"clarify your code by moving both the view and the inplace either both inside the {block} "
        "block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked)."
    )


def order_of(array: Any) -> tuple[int, ...] | None:
    """The axes of an array from the widest stride to the narrowest; None if in row order."""
    strides: tuple[int, ...] = array.strides
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    for position in range(len(order)):
        if order[position] != position:
            return tuple(order)
    return None


class Put(Op):
    """A base with one region replaced. It is its own derivative.

    See Note [Layout of a rebuilt base] for `order`.
    """

    name = "put_region"
    inputs = ("self", "source")
    params = ("ops", "order")

    def __init__(self, ops: tuple[Op, ...], order: tuple[int, ...] | None) -> None:
        super().__init__()
        self.ops = ops
        self.order = order

    def forward(self, x: Any, source: Any) -> Any:
        out = normal(laid_out(joined(x, source), self.order))
        overwrite(replay_views(out, self.ops), source)
        return out

    def vjp(self, node: Node, g: Any) -> tuple[Any, Any]:
        hole = put(g, self.ops, self.order, None) if node._needs_grad(0) else None
        return hole, (replay_views(g, self.ops) if node._needs_grad(1) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = zeros_like(xs[0]) if ts[0] is None else ts[0]
        return put(t, self.ops, self.order, ts[1])


def zeros_like(x: Any) -> Any:
    """Zeros in the shape of an array or tensor, whatever its values are."""
    raw = x._array if isinstance(x, TensorBase) else x
    return full(x, raw.shape, 0, raw.dtype)


def put(x: Any, ops: tuple[Op, ...], order: tuple[int, ...] | None, source: Any) -> Any:
    """`x` with what `ops` show of it replaced by `source` (None: zeros)."""
    if source is None:
        source = zeros_like(replay_views(x, ops))
    op = Put(ops, order)
    if isinstance(x, TensorBase) or isinstance(source, TensorBase):
        return apply(op, x, source)
    return op.forward(x, source)


class Region(Op):
    """A view by strides, in elements, that begins `start` elements after the base, whose strides
    are `inside`."""

    name = "region"
    params = ("shape", "stride", "start", "inside")

    def __init__(
        self, shape: tuple[int, ...], stride: tuple[int, ...], start: int, inside: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.shape = shape
        self.stride = stride
        self.start = start
        self.inside = inside

    def forward(self, x: Any) -> Any:
        return restrided(x, self.shape, self.stride, self.start, self.inside)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return unstrided(g, shape, self.stride, self.start, self.inside)


class AsStrided(Op):
    """The way from a base to a view of it, as one op: what a renewed view's node applies."""

    name = "as_strided_view"
    node = "AsStridedBackward0"
    params = ("ops", "shapes")

    def __init__(self, ops: tuple[Op, ...], shapes: tuple[Any, ...]) -> None:
        super().__init__()
        self.ops = ops
        self.shapes = shapes

    def forward(self, x: Any) -> Any:
        return replay_views(x, self.ops)

    def vjp(self, node: Node, g: Any) -> tuple[Any]:
        for position in range(len(self.ops) - 1, -1, -1):
            rule: Any = self.ops[position]
            g = rule.adjoint(g, self.shapes[position])
        return (g,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return replay_views(ts[0], self.ops)


slots.edge_of_view = edge_of_view
