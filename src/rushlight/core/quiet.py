"""NumPy's floating-point warnings, silenced for rushlight's own arithmetic and nobody else's.

PyTorch says nothing about 1/0, log(0) or inf - inf. NumPy warns, unless told not to for the whole
thread, which would hide warnings about the user's own NumPy code.

Note [Busy]
    `np.errstate` around every op would cost 280 ns, a third of a small one. Instead an op sets
    `state.busy` while NumPy computes, and one entry in `warnings.filters` ignores what is said
    meanwhile: it costs nothing until NumPy has something to say. Where filters put in front of it
    turn warnings into errors, the error is caught and the op is run again under `np.errstate`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.core.modes import state

__all__ = ["install", "quietly"]


class WhileBusy:
    """Stands where a filter has its pattern: matches any text while an op computes."""

    def match(self, text: str) -> bool:
        return state.busy


def install() -> None:
    """Put the filter in place, once."""
    filters: Any = warnings.filters
    for entry in filters:
        if isinstance(entry[1], WhileBusy):
            return
    filters.insert(0, ("ignore", WhileBusy(), RuntimeWarning, None, 0))
    if hasattr(warnings, "_filters_mutated"):
        warnings._filters_mutated()


def quietly(fn: Callable[..., Any], *args: Any) -> Any:
    """Call `fn` with NumPy's warnings off, where half a microsecond more does not matter."""
    with np.errstate(all="ignore"):
        return fn(*args)


install()
