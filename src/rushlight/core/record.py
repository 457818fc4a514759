"""Running an op on tensors: compute on the raw arrays, then record a node if someone wants it.

`apply` does all of it for any op. Element-wise ops of one or two operands have a faster way in
`core.dispatch`; writing in place is in `core.views.inplace`, looking into a tensor in
`core.views.views`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays.batched import deepest_level
from rushlight.arrays.host import check_same_device, put_off, settled
from rushlight.arrays.layouts import lay_out
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import grad_enabled, inference_enabled, quick_mode, state
from rushlight.core.graph import (
    DIFFERENTIABLE,
    UNSOUGHT,
    Node,
    Op,
    OpSpec,
    Storage,
    TensorBase,
    new_node,
    normal,
    requires_grad,
    shape_of,
    wrap,
)
from rushlight.core.observer import observer
from rushlight.core.saved.packed import Saving, packed_value, refuse_inference, saving_now
from rushlight.core.transforms.lift import lift
from rushlight.core.transforms.stack import Level, stack
from rushlight.core.transforms.tangents import keep_tangents, push
from rushlight.core.views.history import edge_of_view
from rushlight.errors import alone
from rushlight.native import i64

_ndarray: Final = np.ndarray
_generic: Final = np.generic
_LAST_BIT: Final[i64] = 1 << 62


def recording() -> bool:
    """Whether ops that run now may be recorded."""
    return state.active == 0 or grad_enabled()


def unrecorded(*xs: Any) -> bool:
    """Whether nobody would see of which ops a function of these is made: no graph, no transform,
    no one who watches. What is kept of calls is kept for those that record, too: not of this."""
    if stack.batches != 0 or stack.tangents != 0:
        return False
    mode = 1 if state.active == 0 else quick_mode()
    if mode < 0 or (mode == 1 and any_requires_grad(xs)):
        return False
    observer.keep_nothing()
    return True


def edge(t: TensorBase) -> Any:
    """Where the gradient of an input goes. Ask before making the node that will have this edge: a
    view may be given a new node here, and numbers must grow along the edges. None: nowhere, and
    nothing is kept for it; the same goes for views that were not recorded, even if their base
    requires a gradient."""
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
        level: Level | None = deepest_level(raws)
        if level is not None:
            return level.compute(op, raws)
    known: Op = op
    kernel = known.forward_kernel
    if kernel is not None:
        if kernel is UNSOUGHT:
            known.seek_kernels()
            kernel = known.forward_kernel
        made = None if kernel is None or known.kernel_may_warn else kernel(*raws)
        if made is not None:
            return made
    state.busy = True
    try:
        y = known.forward_kernel(*raws) if known.kernel_may_warn else None
        if y is None:
            y = op.forward(*raws)
    except BaseException as error:
        y = rescue(op, error, raws)
    state.busy = False
    return y


def rescue(op: Any, error: BaseException, raws: tuple[Any, ...]) -> Any:
    """After a forward that raised: compute again if it was but a warning, else PyTorch's error."""
    state.busy = False
    if isinstance(error, RuntimeWarning):
        return quietly(op.forward, *raws)
    if isinstance(error, TypeError) and any(map(put_off, raws)):
        # some of CuPy's functions ask no operand that is not an array of its own
        return compute(op, tuple([settled(x) for x in raws]))
    if isinstance(error, TypeError):  # CuPy's, when it meets an array in the host's memory
        check_same_device([x for x in raws if hasattr(x, "dtype")])
    if isinstance(error, NotImplementedError) and str(error).startswith("Could not run 'aten::"):
        rest = str(error).split("'", 2)[2]  # it named a word: users know the op
        error = NotImplementedError(f"Could not run 'aten::{op.name}'{rest}")
    try:
        if isinstance(error, Exception):
            raise alone(op.explain(error, raws)) from None
        raise error
    finally:  # its traceback leads to this frame: a cycle, which would keep the arrays
        del error


def apply(op: Any, *xs: Any) -> Any:
    """`op` of tensors (numbers and None pass through as they are); one tensor, or a tuple."""
    if stack.batches != 0:
        xs = lift(xs)
    raws = tuple([x._array if isinstance(x, TensorBase) else x for x in xs])
    y = compute(op, raws) if state.active == 0 else evaluate(op, *raws)
    plan: OpSpec = op.plan
    if plan.settles and not (
        isinstance(y, _generic)
        or (
            type(y) is _ndarray
            and (
                plan.in_rows
                or y.ndim == 0
                or (plan.few_axes and y.ndim < 4)
                or (plan.spread and all_in_rows(xs))
            )
            and y.flags.c_contiguous
        )
        or (plan.in_rows and type(y) is tuple and lie_in_rows(y))
        or (plan.by_channels and lie_by_channels(raws[0], y))
    ):
        y = lay_out(op, y, raws)
    return keep_record(op, xs, raws, y)


def lie_in_rows(several: Any) -> bool:
    """Whether these are arrays of NumPy's that lie in memory row by row."""
    for y in several:
        if type(y) is not _ndarray or not y.flags.c_contiguous:
            return False
    return True


def lie_by_channels(x: Any, y: Any) -> bool:
    """Whether results lie row by row and are to: `x` does, and channels are not its last axis in
    memory in any reading of its strides, which with a size of 1 has several."""
    if type(x) is not _ndarray or not x.flags.c_contiguous or (x.ndim > 3 and 1 in x.shape):
        return False
    return lie_in_rows(y if type(y) is tuple else (y,))


def all_in_rows(xs: tuple[Any, ...]) -> bool:
    """Whether all tensors are known to lie in memory row by row."""
    for x in xs:
        if isinstance(x, TensorBase) and x._contiguous_array is not x._array:
            return False
    return True


def apply_one(op: Any, a: TensorBase) -> Any:
    """`apply` to one tensor, where no level of a transform is open."""
    if state.active != 0 and quick_mode() < 0:
        return apply(op, a)
    x = a._array
    y = compute(op, (x,))
    plan: OpSpec = op.plan
    if plan.settles and not (
        isinstance(y, _generic)
        or (
            type(y) is _ndarray
            and (plan.in_rows or (plan.few_axes and y.ndim < 4))
            and y.flags.c_contiguous
        )
        or (plan.in_rows and type(y) is tuple and lie_in_rows(y))
        or (plan.as_input and lie_in_rows((x,)) and lie_in_rows(y if type(y) is tuple else (y,)))
    ):
        y = lay_out(op, y, (x,))
    if isinstance(y, tuple):
        return keep_record(op, (a,), (x,), y)
    t = wrap(y if type(y) is _ndarray else normal(y))
    if observer.applied is not None:
        observer.applied.append((op, (a,), t))
    if (
        not plan.differentiable
        or not requires_grad(a)
        or (state.active != 0 and quick_mode() == 0)
        or t._array.dtype.kind not in DIFFERENTIABLE
    ):
        return t
    target: Any = a if a._node is None else a._node
    if a._view is not None:
        target = edge_of_view(a)
    nr = a._output_nr
    node = new_node(op, (target,), (nr,) if nr != 0 else None, 1)
    node._input_shapes = (shape_of(a, x),)
    node._input_dtypes = (x.dtype,)
    if plan.saves:
        save_values(node, plan, (a,), (x,), [t])
    t._node = node
    return t


def keep_record(op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any) -> Any:
    """Wrap what `op.forward(*raws)` gave as tensors and, if wanted, record the node."""
    node = make_node(op, xs)
    if isinstance(y, tuple) or state.active != 0:
        several = keep_records(op, node, xs, raws, y)
        if observer.applied is not None:
            observer.applied.append((op, xs, several))
        return several
    t = wrap(y if type(y) is _ndarray else normal(y))
    if observer.applied is not None:
        observer.applied.append((op, xs, t))
    if node is not None:
        plan: OpSpec = op.plan
        if plan.saves:
            save_values(node, plan, xs, raws, [t])
        if t._array.dtype.kind in DIFFERENTIABLE:
            t._node = node
    return t


def keep_records(
    op: Any, node: Node | None, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any
) -> Any:
    """`keep_record` of several results, or while a mode is active."""
    plan: OpSpec = op.plan
    several = isinstance(y, tuple)
    results = [finish(wrap(normal(part))) for part in (y if several else (y,))]
    if node is not None:
        if plan.saves:
            save_values(node, plan, xs, raws, results)
        index: i64 = 0
        for t in results:
            if t._array.dtype.kind in DIFFERENTIABLE:
                t._node = node
                t._output_nr = index
            index += 1
        if len(results) > 1:
            node._output_metas = [(t._array.shape, t._array.dtype) for t in results]
    if stack.tangents != 0:
        push(op, xs, raws, results, several)
        if node is not None:
            keep_tangents(node, plan, xs, results, None)
    return tuple(results) if several else results[0]


def make_node(op: Any, xs: tuple[Any, ...]) -> Node | None:
    """A node with its edges, shapes and dtypes, or None if no input wants a gradient."""
    plan: OpSpec = op.plan
    if (
        not plan.differentiable
        or not any_requires_grad(xs)
        or (state.active != 0 and not grad_enabled())
    ):
        return None
    wants: i64 = 0
    bit: i64 = 1
    edges: list[Any] = []
    nrs: list[int] = []
    shapes: list[Any] = []
    dtypes: list[Any] = []
    uneven = False
    for x in xs:
        target: Any = None
        nr: i64 = 0
        if isinstance(x, TensorBase):
            t: TensorBase = x
            if requires_grad(t):
                target = t._node if t._node is not None else t
                if t._view is not None:
                    target = edge_of_view(t)
                nr = t._output_nr
                if target is not None or not plan.apart or bit == _LAST_BIT:
                    wants |= bit
                if nr != 0:
                    uneven = True
            shapes.append(t._array.shape)
            dtypes.append(t._array.dtype)
        else:
            shapes.append(None)
            dtypes.append(None)
        edges.append(target)
        nrs.append(nr)
        if bit < _LAST_BIT:
            bit <<= 1
    node = new_node(op, tuple(edges), tuple(nrs) if uneven else None, wants)
    node._input_shapes = tuple(shapes)
    node._input_dtypes = tuple(dtypes)
    return node


def any_requires_grad(xs: tuple[Any, ...]) -> bool:
    """Whether an input wants a gradient."""
    for x in xs:
        if isinstance(x, TensorBase) and requires_grad(x):
            return True
    return False


def save_values(
    node: Node, plan: OpSpec, xs: tuple[Any, ...], raws: tuple[Any, ...], results: list[TensorBase],
    later: bool = False,
) -> None:  # fmt: skip
    """Keep what the rules of the wanted gradients read; see Note [Kept versions]. Hooks in force
    pack it: inputs in the order of their names, then results.

    A variadic op keeps all its inputs. With `later` the results have their old values still:
    `packed.pack_written` must follow.
    """
    saving: Saving | None = None
    if state.active != 0:
        saving = saving_now()
        if saving is not None and saving.pack is None:
            saving = None
    wants = node._needs_grad_mask
    sources = plan.sources
    n = len(xs) if plan.variadic else len(sources)
    values: list[Any] = [None] * n
    kept: list[Storage] = []
    for at in range(n):
        j = at if saving is None or plan.variadic else plan.order[at]
        source: i64 = at
        if not plan.variadic:
            reader: i64 = plan.readers[j]
            if reader & wants == 0:
                continue
            source = sources[j]
        x: Any = xs[source] if source >= 0 else results[-1 - source]
        value: Any = raws[source] if source >= 0 else x._array
        if saving is not None:
            value = packed_value(node, saving, x, value, source, later)
        elif isinstance(x, TensorBase):
            storage: Storage = x._storage
            if storage.inference:
                refuse_inference()
            kept.append(storage)
        values[j] = value
    node._kept_values = tuple(values)
    if saving is None:
        watch(node, kept)
    else:
        node._has_packed = True


def watch(node: Node, kept: list[Storage]) -> None:
    """Let a node watch these storages, as they are now, for writes."""
    n = len(kept)
    node._first_storage = kept[0] if n > 0 else None
    node._second_storage = kept[1] if n > 1 else None
    node._other_storages = tuple(kept[2:]) if n > 2 else ()
    versions: i64 = 0
    for storage in kept:
        versions += storage.version
    node._version_sum = versions
