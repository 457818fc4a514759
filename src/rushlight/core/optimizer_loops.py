"""What an optimiser does with every tensor at every step, in compiled loops: models have hundreds
of them, and most are small."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.core.graph import Storage, TensorBase, next_number

_ndarray: Final = np.ndarray


def arrays_of(columns: list[list[Any]]) -> list[list[Any]]:
    """The raw arrays of tensors."""
    found: list[list[Any]] = []
    for column in columns:
        arrays: list[Any] = []
        for x in column:
            t: TensorBase = x
            arrays.append(t._array)
        found.append(arrays)
    return found


def count_writes(columns: list[list[Any]]) -> None:
    """Count a write into each of these tensors, by the user's line that runs now."""
    first: Storage | None = None
    for column in columns:
        for x in column:
            t: TensorBase = x
            storage = t._storage
            if first is None:
                storage.written()
                first = storage
            else:
                storage.version += 1
                storage.when = next_number()
                storage.code = first.code
                storage.offset = first.offset


def dense_grads(params: list[Any]) -> Any:
    """The parameters that have a gradient, and these; None if one is no plain array."""
    having: list[Any] = []
    grads: list[Any] = []
    for x in params:
        param: TensorBase = x
        grad = param._accumulated_grad
        if grad is None:
            continue
        g: TensorBase = grad
        if type(g._array) is not _ndarray:
            return None
        having.append(param)
        grads.append(g)
    return having, grads


def count_up(steps: list[Any]) -> list[int] | None:
    """Add 1 to each of these tensors of one number, in place; gives the numbers. None, and nothing
    is added, if one is no plain array."""
    for x in steps:
        step: TensorBase = x
        if type(step._array) is not _ndarray:
            return None
    counts: list[int] = []
    for x in steps:
        t: TensorBase = x
        array = t._array
        array.fill(array.item() + 1.0)
        t._storage.version += 1
        counts.append(int(array.item()))  # as its dtype keeps it
    return counts
