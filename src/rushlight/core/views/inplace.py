"""Writing in place: the checks, the write, the version, and the history it leaves.

`write(op, target, *others)` computes `op(target, *others)` and puts the result into `target`.

Note [Taking turns]
    A write computes from the old values and then puts the result in their place; NumPy lets other
    threads run meanwhile. Of two threads that add to one tensor, one would undo what the other did.
    So while there are several threads, those that write into one memory take turns (`turn`). Not
    where the user's code may be called in the middle, which might wait for another thread.
"""

from __future__ import annotations

import math
from _thread import _count as _threads
from typing import Any, Final

import numpy as np

from rushlight.arrays.batched import bottom
from rushlight.arrays.host import address
from rushlight.arrays.kernels import Kernel
from rushlight.arrays.vocabulary import copy, empty, overwrite
from rushlight.core.dispatch import in_rows
from rushlight.core.grad_mode import current, quick_mode, state
from rushlight.core.graph import (
    DIFFERENTIABLE,
    UNSOUGHT,
    Node,
    Op,
    OpSpec,
    TensorBase,
    View,
    hooks_of,
    normal,
    requires_grad,
    shape_of,
)
from rushlight.core.observer import observer
from rushlight.core.record import compute, evaluate, make_node, recording, save_values
from rushlight.core.saved.packed import before_write, pack_written, saving_now
from rushlight.core.transforms import lift
from rushlight.core.transforms.inplace_tangents import (
    Pending,
    inplace_tangent,
    old_tangent,
    write_tangent,
)
from rushlight.core.transforms.stack import check_captured, stack
from rushlight.core.transforms.tangents import keep_tangents
from rushlight.core.views.copy_slices import make_copy_slices
from rushlight.core.views.errors import raise_forbidden
from rushlight.core.views.history import (
    Written,
    edge_of_view,
    order_of,
    set_history,
    view_ops_from_base,
)
from rushlight.errors import OVERLAPS, sentence
from rushlight.locks import lock
from rushlight.native import i64

_ndarray: Final = np.ndarray
_FLOAT_MAX: Final = 3.4028234663852886e38
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_TURNS: Final = 64
_turns: Final[list[Any]] = [lock() for _ in range(_TURNS)]


def turn(target: TensorBase) -> Any:
    """What a write into `target` holds from reading to writing, for `with`; None if it need not.
    See Note [Taking turns]."""
    if _threads() == 0:
        return None
    if observer.profile is not None or stack.tangents != 0 or stack.batches != 0:
        return None
    if state.active != 0 and saving_now() is not None:
        return None
    return _turns[(id(target._storage) >> 4) % _TURNS]


def check_writable(target: TensorBase, overlap: bool, others: tuple[Any, ...] = ()) -> None:
    """Refuse a write that autograd could not account for, before anything is touched.

    `others` are the other operands: the write is recorded if one of them wants a gradient.
    """
    if state.active != 0:
        if state.level != 0:
            check_captured(target)
        before_write(target)
    if target._storage.inference:
        mode = current()
        if mode is None or not mode.inference:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed."
                "You can make a clone to get a normal tensor before doing inplace update."
                "See https://github.com/pytorch/rfcs/pull/17 for more details."
            )
    if recording():
        asked = requires_grad(target)
        if not asked:
            for x in others:
                if isinstance(x, TensorBase) and requires_grad(x):
                    asked = True
        if asked:
            check_history(target)
    if overlap and overlaps(target._array):
        raise RuntimeError(OVERLAPS)


def check_history(target: TensorBase) -> None:
    """Refuse a recorded write to a leaf, or to a view that cannot be rebased."""
    view = target._view
    stale = False
    if view is not None:
        if view.how != "":
            raise_forbidden(target, view, True)
        if (view.base._node is None or view.base._requires_grad) and requires_grad(target):
            raise RuntimeError(
                sentence(
                    "a view of a leaf Variable that requires grad is being used in an in-place "
                    "operation.",
                    "",
                    "To set a part of it (`x[0] = 5`), write inside `with torch.no_grad():`; to "
                    "compute with it, write to a copy: `y = x.clone()`, then `y[0] = 5`.",
                )
            )
        stale = view.version != target._storage.version
    if target._requires_grad and not stale:
        raise RuntimeError(
            sentence(
                "a leaf Variable that requires grad is being used in an in-place operation.",
                "",
                "To update it, write inside `with torch.no_grad():`; to compute with it, write "
                "out of place (`y = x + 1`).",
            )
        )


def check_partial_overlap(target: TensorBase, others: tuple[Any, ...]) -> None:
    """Refuse an operand that shares part of the written memory: its values would change midway."""
    for x in others:
        if isinstance(x, TensorBase) and x._storage is target._storage and x is not target:
            a, b = target._array, x._array
            if not (a.flags.forc and b.flags.forc) or a.size == 0 or b.size == 0:
                continue
            start, other = address(a), address(b)
            if start == other and a.strides == b.strides and a.shape == b.shape:
                continue
            if start < other + b.nbytes and other < start + a.nbytes:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to "
                    "tensor refer to a single memory location. Please clone() the tensor before "
                    "performing the operation."
                )


def overlaps(array: Any) -> bool:
    """Whether two elements surely share memory: an axis longer than 1 with stride 0. Elements of
    two members of a batch may, too."""
    if stack.batches != 0:
        array = bottom(array)
    strides: tuple[int, ...] = array.strides
    if 0 not in strides:
        return False
    shape: tuple[int, ...] = array.shape
    if 0 in shape:
        return False
    for d in range(len(strides)):
        if strides[d] == 0 and shape[d] > 1:
            return True
    return False


def lift_operands(target: TensorBase, others: tuple[Any, ...]) -> tuple[Any, ...]:
    """The other operands of a write: inside `vmap`, as `target`'s level sees them."""
    if stack.batches == 0:
        return others
    return lift.lift_to_target(target, others)


def write(op: Any, target: TensorBase, *others: Any) -> Any:
    """target = op(target, *others), in place. Raw operands are used as they are: callers that
    promote dtypes pass an op that computes in the right one."""
    if state.level != 0:
        check_captured(target, op)
    others = lift_operands(target, others)
    check_writable(target, True, others)
    mine = turn(target)
    if mine is not None:
        with mine:
            return _write(op, target, others)
    return _write(op, target, others)


def _write(op: Any, target: TensorBase, others: tuple[Any, ...]) -> Any:
    old: TensorBase = lift.copy_if_saved(op, target, others) if stack.batches != 0 else target
    raws = tuple([old._array, *[x._array if isinstance(x, TensorBase) else x for x in others]])
    y = normal(evaluate(op, *raws))
    return write_raw(op, target, (target, *others), raws, y)


def fill_plain(target: TensorBase, value: float) -> bool:
    """Write a number everywhere, where nothing is recorded; False if this is no such write, and
    nothing was done."""
    array = target._array
    if not is_plain(target, array) or not array.flags.writeable:
        return False
    if array.dtype is _F32 and _FLOAT_MAX < abs(value) < math.inf:
        return False  # too large: others tell of it
    array.fill(value)
    target._storage.written()
    return True


def copy_plain(target: TensorBase, source: TensorBase) -> bool:
    """Likewise, write a tensor of the same shape and dtype that has memory of its own."""
    array = target._array
    other = source._array
    if (
        not is_plain(target, array)
        or other.dtype is not array.dtype
        or type(other) is not type(array)
        or source._storage is target._storage
        or (recording() and requires_grad(source))
        or shape_of(source, other) != shape_of(target, array)
        or not array.flags.writeable
    ):
        return False
    array[...] = other
    target._storage.written()
    return True


def is_plain(target: TensorBase, array: Any) -> bool:
    """Whether a tensor is of floats in rows, and nobody records a write to it or sees it."""
    dtype = array.dtype
    return (
        (dtype is _F32 or dtype is _F64)
        and (state.active == 0 or quick_mode() >= 0)
        and stack.batches == 0
        and stack.tangents == 0
        and _threads() == 0
        and not target._storage.inference
        and in_rows(target, array)
        and not (recording() and requires_grad(target))
    )


def write_plain(op: Op, target: TensorBase, xs: tuple[Any, ...]) -> bool:
    """An element-wise op of float32s or float64s of one shape, and numbers, written into its first
    operand, where nothing is recorded: nearly every write is such. False if this one is not, and
    nothing was done."""
    array = target._array
    dtype = array.dtype
    if not is_plain(target, array):
        return False
    record = recording()
    raws: list[Any] = [array]
    for i in range(1, len(xs)):
        x = xs[i]
        if isinstance(x, TensorBase):
            t: TensorBase = x
            raw = t._array
            if raw.dtype is not dtype or (record and requires_grad(t)):
                return False
            if raw is not array and (
                t._storage is target._storage or shape_of(t, raw) != shape_of(target, array)
            ):
                return False
            raws.append(raw)
        elif type(x) is float or type(x) is int:
            raws.append(x)
        else:
            return False
    kernel = op.forward_kernel
    if kernel is UNSOUGHT:
        op.seek_kernels()
        kernel = op.forward_kernel
    if type(kernel) is Kernel and kernel.into((array,), *raws):
        target._storage.written()
        return True
    y = compute(op, tuple(raws))
    if type(y) is not _ndarray or y.dtype is not dtype:
        return False  # a comparison, or a result without dimensions
    overwrite(array, y)
    target._storage.written()
    return True


def write_raw(
    op: Any, target: TensorBase, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any
) -> Any:
    """Put the computed `y` into `target`, whose op, inputs and raw inputs are given."""
    array = target._array
    if y.shape != array.shape:
        raise RuntimeError(
            f"output with shape {list(array.shape)} doesn't match the broadcast shape "
            f"{list(y.shape)}\n"
            "A tensor written in place keeps its shape: write out of place (`y = x + other`)."
        )
    plan: OpSpec = op.plan
    node = make_node(op, xs)
    if node is not None and plan.saves:
        # the rules read the old value of what is now overwritten: keep a copy, if at all
        before = raws
        for j in range(len(plan.sources)):
            reader: i64 = plan.readers[j]
            if plan.sources[j] == 0 and reader & node._needs_grad_mask != 0:
                before = (copy(array), *raws[1:])
        # Without the tensor itself: its copy has no version to watch. A second mention of it is
        # watched, so `x.mul_(x)` fails in backward, as in PyTorch.
        save_values(node, plan, (None, *xs[1:]), before, [target], True)
    pending: Pending | None = None
    old: Any = None
    if stack.tangents != 0:
        pending = inplace_tangent(op, target, xs, raws, y)
        old = old_tangent(target) if node is not None and node._kept_values else None
    if y is not array:
        overwrite(array, y)
    settle(target, node, plan)
    if pending is not None:
        write_tangent(target, pending)
        if node is not None:
            keep_tangents(node, plan, (None, *xs[1:]), [target], old)
    return target


def settle(target: TensorBase, node: Node | None, plan: OpSpec | None) -> None:
    """Raise the version and give the written tensor its new history."""
    target._storage.written()
    if node is None or target._array.dtype.kind not in DIFFERENTIABLE:
        return  # integers have no history, whatever was copied into them
    if plan is not None and node._has_packed:
        pack_written(node, plan, target)
    elif plan is not None and node._kept_values:
        # a kept result has the version after the write
        stamp: i64 = 0
        for j in range(len(plan.sources)):
            source: i64 = plan.sources[j]
            if source < 0 and node._kept_values[j] is not None:
                stamp += 1
        node._version_sum += stamp
    view = target._view
    if view is not None:
        rebase(target, view, node)
        return
    set_history(target, node, 0)


def keeps_result(node: Node) -> bool:
    """Whether a rule reads the result of the op."""
    plan: OpSpec = node._op.plan
    if plan.variadic:
        return False
    for j in range(len(node._kept_values)):
        source: i64 = plan.sources[j]
        if source < 0 and node._kept_values[j] is not None:
            return True
    return False


def rebase(target: TensorBase, view: View, fn: Node) -> None:
    """The in-place op of `fn` wrote the view `target`: its base gets a new history."""
    base = view.base
    ops = view_ops_from_base(target, view)
    node = make_copy_slices(fn, ops, order_of(base._array))
    first: Any = None
    nr = 0
    if base._node is not None:
        first = base._node
        nr = base._output_nr
    elif base._requires_grad:
        first = base
    nrs = fn._output_nrs
    node._next_edges = (first, *fn._next_edges[1:])
    if first is None:
        x = base._array
        node.alone = (x.shape, x.dtype, empty(x, (0,), x.dtype))
    if nr != 0 or nrs is not None:
        rest: tuple[int, ...] = tuple([0] * (len(fn._next_edges) - 1)) if nrs is None else nrs[1:]
        node._output_nrs = (nr, *rest)
    node._needs_grad_mask = 1
    set_history(base, node, 0)
    if fn._op is not None and keeps_result(fn):
        edge_of_view(target)  # which now has a node
        if target._node is not None:
            hooks_of(fn).written = Written(target._node, node)
