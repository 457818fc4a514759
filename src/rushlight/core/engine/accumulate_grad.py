"""Where gradients end: `.grad` of leaves, and the `AccumulateGrad` nodes that users see there.

Note [In place or not]
    As in PyTorch. The first gradient is kept as it is where nobody else holds it and its strides
    are the leaf's (or need not be: `layout.relaxed`), else copied. A later one is added in place,
    so that whoever holds `.grad` sees it; but out of place when gradients are recorded
    (`create_graph`), for they are part of a graph.

Note [All leaves or none]
    A pass that is interrupted gives no leaf its gradient, or all. So what can be interrupted comes
    first: copies, sums that are not made in place. Then all is put in place in one piece: by
    compiled code, or by one call into NumPy's and Python's own. Where the user's hooks look at the
    leaves, they get their gradients one by one (`accumulate_locked`).

`AccumulateGrad` is the node of a leaf as users meet it. The engine itself goes to the leaf; the
node runs when it is called by hand.
"""

from __future__ import annotations

import _thread
import weakref
from collections.abc import Callable
from functools import partial
from operator import call, iadd
from sys import getrefcount
from threading import local
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import is_sparse
from rushlight.arrays.layouts import is_dense
from rushlight.core.engine.hooks import LeafTable, RemovableHandle, add_to_hooks
from rushlight.core.grad_mode import COMPILED, _lock, grad_enabled, state, within
from rushlight.core.graph import TensorBase, extra_of, hooks_of, normal, requires_grad, wrap
from rushlight.core.node_api import GraphNode, visible
from rushlight.dtypes import contiguous_format
from rushlight.errors import OVERLAPS
from rushlight.locks import lock
from rushlight.native import mypyc_attr

layout: Final[Any] = local()  # `relaxed` is set by `autograd.enforce_grad_layout_policy`
leaves_lock: Final = lock()
other_threads: Final = _thread._count
_ndarray: Final = np.ndarray
_LAST: Final = 2**64 - 1  # the number PyTorch gives leaves' nodes: they run before all others


class Deposit:
    """A gradient about to be put in place: `.grad` becomes `value`, or that array is added to the
    array of the gradient that is there (`old`)."""

    def __init__(self, leaf: TensorBase, old: TensorBase | None, value: Any) -> None:
        self.leaf = leaf
        self.old = old
        self.value = value


def accumulate_locked(leaf: TensorBase, g: Any, mine: bool, tensors: bool, record: bool) -> None:
    """Add a gradient to `.grad`; see `prepare`."""
    if other_threads() > 0:
        with leaves_lock:
            _store(leaf, g, mine, tensors, record)
    else:
        _store(leaf, g, mine, tensors, record)


def _store(leaf: TensorBase, g: Any, mine: bool, tensors: bool, record: bool) -> None:
    deposit = prepare(leaf, g, mine, tensors, record)
    if deposit is not None:
        _wrap_new([deposit])
        _put(deposit)


def _holders(g: Any) -> int:
    """How often the memory that a view shows is held."""
    whole = g.base
    return getrefcount(whole)


_BY_ONE: Final = _holders(np.empty((1, 2)).T)


def whole_of(g: Any) -> Any:
    """The array that the view `g` shows all of, as it lies, if no other view and nobody else holds
    it; else None. The gradient of a layer's weight is such a view: of a product, turned twice."""
    if type(g) is not _ndarray or _holders(g) != _BY_ONE:
        return None
    whole = g.base
    if (
        type(whole) is _ndarray
        and whole.base is None
        and whole.dtype is g.dtype
        and whole.shape == g.shape
        and whole.strides == g.strides
    ):
        return whole
    return None


def prepare(leaf: TensorBase, g: Any, mine: bool, tensors: bool, record: bool) -> Deposit | None:
    """What `commit` will put in place; None if nothing.

    `mine`: nobody else holds the array, so the leaf may keep it. `tensors`, `record`: see
    `GraphTask`.
    """
    if not leaf._requires_grad and not requires_grad(leaf):
        return None  # it did when the graph was made
    if leaf._node is not None:  # requires_grad was switched off, then a recorded value written
        raise RuntimeError("leaf variable has been moved into the graph interior")
    if tensors:
        return prepare_tensor(leaf, g, record)
    if type(g) is not _ndarray:
        g = normal(g)
    held: Any = leaf._accumulated_grad
    if held is not None and type(held._array) is not _ndarray and is_sparse(held._array):
        if not is_sparse(g):
            return Deposit(leaf, None, g + held._array)  # a sparse one cannot become dense in place
    if held is None:
        like = leaf._array
        if (
            not mine
            or g.base is not None
            or (g.strides != like.strides and not getattr(layout, "relaxed", False))
        ):
            g = own_copy(g, like)
        return Deposit(leaf, None, g)
    old: TensorBase = held
    if old._array.base is not None and _overlaps(old._array):
        raise RuntimeError(OVERLAPS)
    return Deposit(leaf, old, g)


def commit(deposits: list[Deposit]) -> None:
    """Put gradients in place, all or none; see Note [All leaves or none]."""
    _wrap_new(deposits)
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


def _wrap_new(deposits: list[Deposit]) -> None:
    """Make tensors of the arrays that are to become `.grad`."""
    for deposit in deposits:
        if deposit.old is None and not isinstance(deposit.value, TensorBase):
            deposit.value = wrap(deposit.value)


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
        except RuntimeWarning:  # see Note [Busy]: what was added in place is added
            state.busy = False
        finally:
            state.busy = False
    old._storage.written()


def accumulate(leaf: TensorBase, g: TensorBase, record: bool) -> None:
    """`accumulate_locked` of a gradient that is a tensor."""
    deposit = prepare_tensor(leaf, g, record)
    if deposit is not None:
        _put(deposit)


def prepare_tensor(leaf: TensorBase, g: TensorBase, record: bool) -> Deposit | None:
    """`prepare` for a gradient that is a tensor: part of a graph with `record`, else one that may
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
    """A copy of a gradient in the layout of the leaf it belongs to. A sparse one stays sparse, as
    in PyTorch, and so does a dense one, whatever the leaf is."""
    if type(g) is _ndarray and type(like) is _ndarray and like.flags.c_contiguous:
        return g.copy()
    if is_sparse(g):
        return v.copy(g)
    if is_sparse(like):
        return v.laid_out(g, None)
    if not is_dense(like):
        return v.laid_out(g, None)
    out = v.empty_as(like, g.dtype)
    if out.shape != g.shape:
        return v.copy(g)
    v.overwrite(out, g)
    return out


def recorded_copy(g: Any, leaf: TensorBase) -> Any:
    """`own_copy` of a gradient that is part of a graph."""
    if is_sparse(g._array) or is_sparse(leaf._array):
        return g.clone()
    if not is_dense(leaf._array) or g._array.shape != leaf._array.shape:
        return g.clone(memory_format=contiguous_format)
    copy: Any = wrap(v.empty_as(leaf._array, g._array.dtype))
    return copy.copy_(g)


# --- the node -------------------------------------------------------------------------------------
@mypyc_attr(allow_interpreted_subclasses=True)
class AccumulateGradBase(GraphNode):
    """The end of a path: adds the gradient to `variable.grad`."""

    variable: TensorBase

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        hooks = hooks_of(self)
        with _lock:
            if hooks.post is None:
                hooks.post = LeafTable()
                keep_node(self)
        return add_to_hooks(hooks.post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        hooks = hooks_of(self)
        with _lock:
            if hooks.pre is None:
                hooks.pre = LeafTable()
                keep_node(self)
        return add_to_hooks(hooks.pre, fn)

    def _sequence_nr(self) -> int:
        return _LAST

    def _only_output(self) -> Any:
        x = self.variable._array
        return x.shape, x.dtype, x

    def _run(self, g: Any, tensors: bool) -> Any:
        leaf = self.variable
        if g is not None:
            given: TensorBase = g if isinstance(g, TensorBase) else wrap(g)
            accumulate(leaf, given, tensors and grad_enabled())
        if leaf._extra is not None and leaf._extra.post_accumulate:
            for hook in list(leaf._extra.post_accumulate.values()):
                hook(leaf)
        return ()


def keep_node(node: AccumulateGradBase) -> None:
    """Let the leaf keep its node: see `LeafTable`."""
    extra = extra_of(node.variable)
    with _lock:
        if extra.post_accumulate is None:
            extra.post_accumulate = LeafTable()
        extra.post_accumulate.node = node


AccumulateGrad: Final[Any] = visible(AccumulateGradBase, "AccumulateGrad")


def accumulate_of(leaf: TensorBase) -> Any:
    """The AccumulateGrad node of a leaf: one object for as long as anyone holds it."""
    extra = extra_of(leaf)
    node: Any = None if extra.accumulate is None else extra.accumulate()
    if node is None:
        with _lock:
            node = None if extra.accumulate is None else extra.accumulate()
            if node is None:
                node = AccumulateGrad()
                node.variable = leaf
                extra.accumulate = weakref.ref(node)
    return node
