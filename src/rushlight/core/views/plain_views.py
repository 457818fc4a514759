"""Views of plain tensors, from shape and strides: the way that enters no interpreted frame.

Each function here is asked with what a public function of the same name was given, and gives the
view; or None for whatever is unusual: arrays of another kind, transforms, someone who watches,
arguments that are not plain ints or are out of range. Then the public function looks at them.
The arrays are made by `codegen.strides`. `apart` says that a method may be given its ints one by
one, not in a tuple.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays.kernels import (
    picked,
    view_expand,
    view_permute,
    view_reshape,
    view_select,
    view_slice,
    view_squeeze,
    view_transpose,
    view_unsqueeze,
)
from rushlight.core.dispatch import in_rows
from rushlight.core.grad_mode import quick_mode, state
from rushlight.core.graph import (
    Op,
    PendingOp,
    TensorBase,
    View,
    new_node,
    requires_grad,
    shape_of,
    wrap,
    wrap_alias,
    wrap_as,
)
from rushlight.core.observer import observer
from rushlight.core.record import make_node, save_values
from rushlight.core.transforms.stack import stack
from rushlight.core.views.history import edge_of_view
from rushlight.native import i64

_ndarray: Final = np.ndarray
_slice: Final[Any] = slice
_ellipsis: Final[Any] = ...
_Step = tuple[Any, tuple[Any, ...]]  # a class of view ops, and its parameters
_transpose: Final[Any] = view_transpose
_permute: Final[Any] = view_permute
_select: Final[Any] = view_select
_slice_axis: Final[Any] = view_slice
_unsqueeze: Final[Any] = view_unsqueeze
_squeeze: Final[Any] = view_squeeze
_reshape: Final[Any] = view_reshape
_expand: Final[Any] = view_expand
_picked: Final[Any] = picked
_I64: Final = np.dtype(np.int64)
_MOST: Final = 1024  # ops that are kept


class ViewOps:
    """The op classes that views are recorded as, filled in by `ops.view`."""

    def __init__(self) -> None:
        self.transpose: Any = None
        self.t: Any = None
        self.permute: Any = None
        self.select: Any = None
        self.slice: Any = None
        self.unsqueeze: Any = None
        self.squeeze_all: Any = None
        self.squeeze_one: Any = None
        self.view: Any = None
        self.expand: Any = None
        self.alias: Any = None
        self.rows: Any = None  # no view, but what an index may be, too


view_ops: Final = ViewOps()
_kept: Final[dict[Any, Op]] = {}


def _op_for(step: _Step, shape: tuple[int, ...]) -> Op:
    """The op of a step from inputs of one shape: it learns how its gradient lies, and is kept."""
    key = (step, shape)
    op = _kept.get(key)
    if op is None:
        op = step[0](*step[1])
        op.for_one_layout = True
        if len(_kept) >= _MOST:
            _kept.pop(next(iter(_kept)))
        _kept[key] = op
    return op


def is_plain(x: Any) -> bool:
    """Whether nothing is unusual about a tensor, nor going on."""
    if not isinstance(x, TensorBase) or type(x._array) is not _ndarray:
        return False
    if stack.tangents != 0 or stack.batches != 0 or observer.applied is not None:
        return False
    return not x._storage.inference and (state.active == 0 or quick_mode() >= 0)


def _has_ints(apart: Any, args: tuple[Any, ...]) -> bool:
    """Whether a tensor, which is plain, is followed by ints, or by a tuple of them."""
    if len(args) < 2 or not is_plain(args[0]):
        return False
    return apart is True or (len(args) == 2 and type(args[1]) is not int)


def _show(x: TensorBase, y: Any, step: _Step, how: str = "") -> Any:
    """The tensor that looks at `y`, a part of the memory of `x`."""
    if y is None:
        return None
    storage = x._storage
    t = wrap_as(y, storage)
    recorded = requires_grad(x)
    if state.active != 0 and quick_mode() == 0:
        recorded = False
        how = "no_grad"
    last: Any = None
    if recorded:
        shape = shape_of(x, x._array)
        op = _op_for(step, shape)
        last = (op,)
        target: Any = x if x._node is None else x._node
        if x._view is not None:
            target = edge_of_view(x)
        nr = x._output_nr
        node = new_node(op, (target,), (nr,) if nr != 0 else None, 1)
        node._input_shapes = (shape,)
        node._input_dtypes = (y.dtype,)
        t._node = node
    else:
        last = PendingOp([step])
    old = x._view
    if old is None:
        t._view = View(x, last, how, storage.version)
    else:
        if how == "" or old.how == "inference":
            how = old.how
        t._view = View(old.base, last, how, storage.version, old)
    return t


# --- functions of a tensor and ints ---------------------------------------------------------------
def transpose(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 3 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    y = _transpose(x._array, args[1], args[2])
    if y is None:
        return None
    rank: int = y.ndim
    a: int = args[1]
    b: int = args[2]
    return _show(x, y, (view_ops.transpose, (a - rank if a >= 0 else a, b - rank if b >= 0 else b)))


def t(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    if x._array.ndim != 2:
        return None
    return _show(x, _transpose(x._array, 0, 1), (view_ops.t, (2,)))


def permute(apart: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or not _has_ints(apart, args):
        return None
    x: TensorBase = args[0]
    y = _permute(x._array, *args[1:])
    if y is None:
        return None
    rank: int = y.ndim
    given: Any = args[1] if not isinstance(args[1], int) else args[1:]
    dims: list[int] = []
    for d in given:
        n: int = d
        dims.append(n - rank if n >= 0 else n)
    return _show(x, y, (view_ops.permute, (tuple(dims),)))


def unsqueeze(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 2 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    y = _unsqueeze(x._array, args[1])
    if y is None:
        return None
    d: int = args[1]
    return _show(x, y, (view_ops.unsqueeze, (d - y.ndim if d >= 0 else d,)))


def squeeze(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    n = len(args)
    if n == 0 or n > 2 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    y = _squeeze(x._array) if n == 1 else _squeeze(x._array, args[1])
    if y is None:
        return None
    shape: tuple[int, ...] = shape_of(x, x._array)
    rank = len(shape)
    dims: list[int] = []
    if n == 1:
        for d in range(rank):
            if shape[d] == 1:
                dims.append(d - rank)
        return _show(x, y, (view_ops.squeeze_all, (tuple(dims),)))
    at: int = args[1]
    if at < 0:
        at += rank
    return _show(x, y, (view_ops.squeeze_one, ((at - rank,) if shape[at] == 1 else (),)))


def view(apart: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`view` and `reshape`, of memory in one piece."""
    if kwargs or not _has_ints(apart, args):
        return None
    x: TensorBase = args[0]
    y = _reshape(x._array, *args[1:])
    return None if y is None else _show(x, y, (view_ops.view, (y.shape,)))


def flatten(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    n = len(args)
    if n == 0 or n > 2 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    shape: tuple[int, ...] = shape_of(x, x._array)
    rank = len(shape)
    start: int = 0
    if n == 2:
        if type(args[1]) is not int:
            return None
        start = args[1]
        if start < 0:
            start += rank
    if start < 0 or start >= rank - 1:
        return None
    y = _reshape(x._array, (*shape[:start], -1))
    return None if y is None else _show(x, y, (view_ops.view, (y.shape,)))


def expand(apart: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or not _has_ints(apart, args):
        return None
    x: TensorBase = args[0]
    y = _expand(x._array, *args[1:])
    return None if y is None else _show(x, y, (view_ops.expand, (y.shape,)))


def select(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 3 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    y = _select(x._array, args[1], args[2])
    if y is None:
        return None
    d: int = args[1]
    return _show(x, y, (view_ops.select, (d - y.ndim - 1 if d >= 0 else d, args[2])))


def narrow(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 4 or kwargs or not is_plain(args[0]):
        return None
    for i in range(1, 4):
        if type(args[i]) is not int:
            return None
    x: TensorBase = args[0]
    shape: tuple[int, ...] = shape_of(x, x._array)
    rank = len(shape)
    d: int = args[1]
    if d >= 0:
        d -= rank
    if d < -rank or d >= 0:
        return None
    start: int = args[2]
    length: int = args[3]
    if start < 0:
        start += shape[d]
    if length < 0:
        return None
    y = _slice_axis(x._array, d, start, start + length, 1)
    return _show(x, y, (view_ops.slice, (d, start, start + length)))


def detach(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    return wrap_alias(x._array, x)


# --- x[...] ---------------------------------------------------------------------------------------
def row_of(x: TensorBase, at: int, how: str) -> Any:
    """One of the rows of a tensor that wants no gradient, for those that go through all of them."""
    if not is_plain(x) or requires_grad(x):
        return None
    step = (view_ops.select, (-x._array.ndim, at))
    return _show(x, _select(x._array, 0, at), step, how)


def getitem(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x[item]` of an int, a slice of ints, or a tuple of such, of None and of `...`."""
    if len(args) != 2 or kwargs or not is_plain(args[0]):
        return None
    x: TensorBase = args[0]
    item: Any = args[1]
    kind = type(item)
    if kind is int:
        rank: int = x._array.ndim
        y = _select(x._array, 0, item)
        if y is None:
            return None
        at: int = item
        if at < 0:
            at += x._array.shape[0]
        return _show(x, y, (view_ops.select, (-rank, at)))
    if kind is _slice:
        return _sliced(x, 0, item, True)
    if isinstance(item, TensorBase):
        return _rows_at(x, item)
    if item is None or item is _ellipsis:
        return _index_each(x, (item,))
    return _index_each(x, item) if kind is tuple else None


def _rows_at(x: TensorBase, places: TensorBase) -> Any:
    """The rows that a tensor of int64 names, which are no view."""
    array = x._array
    where = places._array
    if not is_plain(places) or where.dtype is not _I64 or where.ndim == 0 or not in_rows(x, array):
        return None
    y = _picked(0, array, where)
    if y is None:
        return None
    t = wrap(y)
    if requires_grad(x) and (state.active == 0 or quick_mode() > 0):
        op: Any = view_ops.rows
        node = make_node(op, (x, places))
        if node is not None:
            save_values(node, op.plan, (None, places), (None, where), [t])
            t._node = node
    return t


def _sliced(x: TensorBase, d: i64, part: Any, always: bool) -> Any:
    """What a slice shows of an axis; `x` itself if that is all of it, unless `always`."""
    shape: tuple[int, ...] = shape_of(x, x._array)
    first = part.start
    last = part.stop
    by = part.step
    if (
        d >= len(shape)
        or not (first is None or type(first) is int)
        or not (last is None or type(last) is int)
        or not (by is None or type(by) is int)
    ):
        return None
    n = shape[d]
    if not always and (by is None or by == 1) and (first is None or first == 0):
        if last is None or last >= n:
            return x
    if by is not None and by <= 0:
        return None
    start, stop, step = part.indices(n)
    if stop < start:
        stop = start
    y = _slice_axis(x._array, d, start, stop, step)
    return _show(x, y, (view_ops.slice, (d - len(shape), start, stop, step)))


def _index_each(x: TensorBase, items: tuple[Any, ...]) -> Any:
    """The items of an index, one view after the other, as PyTorch records them."""
    wide: i64 = 0
    rests = 0
    for item in items:
        kind = type(item)
        if kind is int or kind is _slice:
            wide += 1
        elif item is _ellipsis and rests == 0:
            rests = 1
        elif item is not None:
            return None
    rank: i64 = x._array.ndim
    if wide > rank:
        return None
    d: i64 = 0
    found: Any = x
    for item in items:
        now: TensorBase = found
        if item is _ellipsis:
            d += rank - wide
        elif item is None:
            y = _unsqueeze(now._array, d)
            if y is None:
                return None
            found = _show(now, y, (view_ops.unsqueeze, (d - y.ndim,)))
            d += 1
        elif type(item) is int:
            y = _select(now._array, d, item)
            if y is None:
                return None
            at: int = item
            if at < 0:
                at += now._array.shape[d]
            found = _show(now, y, (view_ops.select, (d - y.ndim - 1, at)))
        else:
            found = _sliced(now, d, item, False)
            if found is None:
                return None
            d += 1
    if found is x:
        return _show(x, x._array[...], (view_ops.alias, ()))
    return found
