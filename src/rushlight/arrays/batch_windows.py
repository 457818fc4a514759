"""What the primitives over windows mean on batched arrays.

Most work on the last axes and leave those in front alone. Convolutions take the batch into their
samples where the weight is shared, and into their groups where it is not.
"""

from __future__ import annotations

from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays import windows  # noqa: F401  # it has the primitives
from rushlight.arrays.batch_rules import _along_axis, _same
from rushlight.arrays.batched import Batched, members, rule, rules, with_batch

for _name in ("columns", "uncolumns", "window_max"):
    rules[_name] = _same
for _name in ("window_sum", "window_spread", "resample"):
    rules[_name] = _along_axis


@rule
def window_argmax(primitive: Any, level: Any, x: Any, y: Any, spans: Any) -> Any:
    return Batched(primitive(with_batch(x, level), with_batch(y, level), spans), level)


def _into(x: Any, at: int, parts: int = 1) -> Any:
    """A batch taken into axis `at` of the members (0: in front of what is there): behind the first
    of the `parts` that the axis is divided into, in front of the rest."""
    size, *shape = x.shape
    n = shape[at]
    split = v.reshape(x, (size, *shape[:at], parts, n // parts, *shape[at + 1 :]))
    front = tuple(range(1, at + 2))
    moved = v.permute(split, (*front, 0, *range(at + 2, split.ndim)))
    return v.reshape(moved, (*shape[:at], size * n, *shape[at + 1 :]))


def _out_of(y: Any, size: int, at: int, parts: int = 1) -> Any:
    """The batch of `_into`, in front again."""
    shape = y.shape
    n = shape[at] // size
    split = v.reshape(y, (*shape[:at], parts, size, n // parts, *shape[at + 1 :]))
    axes = [d for d in range(split.ndim) if d != at + 1]
    return v.reshape(v.permute(split, (at + 1, *axes)), (size, *shape[:at], n, *shape[at + 1 :]))


def _convolution(
    primitive: Any, level: Any, x: Any, w: Any, b: Any, rest: tuple[Any, ...], axis: int
) -> Any:
    """`convolve` or `convolve_input`: the channels of its result are axis `axis` of its weight."""
    left, many = members(x, level)
    right, several = members(w, level)
    groups = rest[-1]
    size = level.size
    if not several:
        if not many:
            y = primitive(left, right, None, *rest)
            found = Batched(y, level, False)
        else:
            y = primitive(
                v.reshape(left, (size * left.shape[1], *left.shape[2:])), right, None, *rest
            )
            found = Batched(v.reshape(y, (*left.shape[:2], *y.shape[1:])), level)
    elif many:
        x2, w2 = _into(left, 1), _into(right, 0)
        y = primitive(x2, w2, None, *rest[:-1], groups * size)
        found = Batched(_out_of(y, size, 1), level)
    else:
        w2 = _into(right, axis, groups if axis == 0 else 1)
        y = primitive(left, w2, None, *rest)
        found = Batched(_out_of(y, size, 1, groups), level)
    if b is None:
        return found
    return found + v.reshape(b, (*b.shape, *(1,) * (w.ndim - 2)))


@rule
def convolve(primitive: Any, level: Any, x: Any, w: Any, b: Any, *rest: Any) -> Any:
    return _convolution(primitive, level, x, w, b, rest, 0)


@rule
def convolve_input(primitive: Any, level: Any, g: Any, w: Any, b: Any, *rest: Any) -> Any:
    return _convolution(primitive, level, g, w, b, rest, 1)


@rule
def convolve_weight(primitive: Any, level: Any, g: Any, x: Any, *rest: Any) -> Any:
    left, many = members(g, level)
    right, several = members(x, level)
    groups, size = rest[-1], level.size
    if many and several:
        y = primitive(_into(left, 1), _into(right, 1), *rest[:-1], groups * size)
        return Batched(_out_of(y, size, 0), level)
    if many:
        y = primitive(_into(left, 1, groups), right, *rest)
        return Batched(_out_of(y, size, 0, groups), level)
    if several:
        y = primitive(left, _into(right, 1, groups), *rest)
        return Batched(_out_of(y, size, 1), level)
    return Batched(primitive(left, right, *rest), level, False)
