"""`F`, comparing, and derivatives."""

from __future__ import annotations

import math
import types
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces

F: Any = types.SimpleNamespace(**namespaces["nn.functional"])
INF, NAN = math.inf, math.nan


def same(got: Any, want: list[float], rel: float = 1e-6) -> bool:
    flat = got.reshape(-1).tolist()
    return flat == pytest.approx(want, rel=rel, abs=1e-7, nan_ok=True)


def slopes(fn: Any, values: list[float]) -> list[float]:
    """The derivative of an element-wise function at some values."""
    x = torch.tensor(values, dtype=torch.double, requires_grad=True)
    fn(x).sum().backward()
    out: list[float] = x.grad.tolist()
    return out
