"""NCCL through CuPy, for `rushlight.distributed`: communicators, streams, events and addresses."""

from __future__ import annotations

from typing import Any

from rushlight.arrays.host import in_memory


def is_available() -> bool:
    """Whether CuPy is here with NCCL and a GPU."""
    try:
        from cupy.cuda import nccl, runtime
    except ImportError:
        return False
    try:
        return bool(nccl.available) and runtime.getDeviceCount() > 0
    except runtime.CUDARuntimeError:
        return False


def library() -> Any:
    """`cupy.cuda.nccl`: `get_unique_id`, `NcclCommunicator`, `NcclError`, `groupStart`."""
    from cupy.cuda import nccl

    return nccl


def stream() -> Any:
    """The stream on which kernels run now."""
    import cupy

    return cupy.cuda.get_current_stream()


def mark(on: Any) -> Any:
    """An event behind all that a stream has to do so far: `done` says whether it is over."""
    import cupy

    event = cupy.cuda.Event(disable_timing=True)
    event.record(on)
    return event


def address(array: Any) -> int:
    """Where an array begins in the memory of its GPU."""
    return int(in_memory(array).data.ptr)
