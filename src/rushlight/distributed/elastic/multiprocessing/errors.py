"""`record`: an error of a worker process is written to the file that its launcher names."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["record"]
__dir__ = __all__.copy

P = ParamSpec("P")
R = TypeVar("R")


def record(fn: Callable[P, R]) -> Callable[P, R]:
    """Decorate the main function of a program for torchrun.

    If TORCHELASTIC_ERROR_FILE is set, an error is written there as JSON; it is raised in any case.

    >>> @torch.distributed.elastic.multiprocessing.errors.record
    ... def main():
    ...     return 3
    >>> main()
    3
    """

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
                told = {
                    "message": f"{type(error).__name__}: {error}",
                    "extraInfo": {"py_callstack": traceback.format_exc()},
                    "timestamp": str(int(time.time())),
                }
                with open(path, "w") as file:
                    json.dump({"message": told}, file)
            raise

    return call
