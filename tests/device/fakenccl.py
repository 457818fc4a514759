"""A stand-in for `cupy.cuda.nccl`: ranks are threads of one process, memory is read by its address.

It takes what NCCL takes (addresses, counts, its numbers of dtypes and operations), so that a wrong
count or a wrong order shows here.
"""

from __future__ import annotations

import ctypes
import itertools
import queue
import threading
from collections.abc import Callable
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

available = True
_DTYPES = [
    np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
    np.float64, ml_dtypes.bfloat16,
]  # fmt: skip
_OPS: list[Callable[[Any, Any], Any]] = [np.add, np.multiply, np.maximum, np.minimum, np.add]
_AVERAGE = 4
_PATIENCE = 30  # seconds until a rank that does not come is a failure


class NcclError(RuntimeError):
    """What NCCL raises."""


class _World:
    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=_PATIENCE)
        self.slots: list[Any] = [None] * size
        self.mail: dict[tuple[int, int], queue.Queue[bytes]] = {
            pair: queue.Queue() for pair in itertools.product(range(size), repeat=2)
        }


_worlds: dict[Any, _World] = {}
_lock = threading.Lock()
_numbers = itertools.count()
_group = threading.local()


def get_unique_id() -> Any:
    """Bytes, as in CuPy 14, or a tuple, as before; by turns."""
    number = next(_numbers) % 128
    return bytes([number, 255, *[0] * 126]) if number % 2 else (number, -1, *[0] * 126)


def groupStart() -> None:
    _group.waiting = []


def groupEnd() -> None:
    waiting, _group.waiting = _group.waiting, None
    for send in (True, False):  # all are started before any is waited for
        for is_send, call in waiting:
            if is_send is send:
                call()


def _memory(pointer: int, count: int, kind: int) -> Any:
    dtype = np.dtype(_DTYPES[kind])
    if not count:
        return np.empty(0, dtype)
    raw = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(raw, np.uint8).view(dtype)


class NcclCommunicator:
    """One rank of a world."""

    def __init__(self, size: int, number: Any, rank: int) -> None:
        assert len(number) == 128
        with _lock:
            self._world = _worlds.setdefault(number, _World(size))
        self._rank, self._size = rank, size
        self._world.barrier.wait()

    def _exchange(self, given: Any) -> list[Any]:
        """What all ranks have given."""
        self._world.slots[self._rank] = given.copy()
        self._world.barrier.wait()
        found = list(self._world.slots)
        self._world.barrier.wait()
        return found

    def _reduced(self, given: Any, op: int) -> Any:
        whole = reduce(_OPS[op], self._exchange(given))
        return whole / self._size if op == _AVERAGE else whole

    def allReduce(self, send: int, recv: int, count: int, kind: int, op: int, stream: int) -> None:
        _memory(recv, count, kind)[...] = self._reduced(_memory(send, count, kind), op)

    def reduce(
        self, send: int, recv: int, count: int, kind: int, op: int, root: int, stream: int
    ) -> None:
        whole = self._reduced(_memory(send, count, kind), op)
        if self._rank == root:
            _memory(recv, count, kind)[...] = whole

    def reduceScatter(
        self, send: int, recv: int, count: int, kind: int, op: int, stream: int
    ) -> None:
        whole = self._reduced(_memory(send, count * self._size, kind), op)
        _memory(recv, count, kind)[...] = whole[self._rank * count : (self._rank + 1) * count]

    def broadcast(
        self, send: int, recv: int, count: int, kind: int, root: int, stream: int
    ) -> None:
        _memory(recv, count, kind)[...] = self._exchange(_memory(send, count, kind))[root]

    def allGather(self, send: int, recv: int, count: int, kind: int, stream: int) -> None:
        rows = self._exchange(_memory(send, count, kind))
        _memory(recv, count * self._size, kind)[...] = np.concatenate(rows)

    def send(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        data = _memory(pointer, count, kind).tobytes()
        self._later(True, lambda: self._world.mail[self._rank, peer].put(data))

    def recv(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        def call() -> None:
            data = self._world.mail[peer, self._rank].get(timeout=_PATIENCE)
            _memory(pointer, count, kind)[...] = np.frombuffer(data, _DTYPES[kind])

        self._later(False, call)

    def _later(self, is_send: bool, call: Callable[[], None]) -> None:
        waiting = getattr(_group, "waiting", None)
        if waiting is None:
            call()
        else:
            waiting.append((is_send, call))

    def abort(self) -> None:
        self._world.barrier.abort()

    def destroy(self) -> None:
        self._world = _World(1)
