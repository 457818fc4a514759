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

Note [What is worth keeping]
    Shapes that come once never come again, in loops over data of all lengths: a signature is kept
    when it is met for the second time. Functions that say so (`settles="rank"`) choose their op by
    the number of dimensions, whatever the sizes are, if none is 0; their op is kept for that too.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.core.dispatch import in_rows
from rushlight.core.grad_mode import quick_mode, state
from rushlight.core.graph import TensorBase, requires_grad, shape_of
from rushlight.core.observer import observer
from rushlight.core.steps import (
    ALIKE,
    FEW,
    Step,
    apply_step_to,
    inputs_of,
    place_of,
    read_argument,
    run_steps,
    step_of,
)
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import write_plain
from rushlight.return_types import Named

_new_tuple: Final[Any] = tuple.__new__
_MOST: Final = 512  # signatures of one function: a loop with ever new numbers must not fill memory


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

    def __init__(
        self, write: Any = None, by_rank: bool = False, quick: Any = None, told: Any = None
    ) -> None:
        self.calls: dict[Any, Settled] = {}
        self.met: dict[Any, None] = {}  # signatures that were met once
        self.write = write
        self.by_rank = by_rank
        self.quick = quick  # quick(told, args, kwargs) is asked first, where there are kernels
        self.told = told
        self.ranks: dict[Any, Step] = {}
        memos.append(self)

    def is_known(self, signature: Any) -> bool:
        """Whether a signature was met before; see Note [What is worth keeping]."""
        if signature in self.met:
            self.met.pop(signature, None)
            return True
        self.meet(signature)
        return False

    def meet(self, signature: Any) -> None:
        make_room(self.met)
        self.met[signature] = None


def make_room(kept: dict[Any, Any]) -> None:
    """Forget the oldest, if there are many."""
    if len(kept) >= _MOST:
        kept.pop(next(iter(kept)), None)


memos: Final[list[Memo]] = []


def forget_calls() -> None:
    """What functions choose may be another from now on."""
    for memo in memos:
        memo.calls.clear()
        memo.ranks.clear()
        memo.met.clear()


dtypes.when_default_changes.append(forget_calls)


# --- signatures -----------------------------------------------------------------------------------
def _signature(
    args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[TensorBase]
) -> tuple[Any, ...] | None:
    parts: list[Any] = []
    for x in args:
        if not read_argument(x, parts, tensors):
            return None
    if kwargs:
        for name, x in kwargs.items():
            parts.append(name)
            if not read_argument(x, parts, tensors):
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
            if not memo.by_rank or signature in memo.met:  # which is to be kept now
                return None
            y = _recall_by_rank(memo, args)
            if y is not None:
                memo.meet(signature)
            return y
        if found.alone:
            return apply_step_to(found.first, args[0])
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
        return apply_step_to(found.first, tensors[0])
    return _run(found, tensors)


def quick_or_recall(memo: Memo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same, for functions whose plain calls go a way of their own."""
    y = memo.quick(memo.told, args, kwargs)
    return recall(memo, args, kwargs) if y is None else y


def _rank_signature(args: tuple[Any, ...]) -> Any:
    """What a function that chooses by rank looks at; see Note [What is worth keeping]."""
    t: TensorBase = args[0]
    array = t._array
    if array.size == 0:
        return None
    kind = type(args[1]) if len(args) == 2 else None
    return array.dtype, array.ndim, requires_grad(t), kind, args[-1] if len(args) == 2 else None


def _recall_by_rank(memo: Memo, args: tuple[Any, ...]) -> Any:
    signature = _rank_signature(args)
    step = None if signature is None else memo.ranks.get(signature)
    return None if step is None else apply_step_to(step, args[0])


def _run(found: Settled, tensors: list[TensorBase]) -> Any:
    y = run_steps(found.steps, tensors)
    if found.result >= 0:
        return tensors[found.result]
    return y if found.kind is tuple else _new_tuple(found.kind, y)  # with names


def _write(memo: Memo, step: Step, tensors: list[TensorBase]) -> Any:
    """The step of a function that writes into its first argument."""
    xs = inputs_of(step, tensors)
    if step.way <= ALIKE and write_plain(step.op, tensors[0], xs):
        return tensors[0]
    return memo.write(step.op, xs)


# --- calling for the first time -------------------------------------------------------------------
def ask(memo: Memo, fn: Any, finish: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call of `fn`, or of `finish` with the op and inputs that it gives, and keep
    what it came down to if that can be done."""
    tensors: list[TensorBase] = []
    signature = _signature(args, kwargs, tensors)
    if (
        observer.applied is not None  # for a function that calls this one, or in another thread
        or signature is None
        or not (memo.is_known(signature) or _wants_rank(memo, args, kwargs))
    ):
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
            _remember(memo, signature, tensors, [(op, xs, y)], y)
    elif applied and None not in applied:
        _remember(memo, signature, tensors, applied, y)
        if _wants_rank(memo, args, kwargs):
            _remember_by_rank(memo, args, applied, y)
    return y


def _wants_rank(memo: Memo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the op is to be kept for all shapes of a rank, and is not yet."""
    if not memo.by_rank or kwargs or _short_signature(args) is None:
        return False
    signature = _rank_signature(args)
    return signature is not None and signature not in memo.ranks


def _remember_by_rank(memo: Memo, args: tuple[Any, ...], applied: list[Any], y: Any) -> None:
    if state.active != 0 and quick_mode() < 0:
        return
    op, xs, result = applied[0]
    if len(applied) == 1 and len(xs) == 1 and xs[0] is args[0] and result is y:
        make_room(memo.ranks)
        memo.ranks[_rank_signature(args)] = Step(op, (0,), (None,), False, None)


def _remember(
    memo: Memo, signature: Any, tensors: list[TensorBase], applied: list[Any], y: Any
) -> None:
    """Keep what a call came down to, if all there is came from its arguments."""
    if state.active != 0 and quick_mode() < 0:
        return
    if len(tensors) > FEW and len({id(t) for t in tensors}) != len(tensors):
        return  # the signature does not say which are the same, and so not which an input is
    used: set[int] = set()
    values: list[Any] = list(tensors)
    steps: list[Step] = []
    for entry in applied:
        result = entry[2]
        step = step_of(entry, values, used)
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
    at = place_of(y, values) if isinstance(y, TensorBase) else -1
    if at < len(tensors) and memo.write is None:  # an argument itself, or not among the results
        if not (isinstance(y, (Named, tuple)) and isinstance(last, tuple) and _are_same(last, y)):
            return
        at = -1
    make_room(memo.calls)
    alone = len(steps) == 1 and steps[0].places == (0,) and last is y and at >= 0
    memo.calls[signature] = Settled(steps, at, type(y), alone)


def _are_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two tuples hold the same objects."""
    if len(a) != len(b):
        return False
    for i in range(len(a)):  # mypyc makes a generator of the other form
        if a[i] is not b[i]:
            return False
    return True
