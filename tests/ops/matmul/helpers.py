"""Matrices, and the nodes behind them."""

from __future__ import annotations

import math
from typing import Any

import rushlight as torch
from rushlight.ops.registry import namespaces

F = namespaces["nn.functional"]
NAN = math.nan


def count(*shape: int, dtype: Any = None) -> Any:
    """1, 2, 3, … in a shape."""
    n = math.prod(shape)
    return torch.tensor([float(i) for i in range(1, n + 1)]).reshape(shape).to(dtype or torch.float)


def names(t: Any) -> str:
    """The nodes behind a tensor, newest first, along the first edges."""
    out = []
    node = t.grad_fn
    while node is not None and "Accumulate" not in type(node).__name__:
        out.append(type(node).__name__.removesuffix("Backward0"))
        node = node.next_functions[0][0]
    return " ".join(out)
