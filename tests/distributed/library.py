"""The library that a program of several processes was told to run on, as `torch`."""

from __future__ import annotations

import sys
from typing import Any


def chosen() -> Any:
    """`torch`: PyTorch, or rushlight under its name."""
    if sys.argv[1] == "rushlight":
        from rushlight import compat

        compat.install()
    import torch

    return torch


def numbers(value: Any) -> Any:
    """Tensors of nested containers as lists."""
    if hasattr(value, "full_tensor"):
        return value.detach().full_tensor().tolist()
    if hasattr(value, "tolist"):
        return value.detach().tolist()
    if isinstance(value, dict):
        return {str(key): numbers(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(inner) for inner in value]
    return value
