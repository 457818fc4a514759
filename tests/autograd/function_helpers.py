"""A custom function."""

from __future__ import annotations

from typing import Any

from rushlight.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g
