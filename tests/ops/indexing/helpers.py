"""Tensors to index into, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import rushlight as torch

T = torch.tensor


def count(*shape: int) -> Any:
    """0., 1., 2., … in a shape."""
    return torch.arange(float(math.prod(shape))).reshape(shape)


def leaf(*shape: int) -> Any:
    return count(*shape).clone().requires_grad_()


def grads(y: Any, *xs: Any) -> list[Any]:
    """d(sum of y * (1, 2, 3, …)) / dx, for each x."""
    weight = torch.arange(1.0, y.numel() + 1).reshape(y.shape)
    return [g.tolist() for g in torch.autograd.grad([y], list(xs), [weight])]


X = count(3, 4)
I24 = torch.zeros(2, 4, dtype=torch.int64)


def names(t: Any) -> list[str]:
    """The nodes from a tensor back along first edges."""
    found = []
    node = t.grad_fn
    while node is not None:
        found.append(type(node).__name__)
        edges = node.next_functions
        node = edges[0][0] if edges else None
    return found
