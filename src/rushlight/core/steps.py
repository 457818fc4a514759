"""Ops written down as they were applied, to be applied again to other tensors.

Whoever sets `observer.applied` to a list finds there what was applied meanwhile: each op with its
inputs and its result. `step_of` makes a `Step` of such an entry, which names its inputs by number,
and `run_steps` goes through them. What counts of a call's arguments is written by `read_argument`;
steps that were made for one such signature serve every call that has it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays.kernels import look
from rushlight.core.dispatch import binary, in_rows, unary
from rushlight.core.elementwise import elementwise, plain
from rushlight.core.families import Elementwise, ViewOp
from rushlight.core.graph import Op, TensorBase, requires_grad, shape_of
from rushlight.core.record import apply, apply_one
from rushlight.core.views.views import apply_view, look_at_many
from rushlight.native import i64
from rushlight.size import Size

_ndarray: Final = np.ndarray
_slice: Final[Any] = slice
# types of arguments whose values never change
_CONSTANT: Final[set[Any]] = {
    int, bool, str, type(None), type(...), dtypes.dtype, dtypes.memory_format,
}  # fmt: skip
_SEQUENCES: Final[set[Any]] = {tuple, list, Size}
_NUMBERS: Final[set[Any]] = {int, bool, float, type(None)}
FEW: Final = 8  # so many tensors are compared with each other
_VIEW: Final[i64] = 0
_UNARY: Final[i64] = 1
_BINARY: Final[i64] = 2
_ELEMENTWISE: Final[i64] = 3
ALIKE: Final[i64] = 4  # element-wise, of operands whose dtypes need no promotion
_ONE: Final[i64] = 5
_MANY: Final[i64] = 6
_PARTS: Final[i64] = 7


# --- steps ----------------------------------------------------------------------------------------
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
                self.way = ALIKE
        elif parts is not None:
            self.way = _PARTS
        elif isinstance(op, ViewOp):
            self.way = _VIEW
        elif one:
            self.way = _ONE


def step_of(entry: Any, values: list[Any], used: set[int]) -> Step | None:
    """One step, its inputs found among the values so far; None if one is not there."""
    op: Any = entry[0]
    xs: tuple[Any, ...] = entry[1]
    places: list[int] = []
    others: list[Any] = []
    for x in xs:
        at = -1
        if isinstance(x, TensorBase):
            at = place_of(x, values)
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


def place_of(x: Any, values: list[Any]) -> int:
    """The number of a value; -1 if it is none of them."""
    for i in range(len(values)):
        if values[i] is x:
            return i
    return -1


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


# --- applying them again -------------------------------------------------------------------------
def run_steps(steps: list[Step], tensors: list[TensorBase]) -> Any:
    """All steps, one after the other: their results are added to `tensors`; the last one."""
    y: Any = None
    for step in steps:
        way = step.way
        if len(step.places) == 1:
            y = apply_step_to(step, tensors[step.places[0]])
        else:
            xs = inputs_of(step, tensors)
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
    return y


def apply_step_to(step: Step, t: TensorBase) -> Any:
    """A step whose input is one tensor."""
    way = step.way
    if way == _UNARY:
        return unary(step.op, t)
    if way == _VIEW:
        return apply_view(step.op, t)
    if way == _PARTS and step.parts is not None:
        return look_at_many(step.op, t, step.parts)
    return apply_one(step.op, t)


def inputs_of(step: Step, tensors: list[TensorBase]) -> tuple[Any, ...]:
    xs: list[Any] = []
    i: i64 = 0
    for place in step.places:
        xs.append(tensors[place] if place >= 0 else step.others[i])
        i += 1
    return tuple(xs)


# --- signatures -----------------------------------------------------------------------------------
def read_argument(x: Any, parts: list[Any], tensors: list[TensorBase]) -> bool:
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
        if n < FEW:
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
            if not read_argument(part, parts, tensors):
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
