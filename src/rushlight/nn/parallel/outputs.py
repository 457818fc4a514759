"""What modules take and return: tensors in lists, tuples, dicts and dataclasses."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

from rushlight.core.graph import TensorBase

__all__ = ["find_tensors", "map_tensors"]
__dir__ = __all__.copy


def map_tensors(change: Callable[[Any], Any], found: Any) -> Any:
    """What a module returned, with each tensor in it changed."""
    if isinstance(found, TensorBase):
        return change(found)
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return type(found)(*[map_tensors(change, part) for part in found])
    if isinstance(found, list | tuple):
        return type(found)([map_tensors(change, part) for part in found])
    if isinstance(found, dict):
        changed = copy.copy(found)
        for key, part in found.items():
            changed[key] = map_tensors(change, part)
        return changed
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        changed = copy.copy(found)
        for field in dataclasses.fields(found):
            part = map_tensors(change, getattr(found, field.name))
            object.__setattr__(changed, field.name, part)  # the dataclass may be frozen
        return changed
    return found


def find_tensors(found: Any) -> list[Any]:
    """The tensors in what a module returned."""
    tensors: list[Any] = []

    def collect(t: Any) -> Any:
        tensors.append(t)
        return t

    map_tensors(collect, found)
    return tensors
