"""What an optimiser does with every tensor at every step, in compiled loops: models have hundreds
of them, and most are small."""

from __future__ import annotations

from typing import Any

from rushlight.core.graph import Storage, TensorBase, next_number


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


def count_up(steps: list[Any]) -> list[int]:
    """Add 1 to each of these tensors of one number, in place; gives the numbers."""
    counts: list[int] = []
    for x in steps:
        t: TensorBase = x
        array = t._array
        array.fill(array.item() + 1.0)
        t._storage.version += 1
        counts.append(int(array.item()))  # as its dtype keeps it
    return counts
