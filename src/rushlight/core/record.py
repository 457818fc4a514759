"""Running an op on tensors: compute on the raw arrays, then record a node if someone wants it.

`unary`, `binary` and `apply` make new tensors; writing in place stands in `inplace`, looking into
a tensor in `views`. The public functions in `ops` call these and nothing else.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays.host import check_same_device
from rushlight.arrays.layouts import arranged, settled
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import grad_enabled, inference_enabled, state
from rushlight.core.graph import (
    Node,
    Op,
    OpSpec,
    Storage,
    TensorBase,
    begin_node,
    requires_grad,
    shape_of,
    wrap,
)
from rushlight.core.saved.packed import pack_all, refuse_inference, saving_now
from rushlight.errors import alone
from rushlight.native import i64

__all__ = [
    "DIFFERENTIABLE",
    "apply",
    "binary",
    "columns_of",
    "evaluate",
    "normal",
    "pair",
    "plain_pair",
    "recording",
    "remember",
    "unary",
]

_ndarray: Final = np.ndarray
_generic: Final = np.generic
_asarray: Final = np.asarray
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_LAST_BIT: Final[i64] = 1 << 62
DIFFERENTIABLE: Final = "fcVW"  # kinds of dtype that carry gradients (V, W: ml_dtypes')


class Slots:
    """Filled by higher layers: `elementwise` resolves dtypes and devices off the fast path,
    `edge_of_view` gives the edge of a view whose base may have changed, `batched` takes over while
    `vmap` is live, `profile` stands around every op while a profiler is, or who answers for ops
    (`utils.around`) and hands on to the profiler's own, `timed`."""

    def __init__(self) -> None:
        self.elementwise: Any = None
        self.edge_of_view: Any = None
        self.renewed: Any = None  # gives a stale view its new node
        self.levels: i64 = 0  # of forward mode, alive anywhere; see `core.transforms.forward_ad`
        self.batches: i64 = 0  # levels of vmap, alive anywhere; see `core.transforms.vmap`
        self.batched: Any = None  # batched(op, raws): the result, or None if no input is batched
        self.lifted: Any = None  # lifted(xs): the operands at the deepest level among them
        self.lift_operands: Any = None  # beside(target, others): the operands of a write, likewise
        self.copy_if_saved: Any = None  # copy_if_saved(op, target, others): what a write's op reads
        self.check_captured: Any = None  # check_captured(target, op): before a write
        self.profile: Any = None  # profile(op, raws): `compute`, timed
        self.timed: Any = None  # what a profiler put there, or would have
        self.push: Any = None
        self.push_view: Any = None
        self.push_views: Any = None
        self.keep_tangents: Any = None


slots: Final = Slots()


def normal(y: Any) -> Any:
    """A raw result as an array: NumPy turns 0-d results into scalars."""
    if isinstance(y, _generic):
        return _asarray(y)
    return y


def recording() -> bool:
    """Whether ops that run now may be recorded."""
    return state.active == 0 or grad_enabled()


def edge(t: TensorBase) -> Any:
    """Where the gradient of an input goes. Ask before making the node that will have this edge: a
    view may be given a new node here, and numbers must grow along the edges. None: nowhere, and
    nothing is kept for it; so it is with views that were not recorded, though their base asks."""
    if t._view is not None:
        return slots.edge_of_view(t)
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
        profile = slots.profile  # once: another thread's profiler may end meanwhile
        if profile is not None:
            return profile(op, raws)
    return compute(op, raws)


def compute(op: Any, raws: tuple[Any, ...]) -> Any:
    """`evaluate`, seen by no profiler."""
    if slots.batches != 0:
        found = slots.batched(op, raws)
        if found is not None:
            return found
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


def in_rows(t: TensorBase, array: Any) -> bool:
    """Whether `array`, the one of `t`, lies in memory row by row: looked up once for each array,
    since NumPy makes an object of flags each time it is asked."""
    if t._contiguous_array is array:
        return True
    if type(array) is _ndarray and array.flags.c_contiguous:
        t._contiguous_array = array
        return True
    return False


def columns_of(a: TensorBase, b: TensorBase) -> int:
    """Which of two matrices lie in memory column by column: bit 0 the first, bit 1 the second."""
    found = 0
    x = a._array
    if not in_rows(a, x) and type(x) is _ndarray and x.flags.f_contiguous:
        found = 1
    x = b._array
    if not in_rows(b, x) and type(x) is _ndarray and x.flags.f_contiguous:
        found |= 2
    return found


def unary(op: Any, a: TensorBase) -> Any:
    """`op` of one tensor, element by element."""
    x = a._array
    dtype = x.dtype
    if not (dtype is _F32 or dtype is _F64) or state.active != 0:
        return slots.elementwise(op, (a,))
    y = compute(op, (x,))
    if type(y) is not _ndarray:
        y = normal(y)
    if in_rows(a, x):
        t = wrap(y)
        t._contiguous_array = y
    else:
        y = settled(op, y, (x,))
        t = wrap(y)
    if requires_grad(a):
        plan: OpSpec = op.plan
        if plan.differentiable:
            target = edge(a)  # before the node takes its number: it may renew a view
            node = begin_node(plan, op)
            node._next_edges = (target,)
            node._needs_grad_mask = 1
            if a._output_nr != 0:
                node._output_nrs = (a._output_nr,)
            if plan.saves:
                remember(node, plan, (a,), (x,), t, y)
            t._node = node
    return t


def binary(op: Any, a: Any, b: Any) -> Any:
    """`op` of two operands, element by element; either may be a Python number."""
    if isinstance(a, TensorBase):
        if isinstance(b, TensorBase):
            return pair(op, a, b)
        if type(b) is float or type(b) is int:
            return with_number(op, a, b, False)
    elif isinstance(b, TensorBase) and (type(a) is float or type(a) is int):
        return with_number(op, b, a, True)
    return slots.elementwise(op, (a, b))


def plain_pair(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors are float32 or float64 alike, on one device, and no mode is active."""
    xa = a._array
    xb = b._array
    dtype = xa.dtype
    return (
        (dtype is _F32 or dtype is _F64)
        and xb.dtype is dtype
        and state.active == 0
        and type(xa) is type(xb)
    )


def pair(op: Op, a: TensorBase, b: TensorBase) -> Any:
    """An op of two tensors alike that is element-wise, or whose rules need nothing but them:
    the hottest path there is."""
    xa = a._array
    xb = b._array
    dtype = xa.dtype
    if (
        not (dtype is _F32 or dtype is _F64)
        or xb.dtype is not dtype
        or state.active != 0
        or type(xa) is not type(xb)
    ):
        return slots.elementwise(op, (a, b))
    state.busy = True
    try:
        y = op.forward_binary(xa, xb)
    except BaseException as error:
        y = rescued(op, error, (xa, xb))
    state.busy = False
    if type(y) is not _ndarray:
        y = normal(y)
    plan = op.plan
    rows = in_rows(a, xa) and in_rows(b, xb)
    if not rows and plan.spread:
        y = arranged(y, (xa, xb))
    t = wrap(y)
    if rows:
        t._contiguous_array = y
    wants: i64 = 0
    if requires_grad(a):
        wants = 1
    if requires_grad(b):
        wants += 2
    if wants == 0:
        return t
    if not plan.differentiable:
        return t
    direct = plan.direct
    ta: Any = None
    tb: Any = None
    uneven = False
    if wants & 1 != 0:
        ta = edge(a)
        uneven = a._output_nr != 0
        if ta is None and plan.apart:
            wants -= 1
    if wants & 2 != 0:
        tb = edge(b)
        uneven = uneven or b._output_nr != 0
        if tb is None and plan.apart:
            wants -= 2
    node = begin_node(plan, op)
    node._needs_grad_mask = wants
    node._next_edges = (ta, tb)
    if uneven:
        node._output_nrs = (
            a._output_nr if wants & 1 != 0 else 0,
            b._output_nr if wants & 2 != 0 else 0,
        )
    sa = shape_of(a, xa)
    sb = shape_of(b, xb)
    if sa is sb or sa == sb:
        node._fits_as_is = direct
        t._shape = sa
        t._shape_of = y
    else:
        node._input_shapes = (sa, sb)
    if direct:
        node._compiled_op = op
    if plan.pair:
        first = plan.first & wants != 0
        second = plan.second & wants != 0
        sta = a._storage
        stb = b._storage
        if (first and sta.inference) or (second and stb.inference):
            refuse_inference()
        if not first:
            node._first_storage = stb
            node._version_sum = stb.version
            node._kept_values = (None, xb)
        elif not second:
            node._first_storage = sta
            node._version_sum = sta.version
            node._kept_values = (xa, None)
        else:
            node._first_storage = sta
            node._second_storage = stb
            node._version_sum = sta.version + stb.version
            node._kept_values = (xa, xb)
    elif plan.saves:
        remember(node, plan, (a, b), (xa, xb), t, y)
    t._node = node
    return t


def with_number(op: Op, a: TensorBase, number: Any, swapped: bool) -> Any:
    """An element-wise op of a tensor and a Python number (`swapped`: number first)."""
    x = a._array
    dtype = x.dtype
    left: Any = number if swapped else a
    right: Any = a if swapped else number
    if not (dtype is _F32 or dtype is _F64) or state.active != 0:
        return slots.elementwise(op, (left, right))
    xa = number if swapped else x
    xb = x if swapped else number
    state.busy = True
    try:
        y = op.forward_binary(xa, xb)
    except BaseException as error:
        y = rescued(op, error, (xa, xb))
    state.busy = False
    if type(y) is not _ndarray:
        y = normal(y)
    if in_rows(a, x):
        t = wrap(y)
        t._contiguous_array = y
    else:
        y = arranged(y, (x,))
        t = wrap(y)
    plan = op.plan
    if not requires_grad(a) or not plan.differentiable:
        return t
    target = edge(a)
    node = begin_node(plan, op)
    if target is not None or not plan.apart:
        node._needs_grad_mask = 2 if swapped else 1
    node._next_edges = (None, target) if swapped else (target, None)
    if a._output_nr != 0:
        node._output_nrs = (0, a._output_nr) if swapped else (a._output_nr, 0)
    if plan.direct:
        node._fits_as_is = True
        node._compiled_op = op
    if plan.saves:
        remember(node, plan, (left, right), (xa, xb), t, y)
    t._node = node
    return t


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
    if slots.batches != 0:
        xs = slots.lifted(xs)
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
    if slots.levels != 0:
        slots.push(op, xs, raws, results, isinstance(y, tuple))
        if node is not None:
            slots.keep_tangents(node, plan, xs, results, None)
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
