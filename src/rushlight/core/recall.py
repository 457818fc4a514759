"""Calls that were made before: what a public function's arguments came down to, kept.

A public function checks its arguments and chooses an op. It does so in interpreted code, which
costs more than computing on small tensors does. But the choice depends on little: the shapes,
dtypes and strides of the tensors, and the other arguments themselves. So functions that say so
(`function(..., settles=True)` in `ops.registry`) are asked once for each such signature; the op is
kept in the function's `Memo`, and the next call of the same signature applies it at once.

Note [What may be kept]
    A function may be asked once only if the op it chooses depends on nothing else: not on values of
    tensors, not on whether they want gradients, not on a mode. It warns of nothing. The default
    dtype is asked for by some: whoever sets it calls `forget_calls`. While a mode is active other
    than `no_grad` nothing is recalled.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays.kernels import look
from rushlight.core.dispatch import binary, in_rows, unary
from rushlight.core.elementwise import elementwise
from rushlight.core.families import Elementwise, ViewOp
from rushlight.core.grad_mode import quick_mode, state
from rushlight.core.graph import Op, TensorBase, shape_of
from rushlight.core.observer import observer
from rushlight.core.record import apply, apply_one
from rushlight.core.transforms.stack import stack
from rushlight.core.views.views import apply_view
from rushlight.native import i64
from rushlight.return_types import Named

_ndarray: Final = np.ndarray
_slice: Final[Any] = slice
# types of arguments whose values never change
_CONSTANT: Final[set[Any]] = {
    int, bool, str, type(None), type(...), dtypes.dtype, dtypes.memory_format,
}  # fmt: skip
_MOST: Final = 512  # signatures of one function: a loop with ever new numbers must not fill memory
_VIEW: Final[i64] = 0
_UNARY: Final[i64] = 1
_BINARY: Final[i64] = 2
_ELEMENTWISE: Final[i64] = 3
_ONE: Final[i64] = 4
_MANY: Final[i64] = 5


class Settled:
    """What a call comes down to: an op, and the arguments that are its inputs. `places[i]` is the
    number of the tensor that input i is; -1: it is `others[i]`, no tensor. `last` is called with
    the result, to give several of them their names."""

    def __init__(self, op: Op, places: tuple[int, ...], others: tuple[Any, ...], last: Any) -> None:
        self.op = op
        self.places = places
        self.others = others
        self.last = last
        self.then: list[Settled] = []  # what is applied to the result, in turn
        one = len(places) == 1 and places[0] == 0
        self.way: i64 = _MANY
        if isinstance(op, Elementwise):
            self.way = _UNARY if one else _BINARY if len(places) == 2 else _ELEMENTWISE
        elif isinstance(op, ViewOp):
            self.way = _VIEW
        elif one:
            self.way = _ONE


class Memo:
    """The calls of one function that were made before, by signature."""

    def __init__(self) -> None:
        self.calls: dict[Any, Settled] = {}
        memos.append(self)


memos: Final[list[Memo]] = []


def forget_calls() -> None:
    """What functions choose may be another from now on."""
    for memo in memos:
        memo.calls.clear()


dtypes.when_default_changes.append(forget_calls)


def _read(x: Any, parts: list[Any], tensors: list[TensorBase]) -> bool:
    """Add what counts of an argument to a signature; False if it cannot be part of one."""
    if isinstance(x, TensorBase):
        t: TensorBase = x
        array = t._array
        if type(array) is not _ndarray:
            return False
        parts.append(array.dtype)
        parts.append(shape_of(t, array))
        if not in_rows(t, array):
            parts.append(array.strides)
        tensors.append(t)
        return True
    kind = type(x)
    parts.append(kind)
    if kind is float:
        if x == 0.0:  # it may be negative
            return False
        parts.append(x)
    elif kind is tuple or kind is list:
        parts.append(len(x))
        for part in x:
            if not _read(part, parts, tensors):
                return False
    elif kind is _slice:
        for bound in (x.start, x.stop, x.step):
            if bound is not None and type(bound) is not int:
                return False
            parts.append(bound)
    elif kind in _CONSTANT:
        parts.append(x)
    else:
        return False
    return True


def _signature(
    args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[TensorBase]
) -> tuple[Any, ...] | None:
    parts: list[Any] = []
    for x in args:
        if not _read(x, parts, tensors):
            return None
    if kwargs:
        for name, x in kwargs.items():
            parts.append(name)
            if not _read(x, parts, tensors):
                return None
    return tuple(parts)


def _short_signature(args: tuple[Any, ...]) -> Any:
    """`_signature` of one tensor that lies row by row, and at most one argument that is an int, a
    bool, a string or None; None of all others. The two never equal each other."""
    n = len(args)
    if n == 0 or n > 2 or not isinstance(args[0], TensorBase):
        return None
    t: TensorBase = args[0]
    array = t._array
    if t._contiguous_array is not array and not in_rows(t, array):
        return None
    if n == 1:
        return array.dtype, shape_of(t, array)
    x = args[1]
    kind = type(x)
    if kind is int or x is None or kind is bool or kind is str:
        return array.dtype, shape_of(t, array), kind, x
    return None


def recall(memo: Memo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call, if one of the same signature was made before; else None."""
    if state.active != 0 and quick_mode() < 0:
        return None
    if stack.batches != 0 or stack.tangents != 0:
        return None
    signature: Any = None if kwargs else _short_signature(args)
    if signature is not None:
        found = memo.calls.get(signature)
        if found is None:
            return None
        return _finish(found, _apply_to_one(found, args[0]))
    tensors: list[TensorBase] = []
    signature = _signature(args, kwargs, tensors)
    if signature is None:
        return None
    found = memo.calls.get(signature)
    if found is None:
        return None
    op = found.op
    way = found.way
    if len(tensors) == 1 and len(found.places) == 1:
        y = _apply_to_one(found, tensors[0])
    else:
        xs = _inputs(found, tensors)
        if way == _BINARY:
            y = binary(op, xs[0], xs[1])
        elif way == _ELEMENTWISE:
            y = elementwise(op, xs)
        else:
            y = apply(op, *xs)
    return _finish(found, y)


def _finish(found: Settled, y: Any) -> Any:
    """What follows the first op of a call."""
    if found.then:
        for step in found.then:
            y = _apply_to_one(step, y)
    return y if found.last is None else found.last(y)


def _apply_to_one(found: Settled, t: TensorBase) -> Any:
    """The op applied to the one tensor there is, and to what is no tensor."""
    way = found.way
    op = found.op
    if way == _UNARY:
        return unary(op, t)
    if way == _VIEW:
        return apply_view(op, t)
    if way == _ONE:
        return apply_one(op, t)
    xs = _inputs(found, [t])
    if way == _BINARY:
        return binary(op, xs[0], xs[1])
    if way == _ELEMENTWISE:
        return elementwise(op, xs)
    return apply(op, *xs)


def _inputs(found: Settled, tensors: list[TensorBase]) -> tuple[Any, ...]:
    xs: list[Any] = []
    i: i64 = 0
    for place in found.places:
        xs.append(tensors[place] if place >= 0 else found.others[i])
        i += 1
    return tuple(xs)


def ask(memo: Memo, fn: Any, finish: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call of `fn`, or of `finish` with the op and inputs that it gives. If that
    was one op, or several of one input in a row, they are kept."""
    if observer.applied is not None:  # for a function that calls this one, or in another thread
        return fn(*args, **kwargs) if finish is None else finish(*fn(*args, **kwargs))
    applied: list[Any] = []
    observer.applied = applied
    try:
        y = fn(*args, **kwargs) if finish is None else finish(*fn(*args, **kwargs))
    finally:
        observer.applied = None
    if applied and in_a_row(applied):
        last = applied[-1][2]
        if last is y:
            _remember(memo, args, kwargs, applied, None)
        elif isinstance(last, tuple) and isinstance(y, Named) and are_same(last, y):
            _remember(memo, args, kwargs, applied, type(y))
    return y


def in_a_row(applied: list[Any]) -> bool:
    """Whether each op but the first was applied to the result of the one before it, alone."""
    before: Any = None
    for entry in applied:
        if entry is None:  # a warning
            return False
        _, xs, t = entry
        if before is not None and (len(xs) != 1 or xs[0] is not before):
            return False
        before = t
    return True


def are_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two tuples hold the same objects."""
    if len(a) != len(b):
        return False
    for i in range(len(a)):  # mypyc makes a generator of the other form
        if a[i] is not b[i]:
            return False
    return True


def _remember(
    memo: Memo, args: tuple[Any, ...], kwargs: dict[str, Any], applied: list[Any], last: Any
) -> None:
    """Keep what a call came down to, if its inputs are among its arguments."""
    op, xs, _ = applied[0]
    if len(memo.calls) >= _MOST or (state.active != 0 and quick_mode() < 0):
        return
    tensors: list[TensorBase] = []
    signature = _signature(args, kwargs, tensors)
    if signature is None:
        return
    if len({id(t) for t in tensors}) != len(tensors):
        return  # which of two equal ones an input is cannot be told
    places: list[int] = []
    others: list[Any] = []
    for x in xs:
        at = -1
        if isinstance(x, TensorBase):
            for i in range(len(tensors)):
                if tensors[i] is x:
                    at = i
            if at < 0:  # the function made it itself
                return
            others.append(None)
        else:
            others.append(x)
        places.append(at)
    if len([at for at in places if at >= 0]) != len(tensors):
        return  # one that is no input may have been read as a number
    if len(places) == 1 and places[0] == 0 and not isinstance(op, Elementwise):
        op = _own(op, tensors[0]._array)
    found = Settled(op, tuple(places), tuple(others), last)
    for at in range(1, len(applied)):
        op, xs, _ = applied[at]
        if not isinstance(op, Elementwise):
            op = _own(op, xs[0]._array)
        found.then.append(Settled(op, (0,), (None,), None))
    memo.calls[signature] = found


def _own(op: Any, x: Any) -> Any:
    """An op of its own for arrays that lie as `x`: it knows how its view of them lies, and learns
    how that of the gradient lies (`engine.backward_of`)."""
    make: Any = type(op)
    own: Op = make(*op.parameters())
    own.for_one_layout = True
    if isinstance(op, ViewOp):
        own.forward_kernel = look(x, op.forward(x))
    return own
