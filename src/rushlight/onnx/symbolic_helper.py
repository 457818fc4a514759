"""`torch.onnx.symbolic_helper`: decorators of functions that write operators in ONNX's format. The
functions come back as they are, and nobody calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []
__dir__ = __all__.copy


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """parse_args(*kinds): a decorator that hands back the function.

    >>> from rushlight.onnx import symbolic_helper
    >>> symbolic_helper.parse_args("v", "i")(abs) is abs
    True
    """
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: bool, **options: Any) -> Callable[[Any], Any]:
    """quantized_args(*which): a decorator that hands back the function."""
    return lambda fn: fn
