"""TORCH_DISTRIBUTED_DEBUG=DETAIL: before each collective the processes compare what they call.

MPI does not notice when one process sums 3 numbers and another 4, or one sums while another
broadcasts: the result is wrong, or nobody returns. With DETAIL the processes tell each other
through the store what they are about to do, and all raise an error that names the difference.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rushlight.distributed.errors import DistBackendError, DistStoreError

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]
__dir__ = __all__.copy


class DebugLevel(enum.Enum):
    """How much is checked.

    >>> torch.distributed.get_debug_level().name
    'OFF'
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """The level: OFF, INFO or DETAIL."""
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Set the level, in all processes alike."""
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Set the level to what TORCH_DISTRIBUTED_DEBUG says."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[name])


def describe(tensors: Sequence[Any]) -> str:
    """Sizes and dtypes, for comparison."""
    return "; ".join(f"{list(t.shape)} {t.dtype}" for t in tensors) or "no tensors"


def compare(store: Any, ranks: Sequence[int], rank: int, number: int, call: str, s: float) -> None:
    """Raise if the processes of a group are not about to call the same.

    `rank` is the place in `ranks`, `number` counts the calls of the group, `s` are seconds to wait.
    """
    key = f"debug/{number}"
    store.set(f"{key}/{rank}", call)
    keys = [f"{key}/{other}" for other in range(len(ranks))]
    try:
        store.wait(keys, timedelta(seconds=s))
    except DistStoreError as error:
        late = [str(ranks[i]) for i, name in enumerate(keys) if not store.check([name])]
        raise DistBackendError(
            f"Rank {', '.join(late)} did not call collective #{number} in {s * 1000:.0f}ms; rank "
            f"{ranks[rank]} calls {call}."
        ) from error
    calls = [store.get(name).decode() for name in keys]
    if len(set(calls)) > 1:
        lines = "\n".join(f"  rank {r} calls {text}" for r, text in zip(ranks, calls))
        raise DistBackendError(
            f"Detected mismatch between collectives on ranks, at #{number}:\n{lines}\n"
            "All processes of a group have to call the same collectives in the same order, with "
            "tensors of the same size."
        )


set_debug_level_from_env()
