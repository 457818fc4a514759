"""Pinned memory, from which a GPU can copy: CuPy pins as it copies, so nothing is done here."""

from __future__ import annotations

from typing import Any

__all__ = ["pin_memory"]
__dir__ = __all__.copy


def pin_memory(data: Any, device: Any = None) -> Any:
    """pin_memory(data, device=None): the data itself.

    >>> from rushlight.utils.data._utils.pin_memory import pin_memory
    >>> pin_memory([torch.ones(1)])
    [tensor([1.])]
    """
    return data
