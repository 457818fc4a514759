"""Running an op on tensors: compute on the raw arrays, then record a node if someone wants it.

`apply` does all of it for any op. Element-wise ops of one or two operands have a faster way in
`core.dispatch`; writing in place stands in `core.views.inplace`, looking into a tensor in
`core.views.views`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays.batched import deepest
from rushlight.arrays.host import check_same_device
from rushlight.arrays.layouts import settled
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import grad_enabled, inference_enabled, state
from rushlight.core.graph import (
    DIFFERENTIABLE,
    Node,
    OpSpec,
    Storage,
    TensorBase,
    begin_node,
    normal,
    requires_grad,
    wrap,
)
from rushlight.core.observer import observer
from rushlight.core.saved.packed import pack_all, refuse_inference, saving_now
from rushlight.core.transforms.lift import lifted
from rushlight.core.transforms.stack import Level, stack
from rushlight.core.transforms.tangents import keep_tangents, push
from rushlight.core.views.history import edge_of_view
from rushlight.errors import alone
from rushlight.native import i64

__all__ = [
    "apply", "compute", "edge", "evaluate", "finish", "keep_record", "node_for", "recording",
    "remember", "remember_all", "rescued",
]  # fmt: skip

_ndarray: Final = np.ndarray
_generic: Final = np.generic
_LAST_BIT: Final[i64] = 1 << 62


def recording() -> bool:
    """Whether ops that run now may be recorded."""
    return state.active == 0 or grad_enabled()


def edge(t: TensorBase) -> Any:
    """Where the gradient of an input goes. Ask before making the node that will have this edge: a
    view may be given a new node here, and numbers must grow along the edges. None: nowhere, and
    nothing is kept for it; so it is with views that were not recorded, though their base asks."""
    if t._view is not None:
        return edge_of_view(t)
    if t._node is not None:
        return t._node
    return t


def finish(t: TensorBase) -> TensorBase:
    """Mark a result that was made inside `inference_mode`."""
    if state.active != 0 and inference_enabled():
        t._storage.inference = True
    return t


def evaluate(op: Any, *raws: Any) -> Any:
    """`op.forward(*raws)`, with PyTorch's silence and PyTorch's errors."""
    if state.active != 0:
        profile = observer.profile  # once: another thread's profiler may end meanwhile
        if profile is not None:
            return profile(op, raws)
    return compute(op, raws)


def compute(op: Any, raws: tuple[Any, ...]) -> Any:
    """`evaluate`, seen by no profiler."""
    if stack.batches != 0:
        level: Level | None = deepest(raws)
        if level is not None:
            return level.compute(op, raws)
    state.busy = True
    try:
        y = op.forward(*raws)
    except BaseException as error:
        y = rescued(op, error, raws)
    state.busy = False
    return y


def rescued(op: Any, error: BaseException, raws: tuple[Any, ...]) -> Any:
    """After a forward that raised: compute again if it was but a warning, else PyTorch's error."""
    state.busy = False
    if isinstance(error, RuntimeWarning):
        return quietly(op.forward, *raws)
    if isinstance(error, TypeError):  # CuPy's, when it meets an array in the host's memory
        check_same_device([x for x in raws if hasattr(x, "dtype")])
    try:
        if isinstance(error, Exception):
            raise alone(op.explain(error, raws)) from None
        raise error
    finally:  # its traceback leads to this frame: a cycle, which would keep the arrays
        del error


def remember(
    node: Node, plan: OpSpec, xs: tuple[Any, ...], raws: tuple[Any, ...], t: TensorBase, y: Any
) -> None:
    """Keep what the rules of the wanted gradients read; see Note [Kept versions]."""
    sources = plan.sources
    readers = plan.readers
    wants = node._needs_grad_mask
    values: list[Any] = []
    kept: list[Storage] = []
    for j in range(len(sources)):
        reader: i64 = readers[j]
        if reader & wants == 0:
            values.append(None)
            continue
        source: i64 = sources[j]
        if source >= 0:
            x = xs[source]
            values.append(raws[source])
            if isinstance(x, TensorBase):
                _keep(x._storage, kept)
        else:
            values.append(y)
            kept.append(t._storage)
    node._kept_values = tuple(values)
    node._watch(kept)


def _keep(storage: Storage, kept: list[Storage]) -> None:
    if storage.inference:
        refuse_inference()
    kept.append(storage)


def apply(op: Any, *xs: Any) -> Any:
    """`op` of tensors (numbers and None pass through as they are); one tensor, or a tuple."""
    if stack.batches != 0:
        xs = lifted(xs)
    raws = tuple([x._array if isinstance(x, TensorBase) else x for x in xs])
    y = evaluate(op, *raws)
    plan: OpSpec = op.plan
    if plan.settles and not (
        isinstance(y, _generic) or (plan.in_rows and type(y) is _ndarray and y.flags.c_contiguous)
    ):
        y = settled(op, y, raws)
    if state.active == 0 and not isinstance(y, tuple):
        for x in xs:
            if isinstance(x, TensorBase) and requires_grad(x):
                return keep_record(op, xs, raws, y)
        return wrap(normal(y))  # nobody asks: nothing to record
    return keep_record(op, xs, raws, y)


def keep_record(op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any) -> Any:
    """Wrap what `op.forward(*raws)` gave as tensors and, if wanted, record the node."""
    plan: OpSpec = op.plan
    if isinstance(y, tuple):
        results = [finish(wrap(normal(part))) for part in y]
    else:
        results = [finish(wrap(normal(y)))]
    node = node_for(op, xs, raws)
    if node is not None:
        if plan.saves:
            remember_all(node, plan, xs, raws, results)
        index: i64 = 0
        for t in results:
            if t._array.dtype.kind in DIFFERENTIABLE:
                t._node = node
                t._output_nr = index
            index += 1
        if len(results) > 1:
            node._output_metas = [(t._array.shape, t._array.dtype) for t in results]
    if stack.tangents != 0:
        push(op, xs, raws, results, isinstance(y, tuple))
        if node is not None:
            keep_tangents(node, plan, xs, results, None)
    if isinstance(y, tuple):
        return tuple(results)
    return results[0]


def node_for(op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...]) -> Node | None:
    """A node with its edges, shapes and dtypes, or None if no input asks for a gradient."""
    plan: OpSpec = op.plan
    if not plan.differentiable:
        return None
    wants: i64 = 0
    bit: i64 = 1
    for x in xs:
        if isinstance(x, TensorBase) and requires_grad(x):
            wants |= bit
        if bit < _LAST_BIT:
            bit <<= 1
    if wants == 0 or (state.active != 0 and not grad_enabled()):
        return None
    nexts: list[Any] = []
    nrs: list[int] = []
    shapes: list[Any] = []
    dtypes: list[Any] = []
    uneven = False
    for x in xs:
        if isinstance(x, TensorBase):
            if requires_grad(x):
                target = edge(x)
                at: i64 = len(nexts)
                if target is None and plan.apart and at < 62:
                    wants &= ~(1 << at)
                nexts.append(target)
                if x._output_nr != 0:
                    uneven = True
                nrs.append(x._output_nr)
            else:
                nexts.append(None)
                nrs.append(0)
            shapes.append(x._array.shape)
            dtypes.append(x._array.dtype)
        else:
            nexts.append(None)
            nrs.append(0)
            shapes.append(None)
            dtypes.append(None)
    node = begin_node(plan, op)
    node._needs_grad_mask = wants
    node._next_edges = tuple(nexts)
    if uneven:
        node._output_nrs = tuple(nrs)
    node._input_shapes = tuple(shapes)
    node._input_dtypes = tuple(dtypes)
    return node


def remember_all(
    node: Node, plan: OpSpec, xs: tuple[Any, ...], raws: tuple[Any, ...], results: list[TensorBase],
    later: bool = False,
) -> None:  # fmt: skip
    """`remember` for any number of inputs and outputs, and through the user's hooks.

    A variadic op saves all its inputs or none: then `saved` holds the inputs in order. With `later`
    the results have their old values still: `packed.pack_written` must follow.
    """
    if state.active != 0:
        saving = saving_now()
        if saving is not None and saving.pack is not None:
            pack_all(node, plan, xs, raws, results, later, saving)
            return
    if plan.variadic:
        node._kept_values = raws
        node._watch([x._storage for x in xs if isinstance(x, TensorBase)])
        return
    values: list[Any] = []
    kept: list[Storage] = []
    for j in range(len(plan.sources)):
        reader: i64 = plan.readers[j]
        if reader & node._needs_grad_mask == 0:
            values.append(None)
            continue
        source: i64 = plan.sources[j]
        if source >= 0:
            values.append(raws[source])
            x = xs[source]
        else:
            x = results[-1 - source]
            values.append(x._array)
        if isinstance(x, TensorBase):
            _keep(x._storage, kept)
    node._kept_values = tuple(values)
    node._watch(kept)
