"""Element-wise ops off the fast path: promotion of dtypes, low precision, modes, several devices.

Interpreted: whatever comes here computes more than it calls.
"""

from __future__ import annotations

import math
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched
from rushlight.arrays.host import (
    asarray,
    check_same_device,
    device_of,
    has_values,
    in_memory,
    is_array,
    is_scalar,
    is_sparse,
)
from rushlight.arrays.layouts import lay_out
from rushlight.core.graph import DIFFERENTIABLE, TensorBase, normal, wrap
from rushlight.core.observer import observer
from rushlight.core.record import evaluate, finish, make_node, save_values
from rushlight.core.transforms.lift import lift
from rushlight.core.transforms.stack import stack
from rushlight.core.transforms.tangents import keep_tangents, push

_FLOAT32: Final = dtypes.float32.numpy
_FLOAT64: Final = dtypes.float64.numpy
_HALF_ENDS: Final = 65520  # from here on, float16 rounds to infinity (and NumPy warns)


def operand(x: Any) -> Any:
    """An operand as ops take it: a tensor, or a Python number."""
    if isinstance(x, TensorBase):
        return x
    if is_scalar(x):  # before the numbers: np.float64 is a float, and would be a strong one
        return x.item()
    if isinstance(x, (bool, int, float, complex)):
        return x
    if has_values(x) or type(x) is Batched or is_sparse(x):
        dtypes.of(x.dtype)
        return wrap(x)
    raise TypeError(
        f"unsupported operand of type '{type(x).__name__}': expected a Tensor or a number"
    )


def together(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands on one device: a 0-d tensor on the CPU goes to the others', any other is an
    error. The way there is recorded, so that its gradient comes back."""
    arrays = [x._array for x in xs if isinstance(x, TensorBase)]
    if all(type(a) is type(arrays[0]) for a in arrays[1:]):
        return xs
    check_same_device(arrays)
    place = device_of(next((a for a in arrays if not is_array(in_memory(a))), arrays[0]))
    return tuple([v.moved(x, place) if isinstance(x, TensorBase) else x for x in xs])


def category(x: Any) -> tuple[dtypes.dtype, Any]:
    """How strongly an operand's dtype counts in promotion."""
    if isinstance(x, TensorBase):
        return dtypes.of(x._array.dtype), ("dim" if x._array.ndim else "zero")
    return dtypes.of_scalar(x), "number"


def result_dtype(xs: tuple[Any, ...]) -> dtypes.dtype:
    """PyTorch's `result_type` of tensors and Python numbers."""
    first: Any = None
    for x in xs:
        if isinstance(x, TensorBase):
            dtype = x._array.dtype
            if first is None:
                first = dtype
            elif dtype is not first:
                break
        else:
            break
    else:
        if first is not None:
            return dtypes.of(first)
    return dtypes.promote([category(x) for x in xs])


def compute_promoted(op: Any, xs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The raw result of an element-wise op in PyTorch's dtype, and the raw inputs as given."""
    arrays = [x._array for x in xs if isinstance(x, TensorBase)]
    raws = tuple([x._array if isinstance(x, TensorBase) else x for x in xs])
    common = result_dtype(xs)
    promotion = op.promotion
    if promotion == "float" and not (common.is_floating_point or common.is_complex):
        common = dtypes.default
    op.check(common)
    op.check_operands(xs)
    inside = common.numpy
    answer = inside
    if v.low_precision(inside) and not op.low:
        inside = _FLOAT32  # PyTorch computes low precision in float32 and rounds once
    like = next((a for a in arrays if a.ndim), arrays[0])
    ready: list[Any] = []
    for at, r in enumerate(raws):
        if isinstance(r, (bool, int, float, complex)):
            if inside is not answer and at not in op.unrounded:
                r = number_in(r, common)
            # a bare number is weak in NumPy too; where kinds differ it must be given its dtype
            if inside.kind in "fc" and not isinstance(r, (bool, complex)):
                ready.append(r)
            else:
                ready.append(v.constant(like, number_in(r, common), inside))
        else:
            if inside is not answer and r.dtype != answer and (r.ndim or at not in op.unrounded):
                r = v.cast(r, answer)
            ready.append(v.cast(r, inside))
    y = normal(evaluate(op, *ready))
    if inside is not answer and promotion != "bool" and y.dtype == inside:
        y = y.astype(answer)
    return lay_out(op, y, raws), raws


def number_beside(x: TensorBase, value: Any) -> Any:
    """A Python number as it is next to a tensor, in their common dtype."""
    kind = x._array.dtype
    if kind is _FLOAT32 or kind is _FLOAT64:
        return value
    return number_in(value, result_dtype((x, value)))


def number_in(value: Any, common: dtypes.dtype) -> Any:
    """A Python number as PyTorch fits it into a dtype: integers wrap round, low precision is
    rounded."""
    kind = common.numpy.kind
    if common.is_floating_point and common.itemsize < 4:
        if isinstance(value, complex):
            return value
        if common is dtypes.float16 and abs(value) >= _HALF_ENDS:
            return math.copysign(math.inf, value)
        return float(common.numpy.type(value))
    if kind in "iu" and isinstance(value, int):
        if not -(1 << 63) <= value < (1 << 64):
            raise OverflowError("Overflow when unpacking long long")
        bits = common.itemsize * 8
        value &= (1 << bits) - 1
        if kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    return value


def plain(xs: tuple[Any, ...]) -> bool:
    """Whether operands need no promotion: floats of one common dtype on one device, and numbers."""
    first: Any = None
    for x in xs:
        if isinstance(x, TensorBase):
            if first is None:
                first = x._array
                if first.dtype is not _FLOAT32 and first.dtype is not _FLOAT64:
                    return False
            elif x._array.dtype is not first.dtype or type(x._array) is not type(first):
                return False
        elif type(x) is not float and type(x) is not int:
            return False
    return first is not None


def elementwise(op: Any, xs: tuple[Any, ...]) -> Any:
    """An element-wise op in general: promotion, low precision, modes, several devices."""
    if stack.batches != 0:
        xs = lift(tuple([operand(x) for x in xs]))
    if len(xs) < 3 and plain(xs):  # only a mode keeps it off the fast path
        raws = tuple([x._array if isinstance(x, TensorBase) else x for x in xs])
        y = lay_out(op, normal(evaluate(op, *raws)), raws)
        return settle_elementwise(op, xs, raws, y)
    xs = tuple([operand(x) for x in xs])
    if not any(isinstance(x, TensorBase) for x in xs):
        xs = (wrap(asarray(xs[0], dtypes.of_scalar(xs[0]).numpy)), *xs[1:])
    xs = together(xs)
    y, raws = compute_promoted(op, xs)
    return settle_elementwise(op, xs, raws, y)


def settle_elementwise(op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...], y: Any) -> Any:
    t = finish(wrap(y))
    if observer.applied is not None:
        observer.applied.append((op, xs, t))
    node = make_node(op, xs)
    if node is not None and y.dtype.kind in DIFFERENTIABLE:
        if op.plan.saves:
            save_values(node, op.plan, xs, raws, [t])
        t._node = node
    if stack.tangents != 0:
        push(op, xs, raws, [t], False)
        if node is not None:
            keep_tangents(node, op.plan, xs, [t], None)
    return t
