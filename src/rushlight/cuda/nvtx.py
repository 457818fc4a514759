"""`torch.cuda.nvtx`: marks for NVIDIA's profiler, which rushlight does not make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.absent import lacking

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]
__dir__ = __all__.copy

_NOT_THERE = "NVTX functions not installed. Are you sure you have a CUDA build?"
range_push = lacking("range_push", _NOT_THERE)
range_pop = lacking("range_pop", _NOT_THERE)
range_start = lacking("range_start", _NOT_THERE)
range_end = lacking("range_end", _NOT_THERE)
mark = lacking("mark", _NOT_THERE)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """range(msg): a block with a mark; entering it raises."""
    marking: Any = range_push
    marking(msg.format(*args, **kwargs))
    yield
