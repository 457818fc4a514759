"""Tensors, comparing, and gradients."""

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


def same(found: Any, expected: Any, dtype: Any = None) -> None:
    expected = np.asarray(expected)
    array = found._array
    assert array.shape == expected.shape
    if dtype is not None:
        assert array.dtype == dtype
    np.testing.assert_allclose(array.astype(expected.dtype), expected, rtol=1e-6, atol=1e-12)


def gradient(f: Any, values: Any) -> Any:
    x = tensor(values, grad=True)
    y = f(x)
    y.backward(tensor(np.ones(y.shape)))
    return x.grad
