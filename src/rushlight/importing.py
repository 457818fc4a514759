"""Importing many modules in a short time: how `import rushlight` imports the most of it.

Two things that Python does while it imports cost a fifth of the time, and are avoided here. It
looks for garbage, of which an import leaves none. And it keeps frames in chunks of 16 KB: where one
is full, each call maps memory for the next and each return gives it back, at some depths of the
stack for hundreds of calls.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterable

__all__ = ["import_all"]


def import_all(names: Iterable[str]) -> None:
    """Import modules, one after the other.

    >>> import_all(["math", "cmath"])
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        for name in names:
            importlib.import_module(name)
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()  # together: what there is counts as old, and is not looked through now
    finally:
        if collecting:
            gc.enable()


# A frame that asks for more than a chunk gets one of 64 KB, for itself and for those it calls.
import_all.__code__ = import_all.__code__.replace(co_stacksize=4500)

# `rushlight/__init__.py` imports this file before any other, so that this is how it imports them.
import_all(
    ["ml_dtypes", "rushlight.dtypes", "rushlight.ops", "rushlight.tensor", "rushlight.autograd"]
)
