"""Tensors that these tests begin with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rushlight as torch

INF, NAN = math.inf, math.nan


def leaf(values: Any, dtype: Any = torch.float64) -> Any:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6, atol=1e-12)


def slopes(f: Any, *values: Any) -> list[Any]:
    """Gradients of the sum of f at the values."""
    xs = [leaf(v) for v in values]
    return list(torch.autograd.grad(f(*xs).sum(), xs))
