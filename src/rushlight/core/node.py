"""Running one node: how it turns gradients of its outputs into those of its inputs, and what it
lets go afterwards. Which nodes run, and when, is the engine's matter.

The node as users meet it stands in `core.node_api`, what it keeps in `core.saved.saved_values`;
others import the names of all three from here.
"""

from __future__ import annotations

from typing import Any, Final, cast

from rushlight.arrays import vocabulary as v
from rushlight.core.call_site import Where
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import state, within
from rushlight.core.graph import (
    Node,
    Op,
    OpSpec,
    TensorBase,
    extra_of,
    forget_retained,
    hooks_of,
    next_number,
    requires_grad,
    retain_on,
)
from rushlight.core.node_api import (
    AccumulateGrad,
    AccumulateGradBase,
    GraphNode,
    accumulate_of,
    by_hand,
    differentiable_outputs,
    edges_shown,
    visible,
)
from rushlight.core.record import apply, recording
from rushlight.core.saved.errors import describe_freed
from rushlight.core.saved.packed import Packed, open_packed
from rushlight.core.saved.saved_tensor import with_history
from rushlight.core.saved.saved_values import check_saved, unpack
from rushlight.core.views.history import replay_views
from rushlight.core.views.views import put
from rushlight.native import i64, mypyc_attr

__all__ = [
    "AccumulateGrad", "AccumulateGradBase", "CopySlices", "CopySlicesBase", "GraphNode",
    "accumulate_of",
    "backward_of", "describe_freed", "extra_of", "fit", "forget_retained", "free_saved",
    "hooks_of", "make_copy_slices", "opened", "retain_on", "unpack", "with_history",
]  # fmt: skip


def backward_of(node: Node, g: Any, tensors: bool) -> Any:
    """Gradients of a node's inputs from `g`, the gradient of its output (a list if it has several).

    With `tensors` everything is a tensor and is recorded; otherwise all are raw arrays.
    """
    op: Any = node._op
    if op is None:
        return cast(GraphNode, node)._run(g, tensors)
    outs_meta = node._output_metas
    if outs_meta is not None:
        g = materialise(g, outs_meta)
        if g is None:
            return [None] * len(node._next_edges)
    elif g is None:
        return [None] * len(node._next_edges)
    saved = node._kept_values
    plan: OpSpec = op.plan
    if plan.saves:
        if node._needs_grad_mask == 0:
            return [None] * len(node._next_edges)  # no edge leads anywhere, and nothing was kept
        if node._freed_at is not None:
            check_saved(node)
        if node._count_versions() != node._version_sum:
            check_saved(node)
        if node._has_packed:
            return backward_of_packed(node, g, tensors)
        if tensors:
            saved = tuple([unpack(node, j) for j in range(len(saved))])
    n = len(saved)
    mark: i64 = next_number() if tensors else 0
    rule = node._compiled_op
    if rule is not None:
        if n == 2:
            return rule.vjp_binary(node, g, saved[0], saved[1])
        return rule.vjp_binary(node, g, None, None)
    if n == 0:
        outs = op.vjp(node, g)
    elif n == 1:
        outs = op.vjp(node, g, saved[0])
    elif n == 2:
        outs = op.vjp(node, g, saved[0], saved[1])
    else:
        outs = op.vjp(node, g, *saved)
    return anchored(node, outs, saved, mark) if tensors and n != 0 else outs


def anchored(node: Node, outs: Any, saved: tuple[Any, ...], mark: i64) -> Any:
    """Gradients computed from saved tensors that ask for gradients depend on them, even where the
    derivative is zero (relu): differentiating again then gives zeros, not an error.

    `mark` is the number of the last node before the rule ran: what is newer, the rule made.
    """
    asking = [
        j for j in range(len(saved)) if isinstance(saved[j], TensorBase) and requires_grad(saved[j])
    ]
    if not asking or not recording():
        return outs
    plan: OpSpec = node._op.plan
    found: list[Any] = []
    for i in range(len(outs)):
        out = outs[i]
        if isinstance(out, TensorBase):
            ends = ends_of(out, mark)
            bit: i64 = 1 << i if i < 62 else 0
            missing: list[Any] = []
            for j in asking:
                t: TensorBase = saved[j]
                reader: i64 = -1 if plan.variadic else plan.readers[j]
                end: Any = t._node if t._node is not None else t
                if isinstance(end, AccumulateGradBase):
                    end = end.variable
                if reader & bit != 0 and end not in ends:
                    missing.append(t)
            if missing:
                out = apply(Anchor(), out, *missing)
        found.append(out)
    return found


def ends_of(out: TensorBase, mark: i64) -> set[Any]:
    """Where the edges of the nodes newer than `mark` behind `out` lead."""
    ends: set[Any] = {out if out._node is None else out._node}
    stack: list[Any] = [out._node]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node._seq_nr > mark:
            for target in node._next_edges:
                if isinstance(target, AccumulateGradBase):
                    target = target.variable
                if target is not None and target not in ends:
                    ends.add(target)
                    stack.append(target)
    return ends


class Anchor(Op):
    """Its first input as it is; the others get a gradient of zeros."""

    name = "zero_derivative"

    def forward(self, x: Any, *others: Any) -> Any:
        return x

    def vjp(self, node: Node, g: Any) -> Any:
        shapes = node._input_shapes
        dtypes = node._input_dtypes
        assert shapes is not None and dtypes is not None
        zeros = [v.full(g, shapes[i], 0, dtypes[i]) for i in range(1, len(shapes))]
        return [g, *zeros]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return y * 0 if ts[0] is None else ts[0]


def backward_of_packed(node: Node, g: Any, tensors: bool) -> Any:
    """`backward_of` a node whose saved values were packed by hooks: open them, then its rule."""
    op: Any = node._op
    values = opened(node, tensors)
    if tensors:
        mark = next_number()
        return anchored(node, op.vjp(node, g, *values), tuple(values), mark)
    # not the cheaper silence of Note [Busy]: that may run a rule twice, and hooks only once
    return quietly(op.vjp, node, g, *values)


def opened(node: Node, tensors: bool) -> list[Any]:
    """The saved values, each unpack hook called once, in the order in which they were packed."""
    plan: OpSpec = node._op.plan
    values: list[Any] = list(node._kept_values)
    busy = state.busy
    state.busy = False  # the hooks are the user's code: his warnings are his
    try:
        with within(tensors, False):
            for j in list(range(len(values))) if plan.variadic else plan.order:
                value = values[j]
                if tensors:
                    values[j] = unpack(node, j)
                elif isinstance(value, Packed):
                    values[j] = open_packed(value)._array
    finally:
        state.busy = busy
    return values


def materialise(gs: Any, metas: list[Any]) -> Any:
    """Zeros for the outputs that no gradient reached; None if none did."""
    like: Any = None
    missing = False
    for g in gs:
        if g is None:
            missing = True
        elif like is None:
            like = g
    if not missing:
        return gs
    if like is None:
        return None
    filled: list[Any] = []
    for i in range(len(metas)):
        g = gs[i]
        if g is None:
            shape, dtype = metas[i]
            g = v.full(like, shape, 0, dtype)
        filled.append(g)
    return filled


def fit(g: Any, shape: Any, dtype: Any) -> Any:
    """A gradient in the shape and dtype of the input it is for: sum what was broadcast."""
    if shape is not None:
        have: tuple[int, ...] = g.shape
        if have != shape:
            lead = len(have) - len(shape)
            axes = list(range(lead))
            for d in range(len(shape)):
                if shape[d] == 1 and have[lead + d] != 1:
                    axes.append(lead + d)
            if axes:
                g = v.reduce_sum(g, tuple(axes), True)
            if lead or g.shape != shape:
                g = v.reshape(g, shape)
    if dtype is not None:
        raw = g._array if isinstance(g, TensorBase) else g
        if raw.dtype is not dtype and raw.dtype != dtype:
            g = v.cast(g, dtype)
    return g


def free_saved(node: Node, where: Where) -> None:
    """Let go of what a node keeps; `where` is the call that no longer needs it."""
    op: Any = node._op
    if op is None:
        cast(GraphNode, node)._release(where)
        return
    plan: OpSpec = op.plan
    if plan.saves:
        node._freed_at = where
        node._kept_values = ()
        node._first_storage = None
        node._second_storage = None
        node._other_storages = ()
        node._version_sum = 0


def call_by_hand(node: Any, grads: tuple[Any, ...]) -> Any:
    """Run a node's rule on gradients of its outputs, without its hooks: `t.grad_fn(g)`."""
    expected = 1 if node._output_metas is None else len(differentiable_outputs(node))
    if len(grads) != expected:
        raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
    for i in range(len(grads)):
        if grads[i] is not None and not isinstance(grads[i], TensorBase):
            raise TypeError(f"argument {i} is not a Variable")
    g: Any = grads[0]
    if node._output_metas is not None:
        g = [None] * len(node._output_metas)
        for at, i in enumerate(differentiable_outputs(node)):
            g[i] = grads[at]
    found = backward_of(node, g, True)
    outs = tuple([found[i] for i in edges_shown(node)])
    return outs[0] if len(outs) == 1 else outs


by_hand.call = call_by_hand


# --- writes through views -------------------------------------------------------------------------
@mypyc_attr(allow_interpreted_subclasses=True)
class CopySlicesBase(GraphNode):
    """The history of a base that was written through a view; see Note [Rebased history].

    `fn` is the node of the in-place op, as applied to the region alone. `alone` describes the base
    where it had no history before, so that no edge leads to it: (shape, dtype, an empty array).
    """

    fn: Node
    ops: tuple[Op, ...]
    order: tuple[int, ...] | None
    alone: Any = None

    def _run(self, g: Any, tensors: bool) -> Any:
        if self._freed_at is not None:
            raise RuntimeError(describe_freed(self))
        if g is None:
            return [None] * len(self._next_edges)
        fn = self.fn
        part = list(backward_of(fn, replay_views(g, self.ops), tensors))
        for i in range(len(part)):
            if part[i] is not None:
                shape = None if fn._input_shapes is None else fn._input_shapes[i]
                part[i] = fit(
                    part[i], shape, None if fn._input_dtypes is None else fn._input_dtypes[i]
                )
        first = put(g, self.ops, self.order, part[0]) if self._next_edges[0] is not None else None
        return [first, *part[1:]]

    def _only_output(self) -> Any:
        node = self
        base: Any = node._next_edges[0]
        while isinstance(base, CopySlicesBase):  # not by recursion: one write follows another
            node = base
            base = node._next_edges[0]
        if base is None:
            return node.alone
        if isinstance(base, TensorBase):
            return base._array.shape, base._array.dtype, base._array
        if isinstance(base, GraphNode):
            nr = 0 if node._output_nrs is None else node._output_nrs[0]
            return base._only_output() if base._output_metas is None else base._output_metas[nr]
        return super()._only_output()

    def _calls_user(self) -> bool:
        """Whether the write was a custom function's, or what it saved is packed by hooks."""
        return self.fn._op is None or self.fn._has_packed

    def _release(self, where: Where) -> None:
        self._freed_at = where
        free_saved(self.fn, where)


CopySlices: Final[Any] = visible(CopySlicesBase, "CopySlices")


def make_copy_slices(
    fn: Node, ops: tuple[Op, ...], order: tuple[int, ...] | None
) -> CopySlicesBase:
    """A CopySlices around the node of an in-place op; the caller sets its edges."""
    node = cast(CopySlicesBase, CopySlices())
    node.fn = fn
    node.ops = ops
    node.order = order
    node._fits_as_is = True  # it fits its gradients itself
    node._seq_nr = next_number()
    node._code = fn._code
    node._code_offset = fn._code_offset
    return node
