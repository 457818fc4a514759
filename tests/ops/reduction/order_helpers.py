"""Tensors that these tests begin with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.core.graph import wrap

INF, NAN = math.inf, math.nan


def tensor(values: Any, dtype: Any = np.float64, grad: bool = False) -> Any:
    t = wrap(np.asarray(values, dtype))
    if grad:
        t.requires_grad = True
    return t


def ints(values: Any) -> Any:
    return tensor(values, np.int64)


def same(found: Any, expected: Any, dtype: Any = None) -> None:
    expected = np.asarray(expected)
    assert found._array.shape == expected.shape
    if dtype is not None:
        assert found._array.dtype == dtype
    np.testing.assert_allclose(found._array.astype(expected.dtype), expected, rtol=1e-7)


def gradient(f: Any, values: Any) -> Any:
    x = tensor(values, grad=True)
    y = f(x)
    y.backward(tensor(np.arange(1.0, 1.0 + y._array.size).reshape(y.shape)))
    return x.grad
