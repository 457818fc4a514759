"""Views: tensors that look into another's memory, and a base with what a view shows replaced.

What a view's history is: see `core.views.history`.

Note [Layout of a rebuilt base]
    `put` copies a base in the base's own order of strides: a chain of views that was possible on
    the base's memory is then possible on the copy, and writes reach it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays.batched import join_batches
from rushlight.arrays.host import is_sparse, settled
from rushlight.arrays.vocabulary import full, laid_out, overwrite
from rushlight.core.grad_mode import current, state
from rushlight.core.graph import (
    UNSOUGHT,
    Node,
    Op,
    Sharer,
    TensorBase,
    View,
    new_node,
    normal,
    requires_grad,
    wrap_as,
)
from rushlight.core.observer import observer
from rushlight.core.record import apply, keep_record
from rushlight.core.transforms.stack import stack
from rushlight.core.transforms.tangents import push_view, push_views
from rushlight.core.views.history import edge_of_view, replay_views
from rushlight.errors import alone
from rushlight.native import i64

_ndarray: Final = np.ndarray


def apply_view(op: Any, x: TensorBase) -> Any:
    """Apply a view op: the result shares `x`'s memory and version."""
    raw = x._array
    profile: Any = observer.profile if state.active != 0 else None  # once: it may end meanwhile
    known: Op = op
    kernel = known.forward_kernel
    y: Any = None
    if kernel is not None and kernel is not UNSOUGHT and profile is None:
        y = kernel(raw)
    if y is None:
        try:
            y = op.forward(raw) if profile is None else profile(op, (raw,))
        except Exception as error:
            raise alone(op.explain(error, (raw,))) from None
    if type(raw) is not np.ndarray and is_sparse(raw):  # elements stand elsewhere: no view
        return keep_record(op, (x,), (raw,), y)
    t = wrap_as(y, x._storage)
    if observer.applied is not None:
        observer.applied.append((op, (x,), t))
    _attach(op, x, t, "")
    if requires_grad(x):
        _record(op, (t,), x, None)
    if stack.tangents != 0:
        push_view(op, x, t)
    return t


def look_at_many(op: Any, x: TensorBase, parts: list[Any]) -> tuple[Any, ...]:
    """Apply a view op with several outputs (`unbind`, `split`): `parts` are the single views
    that lead to each output, `op` is the one node they share."""
    profile: Any = observer.profile if state.active != 0 else None
    if profile is None:
        shown = [_seen(part, x._array) for part in parts]
    else:
        shown = profile(op, (x._array,), lambda raw: [part.forward(raw) for part in parts])
    results: list[TensorBase] = []
    for k in range(len(parts)):
        t = wrap_as(shown[k], x._storage)
        _attach(parts[k], x, t, "multi-output")
        results.append(t)
    if observer.applied is not None:
        observer.applied.append((op, (x,), tuple(results), parts))
    if results and requires_grad(x):
        _record(op, tuple(results), x, [(t._array.shape, t._array.dtype) for t in results])
    if stack.tangents != 0:
        push_views(op, x, results, parts)
    return tuple(results)


def _seen(op: Any, raw: Any) -> Any:
    """What a view op shows of an array."""
    known: Op = op
    kernel = known.forward_kernel
    if kernel is not None and kernel is not UNSOUGHT:
        y = kernel(raw)
        if y is not None:
            return y
    return op.forward(raw)


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
    target = edge_of_view(x) if x._view is not None else (x._node or x)
    nr = x._output_nr
    node = new_node(op, (target,), (nr,) if nr != 0 else None, 1)
    node._input_shapes = (x._array.shape,)
    node._input_dtypes = (x._array.dtype,)
    node._output_metas = outs
    index: i64 = 0
    for t in ts:
        t._node = node
        t._output_nr = index
        index += 1


class Put(Op):
    """A base with one region replaced. It is its own derivative.

    See Note [Layout of a rebuilt base] for `order`.
    """

    name = "put_region"
    aten = None
    inputs = ("self", "source")
    params = ("ops", "order")

    def __init__(self, ops: tuple[Op, ...], order: tuple[int, ...] | None) -> None:
        super().__init__()
        self.ops = ops
        self.order = order

    def forward(self, x: Any, source: Any) -> Any:
        out = normal(laid_out(join_batches(x, source), self.order))
        overwrite(replay_views(out, self.ops), source)
        return out

    def vjp(self, node: Node, g: Any) -> tuple[Any, Any]:
        hole = put(g, self.ops, self.order, None) if node._needs_grad(0) else None
        seen = replay_views(g, self.ops) if node._needs_grad(1) else None
        return hole, (seen if isinstance(seen, TensorBase) else settled(seen))

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
