"""How results lie in memory: PyTorch's order of strides, where NumPy's is another.

`core`, `ops` and the vocabulary import it. Arrays that hold no memory of their own (batches,
recorded arrays) go through as they are.

Note [How results lie]
    Results of PyTorch's ops lie in memory in one of few ways, and an op says which (`Op.lies`):
    rows       row by row, whatever the inputs are: reductions, softmax, cat
    operands   densely, the axes in the order of the operands' strides: all that is element-wise
    input      as `clone` lays out a copy of the first input: index_fill, sort
    channels   channels_last if the inputs are, else row by row: cat, pad, batch_norm
    either     channels_last if one of the inputs is, else row by row: convolution
    stacked    likewise, with a new axis: stack
    twin       in a copy of the first input's whole memory, gaps and all: select_scatter
    (nothing)  as `forward` leaves them: views, and ops that are made of others
    NumPy lays out results by the operands too, but decides otherwise where these disagree or an
    axis is expanded. Operands that lie row by row, nearly all, give rows by either rule: whoever
    knows that of them need not ask here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays.host import ByteBounds, device_of, has_values
from rushlight.random.exact import outward_axes

_ndarray: Final = np.ndarray
_CHANNELS_LAST: Final = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def lay_out(op: Any, y: Any, xs: tuple[Any, ...]) -> Any:
    """The result of an op, or its results, laid out as the op says."""
    lies: str = op.lies
    if type(y) is _ndarray:
        if y.ndim < 2 and (lies == "operands" or y.ndim == 0):
            return y
        if lies == "channels" and y.ndim < 4:
            return in_rows(y)
    elif type(y) is tuple:
        if lies == "rows" or (lies == "input" and _lies_in_rows(xs[0])):
            for part in y:
                if not _lies_in_rows(part):
                    break
            else:
                return y
        return tuple([lay_out(op, part, xs) for part in y])
    elif not has_values(y) and device_of(y).type != "meta":
        return y
    if not lies:
        return y
    if lies == "operands":
        leads: tuple[int, ...] = op.leads
        return arrange(y, tuple([xs[i] for i in leads]) if leads else xs)
    if lies == "rows":
        return in_rows(y)
    x = xs[0]
    if lies == "input":
        return like_clone(y, x)
    if lies == "twin":
        return _twin(y, x)
    order = _CHANNELS_LAST.get(x.ndim)
    if order is None or (lies != "stacked" and y.ndim != x.ndim):  # such as the means of groups
        return in_rows(y)
    if lies == "either":
        some = any(suggests_channels(z) for z in xs if getattr(z, "ndim", 0) == x.ndim)
        return _in_order(y, order) if some else in_rows(y)
    asked = [xs[i] for i in op.leads] or xs
    if all(suggests_channels(z) for z in asked if z is x or getattr(z, "ndim", 0) == x.ndim):
        if lies == "channels":
            return _in_order(y, order)
        new: int = y.ndim + op.dim
        if new < x.ndim:  # PyTorch joins along the axis that is there, and splits that
            return _in_order(y, _split_axis(order, new))
    return in_rows(y)


def _lies_in_rows(x: Any) -> bool:
    return type(x) is _ndarray and bool(x.flags.c_contiguous)


def _split_axis(order: tuple[int, ...], at: int) -> tuple[int, ...]:
    """An order of axes after axis `at` was split into two."""
    found: list[int] = []
    for d in order:
        found += (at, at + 1) if d == at else (d if d < at else d + 1,)
    return tuple(found)


def in_rows(y: Any) -> Any:
    """`y` row by row."""
    return y if y.flags.c_contiguous else y.copy("C")


def arrange(y: Any, xs: tuple[Any, ...]) -> Any:
    """The element-wise result of operands (arrays and numbers), the axes in their order."""
    if y.ndim < 2 or y.size == 0 or not has_values(y):
        return y
    shape, strides = y.shape, y.strides
    arrays = [x for x in xs if hasattr(x, "strides") and x.ndim]
    if not arrays:
        return in_rows(y)
    first = arrays[0]
    if first.strides == strides and first.shape == shape and 0 not in strides and 1 not in shape:
        return y  # its strides decide, and are those of the result already
    for x in arrays:
        if not x.flags.c_contiguous:
            break
    else:
        return in_rows(y)
    if _all_alike(arrays, shape):
        return _in_order(y, tuple(sorted(range(y.ndim), key=lambda d: -first.strides[d])))
    return _in_order(y, tuple(outward_axes(shape, [_spread(x, shape) for x in arrays])))


def _all_alike(arrays: list[Any], shape: tuple[int, ...]) -> bool:
    """Whether arrays are dense and have one shape and the same strides."""
    strides = shown_strides(arrays[0])
    for x in arrays:
        if x.shape != shape or shown_strides(x) != strides or not is_dense(x):
            return False
    return len(set(strides)) == len(strides)


def like_clone(y: Any, x: Any) -> Any:
    """`y` laid out as a clone of `x`, an array of its shape, is: the axes in the same order."""
    if y.shape != x.shape or y.ndim < 2:
        return in_rows(y)
    if x.flags.c_contiguous:
        return in_rows(y)
    return _in_order(y, tuple(outward_axes(x.shape, [shown_strides(x)])))


def lay_out_picked(y: Any, x: Any, index: Any, arrays: tuple[Any, ...]) -> Any:
    """What was picked of `x` by an index with `arrays` in its slots, laid out by the strides of
    what was kept of `x` and of the arrays, which stand at their own axes of the result."""
    if not has_values(y) or y.ndim < 2:
        return y
    if y.flags.c_contiguous and x.flags.c_contiguous:
        for array in arrays:
            if not array.flags.c_contiguous:
                break
        else:
            return y
    rest = iter(arrays)
    items: list[Any] = []  # for each axis of `x` the array it is indexed with, or None
    before = len(items)
    for item in index:
        if item is Ellipsis:
            before = len(items)
        array = None if item is Ellipsis or isinstance(item, slice) else next(rest)
        if array is not None and array.dtype.kind == "b":
            items += array.nonzero()
        elif item is not Ellipsis:
            items.append(array)
    missing = [None] * (x.ndim - len(items))
    items[before:before] = missing if Ellipsis in index else []
    items += missing if Ellipsis not in index else []
    strides = shown_strides(x)
    kept = [strides[d] for d, item in enumerate(items) if item is None]
    at = [d for d, item in enumerate(items) if item is not None]
    front = at[0] if at and at[-1] - at[0] == len(at) - 1 else 0
    wide = y.ndim - len(kept)
    operands = [(*kept[:front], *[0] * wide, *kept[front:])]
    for d in at:
        operands.append(_at_own_axes(items[d], y.shape, front, wide))
    return _in_order(y, tuple(outward_axes(y.shape, operands)))


def _at_own_axes(array: Any, shape: tuple[int, ...], front: int, wide: int) -> tuple[int, ...]:
    """The strides of an index array as an operand: its axes are `wide` axes of `shape` from `front`
    on. Where the result has size 1 the array does, too, and a stride that goes with it."""
    own = _spread(array, shape[front : front + wide])
    inner = own[-1] if own else 1
    outer = own[0] * array.shape[0] if own and array.ndim == wide else inner
    found = [outer if n == 1 else 0 for n in shape[:front]]
    return (*found, *own, *[inner if n == 1 else 0 for n in shape[front + wide :]])


def is_dense(x: Any) -> bool:
    """Whether each element has memory of its own and there are no gaps, whatever the order."""
    if x.flags.forc:
        return True
    expected = x.dtype.itemsize
    for stride, n in sorted([(s, n) for s, n in zip(x.strides, x.shape, strict=True) if n != 1]):
        if stride != expected:
            return bool(n == 0)
        expected *= n
    return True


def suggests_channels(x: Any) -> bool:
    """Whether PyTorch takes an array for channels_last: by the order of the strides alone."""
    order = _CHANNELS_LAST.get(x.ndim)
    strides = shown_strides(x)
    if order is None or strides[1] == 0:
        return False
    least = 0
    for d in reversed(order):
        stride = strides[d]
        if x.shape[d] == 0 or stride < least or (d == 0 and least == strides[1]):
            return False
        least = stride * x.shape[d]
    return True


def _twin(y: Any, x: Any) -> Any:
    """`y` in a copy of all the memory behind `x`, with the strides and the offset of `x`, if no two
    elements of `x` share memory."""
    if type(x) is not _ndarray or x.flags.c_contiguous or x.size == 0 or y.shape != x.shape:
        return in_rows(y)
    if 0 in [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1]:
        return like_clone(y, x)
    bounds = ByteBounds(x)
    memory = np.zeros(bounds.nbytes, np.uint8)
    out: Any = np.ndarray(x.shape, x.dtype, memory, bounds.offset, x.strides)
    np.copyto(out, y)
    return out


def shown_strides(x: Any) -> tuple[int, ...]:
    """The strides of an array, in bytes, as PyTorch shows them: NumPy writes 0 for new axes of size
    1, PyTorch what would be contiguous with what follows."""
    strides: tuple[int, ...] = x.strides
    if 0 not in strides:
        return strides
    found = list(strides)
    for d in range(len(found) - 1, -1, -1):
        if found[d] == 0 and x.shape[d] == 1:
            last = d == len(found) - 1
            found[d] = x.dtype.itemsize if last else max(x.shape[d + 1], 1) * found[d + 1]
    return tuple(found)


def lies_in(x: Any, order: tuple[int, ...]) -> bool:
    """Whether the elements lie densely in memory with the axes in this order."""
    expected = x.dtype.itemsize
    for d in reversed(order):
        if x.shape[d] != 1:
            if x.strides[d] != expected:
                return False
            expected *= x.shape[d]
    return True


def _spread(x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an operand that is broadcast to `shape`."""
    missing = len(shape) - x.ndim
    found = [0] * missing
    strides = shown_strides(x)
    for d in range(x.ndim):
        repeated = x.shape[d] == 1 and shape[missing + d] != 1
        found.append(0 if repeated else strides[d])
    return tuple(found)


def _in_order(y: Any, order: tuple[int, ...]) -> Any:
    """`y` densely with its axes in this order, widest stride first: itself, if it lies so."""
    dense = lies_in(y, order)
    if dense and 1 not in y.shape:
        return y
    back = sorted(range(len(order)), key=lambda d: order[d])
    turned = y.transpose(order)
    if not dense:
        return turned.copy("C").transpose(back)
    # strides of axes of size 1 as they would be: later results go by them
    return turned.reshape(-1).reshape(turned.shape).transpose(back)
