"""NumPy's floating-point warnings, silenced for rushlight's own arithmetic and nobody else's.

PyTorch says nothing about 1/0, log(0) or inf - inf. NumPy warns, unless told not to for the whole
thread, which would hide warnings about the user's own NumPy code.

Note [Busy]
    `np.errstate` around every op would cost 280 ns, a third of a small one. Instead one entry in
    `warnings.filters` ignores what NumPy says while an op computes: it costs nothing until NumPy
    has something to say. That an op computes is seen on the stack, where NumPy's caller is a file
    of rushlight's; a compiled file leaves no trace there, and sets `state.busy` meanwhile. Both
    belong to one thread. Where filters put in front turn warnings into errors, the error is caught
    and the op is run again under `np.errstate`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import numpy as np

from rushlight.core.grad_mode import COMPILED, state

_LIBRARIES: Final = ("numpy.", "scipy.", "ml_dtypes.")


class WhileBusy:
    """Stands where a filter has its pattern: matches any text while an op computes."""

    pattern: Final = "(?!)"  # matches nothing: of libraries that hand filters on to other processes

    def match(self, text: str) -> bool:
        return computing()


def computing() -> bool:
    """Whether what NumPy has to say in this thread is about an op of rushlight's."""
    if COMPILED and (state.busy or state.computing):
        state.note_threads()
        return True
    frame: FrameType | None = sys._getframe(0 if COMPILED else 2)  # past `match`
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if not name.startswith(_LIBRARIES):
            return name.startswith("rushlight.")
        frame = frame.f_back
    return False


def install_filter() -> None:
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


install_filter()
