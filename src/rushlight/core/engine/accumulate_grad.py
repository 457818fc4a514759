"""Where gradients end: `.grad` of leaves, and of interior tensors that keep theirs.

Note [In place or not]
    As in PyTorch. The first gradient is kept as it is where nobody else holds it and its strides
    are the leaf's (or need not be: `layout.relaxed`), else copied. A later one is added in place,
    so that whoever holds `.grad` sees it; but out of place when gradients are recorded
    (`create_graph`), for they are part of a graph.

Note [All leaves or none]
    A pass that is interrupted gives no leaf its gradient, or all. So what can be interrupted comes
    first: copies, sums that are not made in place. Then all is put in place in one piece: by
    compiled code, or by one call into NumPy's and Python's own. Where the user's hooks look at the
    leaves, they get their gradients one by one (`store`).

Called by the engine, and by a leaf's `AccumulateGrad` node when it is called by hand.
"""

from __future__ import annotations

import _thread
from functools import partial
from operator import call, iadd
from threading import local
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.layouts import is_dense
from rushlight.core.engine.task import Pass
from rushlight.core.grad_mode import COMPILED, state, within
from rushlight.core.graph import TensorBase, normal, requires_grad, wrap
from rushlight.dtypes import contiguous_format
from rushlight.locks import lock

__all__ = [
    "Deposit",
    "accumulate",
    "commit",
    "keep_grad",
    "layout",
    "own_copy",
    "prepared",
    "store",
]

layout: Final[Any] = local()  # `relaxed` is set by `autograd.enforce_grad_layout_policy`
_lock: Final = lock()
_threads: Final = _thread._count
_ndarray: Final = np.ndarray


class Deposit:
    """A gradient about to be put in place: `.grad` becomes `value`, or that array is added to the
    array of the gradient that is there (`old`)."""

    def __init__(self, leaf: TensorBase, old: TensorBase | None, value: Any) -> None:
        self.leaf = leaf
        self.old = old
        self.value = value


def store(run: Pass, leaf: TensorBase, g: Any, mine: bool) -> None:
    """Add a gradient to `.grad`; `mine`: nobody else holds the array, so the leaf may keep it."""
    if _threads() > 0:
        with _lock:
            _store(run, leaf, g, mine)
    else:
        _store(run, leaf, g, mine)


def _store(run: Pass, leaf: TensorBase, g: Any, mine: bool) -> None:
    deposit = prepared(run, leaf, g, mine)
    if deposit is not None:
        _put(deposit)


def prepared(run: Pass, leaf: TensorBase, g: Any, mine: bool) -> Deposit | None:
    """What `store` will put in place; None if nothing."""
    if not requires_grad(leaf):
        return None  # it did when the graph was made
    if leaf._node is not None:  # it stopped asking, and was then written with what asks
        raise RuntimeError("leaf variable has been moved into the graph interior")
    if run.tensors:
        return accumulated(leaf, g, run.record)
    g = normal(g)
    held: Any = leaf._accumulated_grad
    if held is None:
        like = leaf._array
        if (
            not mine
            or g.base is not None
            or (g.strides != like.strides and not getattr(layout, "relaxed", False))
        ):
            g = own_copy(g, like)
        return Deposit(leaf, None, wrap(g))
    old: TensorBase = held
    if old._array.base is not None and _overlaps(old._array):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    return Deposit(leaf, old, g)


def commit(deposits: list[Deposit]) -> None:
    """Put gradients in place, all or none; see Note [All leaves or none]."""
    if COMPILED:
        for deposit in deposits:
            _put(deposit)
        return
    steps: list[Any] = []
    for deposit in deposits:
        old = deposit.old
        if old is None:
            steps.append(partial(setattr, deposit.leaf, "_accumulated_grad", deposit.value))
        elif not getattr(old._array.flags, "writeable", True):
            steps.append(partial(setattr, old, "array", old._array + deposit.value))
            old._storage.written()
        else:
            steps.append(partial(iadd, old._array, deposit.value))
            old._storage.written()
    done: list[Any] = []
    while len(done) < len(steps):
        try:
            done.extend(map(call, steps[len(done) :]))
        except (
            RuntimeWarning
        ):  # turned into an error by the user's filter: it is added all the same
            done.append(None)


def _put(deposit: Deposit) -> None:
    old = deposit.old
    if old is None:
        deposit.leaf._accumulated_grad = deposit.value
        return
    array = old._array
    if not getattr(array.flags, "writeable", True):  # CuPy's arrays do not say
        old._array = array + deposit.value
    else:
        state.busy = True
        try:
            array += deposit.value
        except (
            RuntimeWarning
        ):  # see Note [Busy] in `core.fp_warnings`; what was added in place is added
            state.busy = False
        state.busy = False
    old._storage.written()


def accumulate(leaf: TensorBase, g: TensorBase, record: bool) -> None:
    """`store` of a gradient that is a tensor."""
    deposit = accumulated(leaf, g, record)
    if deposit is not None:
        _put(deposit)


def accumulated(leaf: TensorBase, g: TensorBase, record: bool) -> Deposit | None:
    """`prepared` for a gradient that is a tensor: part of a graph with `record`, else one that may
    have a tangent, which is added where there is a gradient already (at once, for that runs ops),
    and dropped where there is none."""
    held: Any = leaf._accumulated_grad
    if held is None:
        copied = recorded_copy(g, leaf) if record else wrap(own_copy(g._array, leaf._array))
        return Deposit(leaf, None, copied)
    if record:
        return Deposit(leaf, None, held + g)
    with within(False, False):
        held.add_(g)
    return None


def _overlaps(x: Any) -> bool:
    """Whether an array was expanded: an axis longer than 1 with stride 0."""
    for stride, n in zip(x.strides, x.shape, strict=True):
        if stride == 0 and n > 1:
            return True
    return False


def own_copy(g: Any, like: Any) -> Any:
    """A copy of a gradient in the layout of the leaf it belongs to."""
    if type(g) is _ndarray and like.flags.c_contiguous:
        return g.copy()
    if not is_dense(like):
        return v.laid_out(g, None)
    out = v.empty_as(like, g.dtype)
    if out.shape != g.shape:
        return v.copy(g)
    v.overwrite(out, g)
    return out


def recorded_copy(g: Any, leaf: TensorBase) -> Any:
    """`own_copy` of a gradient that is part of a graph."""
    if not is_dense(leaf._array) or g._array.shape != leaf._array.shape:
        return g.clone(memory_format=contiguous_format)
    copy: Any = wrap(v.empty_as(leaf._array, g._array.dtype))
    return copy.copy_(g)


def keep_grad(t: TensorBase, g: Any, tensors: bool) -> None:
    """`retain_grad`: an interior tensor keeps a copy, and the sum of that and later gradients."""
    held: Any = t._accumulated_grad
    if tensors:
        t._accumulated_grad = g.clone(memory_format=contiguous_format) if held is None else held + g
    elif held is None:
        t._accumulated_grad = wrap(v.laid_out(g._array, None))
    else:
        t._accumulated_grad = wrap(normal(held._array + g._array))
