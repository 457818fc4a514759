"""Element-wise ops of bfloat16 and float16: computed in float32 by the same kernels, rounded once.

What `core.elementwise` does for every dtype, for the common case: operands of one such dtype that
lie row by row, and numbers, with no transform about. A kernel takes them as they are: Note [Half
precision] in `codegen.halves`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays.kernels import recast
from rushlight.arrays.vocabulary import cast
from rushlight.core.elementwise import elementwise, number_in
from rushlight.core.graph import DIFFERENTIABLE, UNSOUGHT, Op, TensorBase, normal, wrap
from rushlight.core.observer import observer
from rushlight.core.record import compute, make_node, save_values
from rushlight.core.transforms.stack import stack

_ndarray: Final = np.ndarray
_F32: Final = np.dtype(np.float32)
_F32_NUMBER: Final[int] = _F32.num
BF16: Final = dtypes.bfloat16.numpy
F16: Final = dtypes.float16.numpy


def in_float32(op: Any, xs: tuple[Any, ...], record: bool) -> Any:
    """An element-wise op of tensors in bfloat16, or in float16, and Python numbers."""
    if stack.batches != 0 or stack.tangents != 0 or op.low:
        return elementwise(op, xs)
    dtype: Any = None
    raws: list[Any] = []
    for x in xs:
        if isinstance(x, TensorBase):
            array = x._array
            if dtype is None:
                dtype = array.dtype
            if type(array) is not _ndarray or array.dtype is not dtype:
                return elementwise(op, xs)
            if not array.flags.c_contiguous:
                return elementwise(op, xs)
            raws.append(array)
        else:
            raws.append(x)
    common = dtypes.of(dtype)
    op.check(common)
    op.check_operands(xs)
    ready = list(raws)
    for i in range(len(ready)):
        if type(ready[i]) is not _ndarray and i not in op.unrounded:
            ready[i] = number_in(ready[i], common)
    y = by_kernel(op, ready)
    if y is None:
        for i in range(len(ready)):
            if type(ready[i]) is _ndarray:
                wide = recast(_F32_NUMBER, ready[i])
                ready[i] = cast(ready[i], _F32) if wide is None else wide
        y = normal(compute(op, tuple(ready)))
        if y.dtype is _F32 and op.promotion != "bool":
            narrow = recast(dtype.num, y)
            y = cast(y, dtype) if narrow is None else narrow
    t = wrap(y)
    if observer.applied is not None:
        observer.applied.append((op, xs, t))
    node = make_node(op, xs) if record else None
    if node is not None and y.dtype.kind in DIFFERENTIABLE:
        if op.plan.saves:
            save_values(node, op.plan, xs, tuple(raws), [t])
        t._node = node
    return t


def by_kernel(op: Any, raws: list[Any]) -> Any:
    """What the op's kernel gives of these, which widens and rounds by itself; None if it cannot."""
    known: Op = op
    if known.forward_kernel is UNSOUGHT:
        known.seek_kernels()
    kernel = known.forward_kernel
    return None if kernel is None else kernel(*raws)
