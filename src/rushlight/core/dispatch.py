"""Element-wise ops of one or two operands: the fast path, and when it is not taken.

Nearly every call has float32 or float64 tensors alike, and no mode is active. Such ops are computed
and recorded here, with everything written out; all others go to `core.elementwise`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays.layouts import arrange, lay_out
from rushlight.core.elementwise import elementwise
from rushlight.core.grad_mode import quick_mode, state
from rushlight.core.graph import (
    UNSOUGHT,
    Op,
    OpSpec,
    TensorBase,
    new_node,
    normal,
    requires_grad,
    shape_of,
    wrap,
)
from rushlight.core.low_precision import BF16, F16, in_float32
from rushlight.core.observer import observer
from rushlight.core.record import compute, rescue, save_values
from rushlight.core.saved.packed import refuse_inference
from rushlight.core.transforms.stack import stack
from rushlight.core.views.history import edge_of_view
from rushlight.native import i64

_ndarray: Final = np.ndarray
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_I64: Final = np.dtype(np.int64)
_BOOL: Final = np.dtype(np.bool_)
_FITS: Final = 1 << 62  # numbers below it fit int64


def in_rows(t: TensorBase, array: Any) -> bool:
    """Whether `array`, the one of `t`, lies in memory row by row: looked up once for each array,
    since NumPy makes an object of flags each time it is asked."""
    if t._contiguous_array is array:
        return True
    if type(array) is _ndarray and array.flags.c_contiguous:
        t._contiguous_array = array
        t._float_kind = 0
        return True
    return False


def keeps_rows(y: Any, xa: Any, xb: Any) -> bool:
    """Whether the element-wise result of two arrays lies row by row, and is to: the axes of both
    have the order that those of `y` have. `arrange` finds the order of all others."""
    if type(y) is not _ndarray or type(xa) is not _ndarray or type(xb) is not _ndarray:
        return False
    shape = y.shape
    strides = y.strides
    expected: i64 = y.itemsize
    d: i64 = len(shape) - 1
    while d >= 0:
        if strides[d] != expected:
            return False
        expected *= shape[d]
        d -= 1
    return _in_order(xa, shape) and (xb is xa or _in_order(xb, shape))


def _in_order(x: Any, shape: Any) -> bool:
    """Whether no stride of an operand is wider than one before it. Where it is repeated to `shape`
    it has no say; of equal strides the one of the longer axis is the wider."""
    sizes = x.shape
    strides = x.strides
    missing: i64 = len(shape) - len(sizes)
    before: i64 = 0
    length: i64 = 0
    for d in range(len(sizes)):
        size: i64 = sizes[d]
        whole: i64 = shape[missing + d]
        stride: i64 = strides[d]
        if size == 1 and whole != 1:
            continue
        if stride <= 0:
            if stride < 0 or size == 1:  # how that is shown depends on its neighbours
                return False
            continue
        if before != 0 and (stride > before or (stride == before and whole > length)):
            return False
        before = stride
        length = whole
    return True


def columns_of(a: TensorBase, b: TensorBase) -> int:
    """Which of two matrices lie in memory column by column: bit 0 the first, bit 1 the second."""
    found = 0
    x = a._array
    if not in_rows(a, x) and type(x) is _ndarray and x.flags.f_contiguous:
        found = 1
    x = b._array
    if not in_rows(b, x) and type(x) is _ndarray and x.flags.f_contiguous:
        found |= 2
    return found


def unary(op: Any, a: TensorBase) -> Any:
    """`op` of one tensor, element by element."""
    x = a._array
    record = True
    if state.active != 0:
        how = quick_mode()
        if how < 0:
            return elementwise(op, (a,))
        record = how > 0
    rows = a._contiguous_array is x
    if not rows or a._float_kind == 0:
        dtype = x.dtype
        kind: i64 = 1 if dtype is _F32 else 2 if dtype is _F64 else 0
        if kind == 0:
            if dtype is BF16 or dtype is F16:
                return in_float32(op, (a,), record)
            if dtype is _I64 and type(x) is _ndarray:
                return _of_integers(op, a)
            return elementwise(op, (a,))
        rows = in_rows(a, x)
        if rows:
            a._float_kind = kind
    known: Op = op
    kernel = known.forward_kernel
    if kernel is UNSOUGHT:
        known.seek_kernels()
        kernel = known.forward_kernel
    y: Any = None
    if kernel is not None:
        y = kernel(x)
    if y is None:
        state.busy = True
        try:
            y = op.forward(x)
        except BaseException as error:
            y = rescue(op, error, (x,))
        state.busy = False
        if type(y) is not _ndarray:
            y = normal(y)
    if rows:
        t = wrap(y)
        t._contiguous_array = y
    else:
        y = lay_out(op, y, (x,))
        t = wrap(y)
    if observer.applied is not None:
        observer.applied.append((op, (a,), t))
    plan: OpSpec = op.plan
    if not record or not requires_grad(a) or not plan.differentiable:
        return t
    nr = a._output_nr
    target: Any = a if a._node is None else a._node
    if a._view is not None:
        target = edge_of_view(a)
    node = new_node(op, (target,), (nr,) if nr != 0 else None, 1)
    if plan.saves:
        save_values(node, plan, (a,), (x,), [t])
    t._node = node
    return t


def _of_integers(op: Any, a: TensorBase) -> Any:
    """`op` of one tensor of int64, where nothing is promoted: such as what is left after division
    by a number. No gradient comes to integers."""
    if state.active != 0 or stack.batches != 0 or stack.tangents != 0 or op.promotion == "float":
        return elementwise(op, (a,))
    op.check(dtypes.int64)
    op.check_operands((a,))
    x = a._array
    y = normal(compute(op, (x,)))
    if not in_rows(a, x):
        y = lay_out(op, y, (x,))
    t = wrap(y)
    if observer.applied is not None:
        observer.applied.append((op, (a,), t))
    return t


def binary(op: Any, a: Any, b: Any) -> Any:
    """`op` of two operands, element by element; either may be a Python number."""
    if isinstance(a, TensorBase):
        if isinstance(b, TensorBase):
            return pair(op, a, b)
        if type(b) is float or type(b) is int:
            return with_number(op, a, b, False)
    elif isinstance(b, TensorBase) and (type(a) is float or type(a) is int):
        return with_number(op, b, a, True)
    return elementwise(op, (a, b))


def plain_pair(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors are float32 or float64 alike, on one device, and no mode is active."""
    xa = a._array
    xb = b._array
    if a._contiguous_array is xa and b._contiguous_array is xb and a._float_kind != 0:
        if a._float_kind == b._float_kind:
            return state.active == 0 or quick_mode() >= 0
    dtype = xa.dtype
    return (
        (dtype is _F32 or dtype is _F64)
        and xb.dtype is dtype
        and (state.active == 0 or quick_mode() >= 0)
        and type(xa) is type(xb)
    )


def pair_if_plain(op: Op, a: TensorBase, b: TensorBase) -> Any:
    """`pair` of two tensors that need no promotion; None of all others."""
    return pair(op, a, b) if plain_pair(a, b) else None


def compute_binary(op: Op, xa: Any, xb: Any) -> Any:
    """The raw result of two operands: by the op's kernel, or else by its rule."""
    kernel = op.forward_kernel
    if kernel is not None:
        if kernel is UNSOUGHT:
            op.seek_kernels()
            kernel = op.forward_kernel
        made = None if kernel is None or op.kernel_may_warn else kernel(xa, xb)
        if made is not None:
            return made
    state.busy = True
    try:
        y = op.forward_kernel(xa, xb) if op.kernel_may_warn else None
        if y is None:
            y = op.forward_binary(xa, xb)
    except BaseException as error:
        y = rescue(op, error, (xa, xb))
    state.busy = False
    return y if type(y) is _ndarray else normal(y)


def pair(op: Op, a: TensorBase, b: TensorBase) -> Any:
    """An op of two tensors alike that is element-wise, or whose rules need nothing but them:
    the hottest path there is."""
    xa = a._array
    xb = b._array
    record = True
    if state.active != 0:
        how = quick_mode()
        if how < 0:
            return elementwise(op, (a, b))
        record = how > 0
    rows = a._contiguous_array is xa and b._contiguous_array is xb
    kind = a._float_kind
    if not rows or kind == 0 or b._float_kind != kind:  # not seen before, or not alike
        dtype = xa.dtype
        kind = 1 if dtype is _F32 else 2 if dtype is _F64 else 0
        if kind == 0 or xb.dtype is not dtype or type(xa) is not type(xb):
            return _of_others(op, a, b, dtype, record)
        rows = in_rows(a, xa) and in_rows(b, xb)
        if rows:
            a._float_kind = kind
            b._float_kind = kind
    y = compute_binary(op, xa, xb)
    plan = op.plan
    if not rows and plan.spread and not keeps_rows(y, xa, xb):
        y = arrange(y, (xa, xb))
    t = wrap(y)
    if rows:
        t._contiguous_array = y
        if plan.direct:
            t._float_kind = kind
    if observer.applied is not None:
        observer.applied.append((op, (a, b), t))
    wants: i64 = 0
    if not record:
        return t
    if requires_grad(a):
        wants = 1
    if requires_grad(b):
        wants += 2
    if wants == 0:
        return t
    if not plan.differentiable:
        return t
    ta: Any = None
    tb: Any = None
    na: i64 = 0
    nb: i64 = 0
    if wants & 1 != 0:
        ta = a if a._node is None else a._node
        if a._view is not None:
            ta = edge_of_view(a)
        na = a._output_nr
        if ta is None and plan.apart:
            wants -= 1
    if wants & 2 != 0:
        tb = b if b._node is None else b._node
        if b._view is not None:
            tb = edge_of_view(b)
        nb = b._output_nr
        if tb is None and plan.apart:
            wants -= 2
    sa = shape_of(a, xa)
    sb = shape_of(b, xb)
    node = new_node(op, (ta, tb), None if na == 0 and nb == 0 else (na, nb), wants)
    direct = plan.direct
    if sa is sb or sa == sb:
        b._shape = sa  # the same object: equal at a glance next time
        node._fits_as_is = direct
        t._shape = sa
        t._shape_of = y
    else:
        node._input_shapes = (sa, sb)
    if direct:
        node._compiled_op = op
    if plan.pair:
        first = plan.first & wants != 0
        second = plan.second & wants != 0
        sta = a._storage
        stb = b._storage
        if (first and sta.inference) or (second and stb.inference):
            refuse_inference()
        if not first:
            node._first_storage = stb
            node._version_sum = stb.version
            node._kept_values = (None, xb)
        elif not second:
            node._first_storage = sta
            node._version_sum = sta.version
            node._kept_values = (xa, None)
        else:
            node._first_storage = sta
            node._second_storage = stb
            node._version_sum = sta.version + stb.version
            node._kept_values = (xa, xb)
    elif plan.saves:
        save_values(node, plan, (a, b), (xa, xb), [t])
    t._node = node
    return t


def _of_others(op: Op, a: TensorBase, b: TensorBase, dtype: Any, record: bool) -> Any:
    """`pair` of tensors that are not both float32 or both float64; `dtype` is that of the first."""
    xa = a._array
    xb = b._array
    if xb.dtype is dtype and type(xa) is _ndarray:
        if type(xb) is _ndarray and (
            (dtype is _I64 and op.plan.whole) or (dtype is _BOOL and op.plan.of_bools)
        ):
            return of_integers(op, a, b, xa, xb)
        if dtype is BF16 or dtype is F16:
            return in_float32(op, (a, b), record)
    return elementwise(op, (a, b))


def of_integers(op: Op, a: Any, b: Any, xa: Any, xb: Any) -> Any:
    """An element-wise op of int64s, or of bools, at least one of them a tensor: there is nothing
    to record."""
    if stack.batches != 0 or stack.tangents != 0:
        return elementwise(op, (a, b))
    state.busy = True
    try:
        y = op.forward_binary(xa, xb)
    except BaseException as error:
        y = rescue(op, error, (xa, xb))
    state.busy = False
    y = lay_out(op, y, (xa, xb)) if type(y) is _ndarray else normal(y)
    t = wrap(y)
    if observer.applied is not None:
        observer.applied.append((op, (a, b), t))
    return t


def with_number(op: Op, a: TensorBase, number: Any, swapped: bool) -> Any:
    """An element-wise op of a tensor and a Python number (`swapped`: number first)."""
    x = a._array
    left: Any = number if swapped else a
    right: Any = a if swapped else number
    record = True
    if state.active != 0:
        how = quick_mode()
        if how < 0:
            return elementwise(op, (left, right))
        record = how > 0
    xa = number if swapped else x
    xb = x if swapped else number
    rows = a._contiguous_array is x
    kind = a._float_kind
    if not rows or kind == 0:
        dtype = x.dtype
        kind = 1 if dtype is _F32 else 2 if dtype is _F64 else 0
        if kind == 0:
            if dtype is _I64 and op.plan.whole and type(x) is _ndarray:
                if type(number) is int and -_FITS < number < _FITS:
                    return of_integers(op, left, right, xa, xb)
            if dtype is BF16 or dtype is F16:
                return in_float32(op, (left, right), record)
            return elementwise(op, (left, right))
        rows = in_rows(a, x)
        if rows:
            a._float_kind = kind
    y = compute_binary(op, xa, xb)
    if rows:
        t = wrap(y)
        t._contiguous_array = y
        if op.plan.direct:
            t._float_kind = kind
    else:
        if not keeps_rows(y, x, x):
            y = arrange(y, (x,))
        t = wrap(y)
    if observer.applied is not None:
        observer.applied.append((op, (left, right), t))
    plan = op.plan
    if not record or not requires_grad(a) or not plan.differentiable:
        return t
    target: Any = a if a._node is None else a._node
    if a._view is not None:
        target = edge_of_view(a)
    nr = a._output_nr
    nrs: tuple[int, ...] | None = None
    if nr != 0:
        nrs = (0, nr) if swapped else (nr, 0)
    wants: i64 = 0
    if target is not None or not plan.apart:
        wants = 2 if swapped else 1
    node = new_node(op, (None, target) if swapped else (target, None), nrs, wants)
    if plan.direct:
        node._fits_as_is = True
        node._compiled_op = op
    if plan.saves:
        save_values(node, plan, (left, right), (xa, xb), [t])
    t._node = node
    return t
