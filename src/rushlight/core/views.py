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

from typing import Any

from rushlight.arrays.vocabulary import full, laid_out, overwrite
from rushlight.core.graph import (
    Node,
    Op,
    Plan,
    TensorBase,
    View,
    asks,
    begin_node,
    plan_for,
    title_of,
    wrap_as,
)
from rushlight.core.modes import current, state
from rushlight.core.record import apply, slots
from rushlight.native import i64

__all__ = ["AsStrided", "Put", "edge_of_view", "look", "look_at", "look_at_many", "put", "refresh"]


def look(x: Any, ops: tuple[Op, ...]) -> Any:
    """What a chain of view ops shows of `x`, an array or a tensor."""
    for op in ops:
        rule: Any = op
        x = rule.forward(x)
    return x


def look_at(op: Any, x: TensorBase) -> Any:
    """Apply a view op: the result shares `x`'s memory and version."""
    raw = x.array
    try:
        if state.active != 0 and slots.profile is not None:
            y = slots.profile(op, (raw,))
        else:
            y = op.forward(raw)
    except Exception as error:
        raise op.explain(error, (raw,)) from None
    t = wrap_as(y, x.memory)
    _attach(op, x, t, "")
    if asks(x):
        _record(op, (t,), x, None)
    if slots.levels != 0:
        slots.push_view(op, x, t)
    return t


def look_at_many(op: Any, x: TensorBase, parts: list[Any]) -> tuple[Any, ...]:
    """Apply a view op with several outputs (`unbind`, `split`): `parts` are the single views
    that lead to each output, `op` is the one node they share."""
    results: list[TensorBase] = []
    for part in parts:
        t = wrap_as(part.forward(x.array), x.memory)
        _attach(part, x, t, "multi-output")
        results.append(t)
    if results and asks(x):
        _record(op, tuple(results), x, [(t.array.shape, t.array.dtype) for t in results])
    if slots.levels != 0:
        slots.push_views(op, x, results, parts)
    return tuple(results)


def _attach(op: Any, x: TensorBase, t: TensorBase, how: str) -> None:
    old = x.as_view
    if state.active != 0:
        mode = current()
        if mode is not None:
            if mode.inference:
                return
            if not mode.grad:
                how = "no_grad"
    if old is None:
        t.as_view = View(x, (op,), how, x.memory.version)
    else:
        t.as_view = View(old.base, (*old.ops, op), how or old.how, x.memory.version)


def _record(op: Any, ts: tuple[TensorBase, ...], x: TensorBase, outs: list[Any] | None) -> None:
    if state.active != 0:
        mode = current()
        if mode is not None and not mode.grad:
            for t in ts:
                # PyTorch: such a view requires grad and is a leaf, yet its edge leads nowhere.
                t.leaf = True
            return
    plan: Plan = op.plan
    target = slots.edge_of_view(x) if x.as_view is not None else (x.node or x)
    node = begin_node(plan, op)
    node.nexts = (target,)
    node.wants = 1
    if x.index != 0:
        node.nrs = (x.index,)
    node.shapes = (x.array.shape,)
    node.dtypes = (x.array.dtype,)
    node.outs = outs
    index: i64 = 0
    for t in ts:
        t.node = node
        t.index = index
        index += 1


def edge_of_view(t: TensorBase) -> Any:
    """The edge of a view; renews its node if the base was written since it was made."""
    view = t.as_view
    if view is not None and view.version != t.memory.version:
        refresh(t, view)
    if t.node is not None:
        return t.node
    if view is not None and view.how == "no_grad":
        return None
    return t if t.leaf else None


def refresh(t: TensorBase, view: View) -> None:
    """Give a stale view the node that its base's new history implies."""
    base = view.base
    if t.node is None and base.node is None and not base.leaf:
        return
    if view.how != "":
        raise_forbidden(t, view)
    view.version = t.memory.version
    op = AsStrided(view.ops, shapes_along(base.array, view.ops))
    node = begin_node(plan_for(AsStrided), op)
    node.nexts = (base.node if base.node is not None else base,)
    node.wants = 1
    if base.index != 0:
        node.nrs = (base.index,)
    node.shapes = (base.array.shape,)
    node.dtypes = (base.array.dtype,)
    slots.renewed(t, node)


def shapes_along(x: Any, ops: tuple[Op, ...]) -> tuple[Any, ...]:
    """The shape of `x` before each of a chain of view ops."""
    shapes: list[Any] = []
    for op in ops:
        shapes.append(x.shape)
        rule: Any = op
        x = rule.forward(x)
    return tuple(shapes)


def raise_forbidden(t: TensorBase, view: View, written: bool = False) -> None:
    """A view whose history cannot be renewed was written, or used after its base was written."""
    what = (
        "is being modified inplace"
        if written
        else "its base or another view of its base has been modified inplace"
    )
    start = ""
    if t.node is not None:
        start = f"Output {t.index} of {title_of(t.node)} is a view"
    if view.how == "no_grad" or not start:
        start = start + " of a view which was created" if start else "A view was created"
        raise RuntimeError(
            f"{start} in no_grad mode and {what} with grad mode enabled. Given that this use case "
            "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
            "both the view and the inplace either both inside the no_grad block (if you don't want "
            "the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
        )
    if view.how == "multi-output":
        raise RuntimeError(
            f"{start} and {what}. This view is the output of a function that returns multiple "
            "views. Such functions do not allow the output views to be modified inplace. You "
            "should replace the inplace operation by an out-of-place one."
        )
    raise RuntimeError(
        f"{start} and {what}. This view was created inside a custom Function (or because an input "
        "was returned as-is) and the autograd logic to handle view+inplace would override the "
        "custom backward associated with the custom Function, leading to incorrect gradients. This "
        "behavior is forbidden. You can fix this by cloning the output of the custom Function."
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
        out = laid_out(x, self.order)
        overwrite(look(out, self.ops), source)
        return out

    def vjp(self, node: Node, g: Any) -> tuple[Any, Any]:
        hole = put(g, self.ops, self.order, None) if node.needs(0) else None
        return hole, (look(g, self.ops) if node.needs(1) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = zeros_like(xs[0]) if ts[0] is None else ts[0]
        return put(t, self.ops, self.order, ts[1])


def zeros_like(x: Any) -> Any:
    """Zeros in the shape of an array or tensor, whatever its values are."""
    raw = x.array if isinstance(x, TensorBase) else x
    return full(x, raw.shape, 0, raw.dtype)


def put(x: Any, ops: tuple[Op, ...], order: tuple[int, ...] | None, source: Any) -> Any:
    """`x` with what `ops` show of it replaced by `source` (None: zeros)."""
    if source is None:
        source = zeros_like(look(x, ops))
    op = Put(ops, order)
    if isinstance(x, TensorBase) or isinstance(source, TensorBase):
        return apply(op, x, source)
    return op.forward(x, source)


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
        return look(x, self.ops)

    def vjp(self, node: Node, g: Any) -> tuple[Any]:
        for position in range(len(self.ops) - 1, -1, -1):
            rule: Any = self.ops[position]
            g = rule.adjoint(g, self.shapes[position])
        return (g,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return look(ts[0], self.ops)


slots.edge_of_view = edge_of_view
