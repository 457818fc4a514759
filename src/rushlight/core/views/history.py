"""Where a view's gradient goes: its history, which may be one that its base got later.

A view knows its root (`base`) and the view ops that lead from there. That is recorded even when
nothing requires grad, because a later write may give the base a history.

Note [Rebased history]
    After a write through a view, the base's node is a `CopySlices`: its gradient is that of the
    old base outside the written region, and of the written value inside it. Every other view of
    the base is then stale; it gets a new node from the base the next time someone asks.
"""

from __future__ import annotations

import weakref
from typing import Any

from rushlight.arrays.batched import Batched
from rushlight.arrays.host import ByteBounds, put_off
from rushlight.arrays.vocabulary import restrided, unstrided
from rushlight.core.graph import (
    Node,
    Op,
    TensorBase,
    View,
    forget_retained,
    new_node,
    normal,
    retain_on,
)
from rushlight.core.views.errors import raise_forbidden
from rushlight.native import i64


def replay_views(x: Any, ops: tuple[Op, ...]) -> Any:
    """What a chain of view ops shows of `x`, an array or a tensor."""
    x = normal(x)  # NumPy's 0-d results are scalars, and what one sees of a scalar is a copy
    for op in ops:
        rule: Any = op
        x = rule.forward(x)
    return x


def edge_of_view(t: TensorBase) -> Any:
    """The edge of a view; renews its node if the base was written since it was made.

    A view that was not recorded wants gradients because its base does, and leads nowhere.
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
        set_history(t, node, 0)


def set_history(t: TensorBase, node: Node, index: i64) -> None:
    """Make `t` output `index` of `node`. `retain_grad` follows the tensor to its new value; hooks
    stay on the old one."""
    forget_retained(t)
    t._node = node
    t._output_nr = index
    t._requires_grad = False
    if t._extra is not None and t._extra.retains:
        retain_on(t, node)


def nodes_along(ops: tuple[Op, ...], target: Any, nr: i64, x: Any) -> Node | None:
    """The node of a view: one for the whole chain of view ops on the raw `x`, output `nr` of
    `target`.

    No strides lead from one dtype to another, nor to conjugates. If the chain does, PyTorch repeats
    the views: one node up to the first change, and one a view from there on; none, if the base has
    no history.
    """
    base = x
    end: Any = target
    shapes: list[Any] = []
    changed = False
    for at in range(len(ops)):
        op: Any = ops[at]
        y: Any = op.forward(x)
        changes = y.dtype != x.dtype or put_off(y) != put_off(x)
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
            if z.dtype != y.dtype or put_off(z) != put_off(y):
                break  # strides lead this far
            y = z
        else:
            done = len(ops)
    if y.dtype != x.dtype or put_off(y) != put_off(x):
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
    nrs = (int(nr),) if nr != 0 and target is not None else None
    node = new_node(op, (target,), nrs, 0 if target is None else 1)
    node._input_shapes = (shape,)
    node._input_dtypes = (dtype,)
    return node


class Written:
    """What a write through a view left there, for rules that read it: output of the view's node.

    That node leads to the base's, and the write's own is inside the base's: it must keep
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


def order_of(array: Any) -> tuple[int, ...] | None:
    """The axes of an array from the widest stride to the narrowest; None if in row order."""
    strides: tuple[int, ...] = array.strides
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    for position in range(len(order)):
        if order[position] != position:
            return tuple(order)
    return None


class Region(Op):
    """A view by strides, in elements, that begins `start` elements after the base, whose strides
    are `inside`."""

    name = "region"
    aten = None
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
    aten = "as_strided.default"
    saved_names = ""
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
