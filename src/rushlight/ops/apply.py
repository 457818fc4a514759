"""Applying an op off the fast path: dtypes, devices, `out=` and in-place forms.

The public functions of the table come through here; the operators have their own compiled path
and fall back on `elementwise` when dtypes or modes are not the plain case.
"""

from __future__ import annotations

from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import check_same_device
from rushlight.core.dispatch import binary, unary
from rushlight.core.elementwise import compute_promoted, elementwise, operand, plain, together
from rushlight.core.families import Elementwise, ViewOp
from rushlight.core.grad_mode import state
from rushlight.core.graph import TensorBase, normal
from rushlight.core.record import apply, compute, evaluate
from rushlight.core.transforms.lift import copy_if_saved
from rushlight.core.transforms.stack import check_captured, stack
from rushlight.core.views.inplace import (
    check_partial_overlap,
    check_writable,
    lift_operands,
    turn,
    write,
    write_raw,
)
from rushlight.core.views.views import apply_view
from rushlight.ops.out import check_castable, check_out, write_array


def run(op: Any, xs: tuple[Any, ...]) -> Any:
    """Apply an op to its inputs by the way its family goes."""
    if isinstance(op, Elementwise):
        if len(xs) == 1:
            return unary(op, xs[0])
        if len(xs) == 2:
            return binary(op, xs[0], xs[1])
        return elementwise(op, xs)
    if isinstance(op, ViewOp):
        return apply_view(op, xs[0])
    return apply(op, *xs)


def run_plain(op: Any, raws: tuple[Any, ...], *action: Any) -> Any:
    """What those who watch every op (`core.observer`) let happen: the op, or `action` on its arrays
    in its place."""
    if action:
        return action[0](*raws)
    if isinstance(op, ViewOp):
        return op.forward(*raws)  # who calls it explains its errors
    return compute(op, raws)


def run_inplace(op: Any, xs: tuple[Any, ...]) -> Any:
    """Apply an op and put the result into its first input."""
    target = xs[0]
    if not isinstance(op, Elementwise):
        return write(op, *xs)
    if state.level != 0:
        check_captured(target, op)
    xs = (target, *lift_operands(target, xs[1:]))
    check_writable(target, True, xs[1:])
    check_partial_overlap(target, xs[1:])
    mine = turn(target)
    if mine is not None:
        with mine:
            return _run_inplace(op, target, xs)
    return _run_inplace(op, target, xs)


def _run_inplace(op: Any, target: Any, xs: tuple[Any, ...]) -> Any:
    if stack.batches == 0 and len(xs) < 3 and plain(xs):
        raws = tuple([x._array if isinstance(x, TensorBase) else x for x in xs])
        y = normal(evaluate(op, *raws))
        if y.dtype is raws[0].dtype:  # not a comparison
            return write_raw(op, target, xs, raws, y)
    xs = together(tuple([operand(x) for x in xs]))
    if xs[0] is not target:
        check_same_device([v.reshape(target._array, (1,)), xs[0]._array])
    read = xs
    if stack.batches != 0:
        read = (copy_if_saved(op, target, xs[1:]), *xs[1:])
    y, raws = compute_promoted(op, read)
    check_castable(y.dtype, target._array.dtype)
    return write_raw(op, target, xs, raws, y)


def run_out(name: str, op: Any, xs: tuple[Any, ...], out: Any) -> Any:
    """Apply an op and put the result into `out`, which is resized if its shape differs."""
    check_out(name, out, xs)
    y = run(op, xs)._array
    check_castable(y.dtype, out._array.dtype)
    return write_array(out, y)
