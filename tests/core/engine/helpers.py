"""Leaves, and a function of two outputs."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight.autograd import Function


def ones(n: int) -> Any:
    return torch.ones(n, requires_grad=True)


class TwoOutputs(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * 2 + h * 3
