"""`F.linear` of plain matrices, the way that enters no interpreted frame.

It is asked with what the public function was given, and gives the result: the same two steps that
this one records, a transposed view and a product. None for whatever is unusual, or has no bias,
which the public function then looks at.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.core.dispatch import columns_of
from rushlight.core.graph import TensorBase
from rushlight.core.record import apply
from rushlight.core.views.plain_views import is_plain, t

_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)


def linear(addmms: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The product of a matrix and the transpose of another, plus a row; `addmms` are the ops, by
    `columns_of`."""
    if len(args) != 3 or kwargs:
        return None
    for given in args:
        if not is_plain(given):
            return None
    x: TensorBase = args[0]
    weight: TensorBase = args[1]
    bias: TensorBase = args[2]
    a = x._array
    w = weight._array
    b = bias._array
    dtype = a.dtype
    if not (dtype is _F32 or dtype is _F64) or w.dtype is not dtype or b.dtype is not dtype:
        return None
    if a.ndim != 2 or w.ndim != 2 or b.ndim != 1:
        return None
    if a.shape[1] != w.shape[1] or b.shape[0] != w.shape[0]:
        return None
    turned = t(None, (weight,), kwargs)
    return apply(addmms[columns_of(x, turned)], bias, x, turned)
