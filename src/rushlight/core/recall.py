"""Calls that were made before: what a public function's arguments came down to, kept.

A public function checks its arguments, chooses an op, or several, and applies them. It does so in
interpreted code, which costs more than computing on small tensors does. But the choice depends on
little: the shapes, dtypes and strides of the tensors, whether they want gradients, and the other
arguments themselves. So functions that say so (`function(..., settles=True)` in `ops.registry`) are
asked once for each such signature. While they run, each op that is applied writes itself down
(`observer.applied`); that list of steps is kept in the function's `Memo`, and the next call of the
same signature goes through them at once.

Note [What may be kept]
    A function may be asked once only if the ops it applies depend on nothing else: not on values of
    tensors, not on a mode, not on random numbers. All that it computes it computes by ops. What
    warns (`ops.warned`) or writes in place on the way is not kept. The default dtype is asked for
    by some: whoever sets it calls `forget_calls`. While a mode is active other than `no_grad`
    nothing is recalled.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays.kernels import look
from rushlight.core.dispatch import binary, in_rows, unary
from rushlight.core.elementwise import elementwise, plain
from rushlight.core.families import Elementwise, ViewOp
from rushlight.core.grad_mode import quick_mode, state
from rushlight.core.graph import Op, TensorBase, requires_grad, shape_of
from rushlight.core.observer import observer
from rushlight.core.record import apply, apply_one
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import write_plain
from rushlight.core.views.views import apply_view, look_at_many
from rushlight.native import i64
from rushlight.return_types import Named
from rushlight.size import Size

_ndarray: Final = np.ndarray
_slice: Final[Any] = slice
# types of arguments whose values never change
_CONSTANT: Final[set[Any]] = {
    int, bool, str, type(None), type(...), dtypes.dtype, dtypes.memory_format,
}  # fmt: skip
_SEQUENCES: Final[set[Any]] = {tuple, list, Size}
_NUMBERS: Final[set[Any]] = {int, bool, float, type(None)}
_MOST: Final = 512  # signatures of one function: a loop with ever new numbers must not fill memory
_FEW: Final = 8  # so many tensors are compared with each other
_VIEW: Final[i64] = 0
_UNARY: Final[i64] = 1
_BINARY: Final[i64] = 2
_ELEMENTWISE: Final[i64] = 3
_ALIKE: Final[i64] = 4  # element-wise, of operands whose dtypes need no promotion
_ONE: Final[i64] = 5
_MANY: Final[i64] = 6
_PARTS: Final[i64] = 7


class Step:
    """One op of a call. `places[i]` is the number of the tensor that input i is, the arguments
    counted first and then the results of the steps before; -1: it is `others[i]`, no tensor.
    `parts` are the views that lead to each result, of an op that gives several."""

    def __init__(
        self, op: Op, places: tuple[int, ...], others: tuple[Any, ...], alike: bool,
        parts: list[Any] | None,
    ) -> None:  # fmt: skip
        self.op = op
        self.parts = parts
        self.places = places
        self.others = others
        one = len(places) == 1
        self.way: i64 = _MANY
        if isinstance(op, Elementwise):
            self.way = _UNARY if one else _BINARY if len(places) == 2 else _ELEMENTWISE
            if self.way == _ELEMENTWISE and alike:
                self.way = _ALIKE
        elif parts is not None:
            self.way = _PARTS
        elif isinstance(op, ViewOp):
            self.way = _VIEW
        elif one:
            self.way = _ONE


class Settled:
    """What a call comes down to: the steps, and which tensor is the result; -1: all results of the
    last step, as a tuple of the type `kind`."""

    def __init__(self, steps: list[Step], result: int, kind: Any, alone: bool) -> None:
        self.first = steps[0]
        self.steps = steps
        self.result = result
        self.kind = kind
        self.alone = alone  # one op of one tensor, whose only result is that of the call


class Memo:
    """The calls of one function that were made before, by signature. `write` is how a function
    writes that puts the result into its first argument, for all that `write_plain` leaves."""

    def __init__(self, write: Any = None) -> None:
        self.calls: dict[Any, Settled] = {}
        self.write = write
        memos.append(self)


memos: Final[list[Memo]] = []


def forget_calls() -> None:
    """What functions choose may be another from now on."""
    for memo in memos:
        memo.calls.clear()


dtypes.when_default_changes.append(forget_calls)


# --- signatures -----------------------------------------------------------------------------------
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
        if requires_grad(t):
            parts.append(True)
        n = len(tensors)
        if n < _FEW:
            for j in range(n):
                if tensors[j] is t:
                    parts.append(-1 - j)  # not 1, which equals True
        tensors.append(t)
        return True
    kind = type(x)
    parts.append(kind)
    if kind is float:
        parts.append(x if x != 0.0 else repr(x))  # -0.0 equals 0.0
    elif kind in _SEQUENCES:
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
    bool, a string or None; None of all others."""
    n = len(args)
    if n == 0 or n > 2 or not isinstance(args[0], TensorBase):
        return None
    t: TensorBase = args[0]
    array = t._array
    if t._contiguous_array is not array and not in_rows(t, array):
        return None
    recorded = requires_grad(t)
    if n == 1:
        if recorded:
            return array.dtype, shape_of(t, array), True
        return array.dtype, shape_of(t, array)
    x = args[1]
    kind = type(x)
    if kind is int or x is None or kind is bool or kind is str:
        if recorded:
            return array.dtype, shape_of(t, array), True, kind, x
        return array.dtype, shape_of(t, array), kind, x
    return None


# --- calling again --------------------------------------------------------------------------------
def recall(memo: Memo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call, if one of the same signature was made before; else None."""
    if state.active != 0 and quick_mode() < 0:
        return None
    if stack.batches != 0 or stack.tangents != 0:
        return None
    signature: Any = None if kwargs or memo.write is not None else _short_signature(args)
    if signature is not None:
        found = memo.calls.get(signature)
        if found is None:
            return None
        if found.alone:
            return _apply_to_one(found.first, args[0])
        return _run(found, [args[0]])
    tensors: list[TensorBase] = []
    signature = _signature(args, kwargs, tensors)
    if signature is None:
        return None
    found = memo.calls.get(signature)
    if found is None:
        return None
    if memo.write is not None:
        return _write(memo, found.first, tensors)
    if found.alone:
        return _apply_to_one(found.first, tensors[0])
    return _run(found, tensors)


def _apply_to_one(step: Step, t: TensorBase) -> Any:
    """A step whose input is one tensor."""
    way = step.way
    if way == _UNARY:
        return unary(step.op, t)
    if way == _VIEW:
        return apply_view(step.op, t)
    if way == _PARTS and step.parts is not None:
        return look_at_many(step.op, t, step.parts)
    return apply_one(step.op, t)


def _run(found: Settled, tensors: list[TensorBase]) -> Any:
    """All steps, one after the other."""
    y: Any = None
    for step in found.steps:
        way = step.way
        if len(step.places) == 1:
            y = _apply_to_one(step, tensors[step.places[0]])
        else:
            xs = _inputs(step, tensors)
            if way == _BINARY:
                y = binary(step.op, xs[0], xs[1])
            elif way == _ELEMENTWISE:
                y = elementwise(step.op, xs)
            else:
                y = apply(step.op, *xs)
        if isinstance(y, tuple):
            tensors.extend(y)
        else:
            tensors.append(y)
    if found.result >= 0:
        return tensors[found.result]
    return found.kind(y)


def _inputs(step: Step, tensors: list[TensorBase]) -> tuple[Any, ...]:
    xs: list[Any] = []
    i: i64 = 0
    for place in step.places:
        xs.append(tensors[place] if place >= 0 else step.others[i])
        i += 1
    return tuple(xs)


def _write(memo: Memo, step: Step, tensors: list[TensorBase]) -> Any:
    """The step of a function that writes into its first argument."""
    xs = _inputs(step, tensors)
    if step.way <= _ALIKE and write_plain(step.op, tensors[0], xs):
        return tensors[0]
    return memo.write(step.op, xs)


# --- calling for the first time -------------------------------------------------------------------
def ask(memo: Memo, fn: Any, finish: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call of `fn`, or of `finish` with the op and inputs that it gives, and keep
    what it came down to if that can be done."""
    if observer.applied is not None:  # for a function that calls this one, or in another thread
        return fn(*args, **kwargs) if finish is None else finish(*fn(*args, **kwargs))
    applied: list[Any] = []
    observer.applied = applied
    try:
        if memo.write is None:
            y = fn(*args, **kwargs) if finish is None else finish(*fn(*args, **kwargs))
        else:
            op, xs = fn(*args, **kwargs)
    finally:
        observer.applied = None
    if memo.write is not None:
        y = finish(op, xs)
        if not applied:  # no warning, and nothing computed on the way
            _remember(memo, args, kwargs, [(op, xs, y)], y)
    elif applied and None not in applied:
        _remember(memo, args, kwargs, applied, y)
    return y


def _remember(
    memo: Memo, args: tuple[Any, ...], kwargs: dict[str, Any], applied: list[Any], y: Any
) -> None:
    """Keep what a call came down to, if all there is came from its arguments."""
    if state.active != 0 and quick_mode() < 0:
        return
    tensors: list[TensorBase] = []
    signature = _signature(args, kwargs, tensors)
    if signature is None:
        return
    if len(tensors) > _FEW and len({id(t) for t in tensors}) != len(tensors):
        return  # the signature does not say which are the same, and so not which an input is
    used: set[int] = set()
    values: list[Any] = list(tensors)
    steps: list[Step] = []
    for entry in applied:
        result = entry[2]
        step = _step(entry, values, used)
        if step is None:
            return
        steps.append(step)
        if isinstance(result, tuple):
            values.extend(result)
        else:
            values.append(result)
    for t in tensors:
        if id(t) not in used:
            return  # it may have been read as a number
    last = applied[-1][2]
    at = _place(y, values) if isinstance(y, TensorBase) else -1
    if at < len(tensors) and memo.write is None:  # an argument itself, or not among the results
        if not (isinstance(y, (Named, tuple)) and isinstance(last, tuple) and _are_same(last, y)):
            return
        at = -1
    if len(memo.calls) >= _MOST:
        memo.calls.clear()
    alone = len(steps) == 1 and steps[0].places == (0,) and last is y and at >= 0
    memo.calls[signature] = Settled(steps, at, type(y), alone)


def _step(entry: Any, values: list[Any], used: set[int]) -> Step | None:
    """One step, its inputs found among the values so far; None if one is not there."""
    op: Any = entry[0]
    xs: tuple[Any, ...] = entry[1]
    places: list[int] = []
    others: list[Any] = []
    for x in xs:
        at = -1
        if isinstance(x, TensorBase):
            at = _place(x, values)
            if at < 0:  # made otherwise than by ops
                return None
            used.add(id(x))
            others.append(None)
        elif type(x) in _NUMBERS:
            others.append(x)
        else:
            return None
        places.append(at)
    parts: list[Any] | None = None
    if len(entry) > 3:
        parts = [_own(part, xs[0]._array) for part in entry[3]]
    elif len(places) == 1 and places[0] >= 0 and not isinstance(op, Elementwise):
        op = _own(op, xs[0]._array)
    return Step(op, tuple(places), tuple(others), plain(xs), parts)


def _place(x: Any, values: list[Any]) -> int:
    """The number of a value; -1 if it is none of them."""
    for i in range(len(values)):
        if values[i] is x:
            return i
    return -1


def _are_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two tuples hold the same objects."""
    if len(a) != len(b):
        return False
    for i in range(len(a)):  # mypyc makes a generator of the other form
        if a[i] is not b[i]:
            return False
    return True


def _own(op: Any, x: Any) -> Any:
    """An op of its own for arrays that lie as `x`: it knows how its view of them lies, and learns
    how that of the gradient lies (`engine.backward_of`)."""
    make: Any = type(op)
    own: Op = make(*op.parameters())
    own.for_one_layout = True
    if isinstance(op, ViewOp):
        own.forward_kernel = look(x, op.forward(x))
    else:
        own.seek_kernels()
    return own
