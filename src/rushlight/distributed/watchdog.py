"""A watchdog for collectives on GPUs: NCCL itself waits for ever for a process that does not come.

A thread looks at what was started on the stream. If it takes longer than the group's timeout, or
one of its processes has died, the communicator is aborted: the kernels that wait end, and every
later call raises.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from rushlight.distributed.errors import DistBackendError
from rushlight.locks import lock

__all__ = ["Watchdog"]
__dir__ = __all__.copy

_PAUSE: Final = 0.05  # seconds between two looks
_GRACE: Final = 2.0  # seconds in which a collective may complete after a process has gone


class Watchdog:
    """Watches what a communicator does; `abort` ends it."""

    def __init__(
        self, abort: Callable[[], None], ranks: Sequence[int], attendance: Any, seconds: float,
        label: str,
    ) -> None:  # fmt: skip
        self.trouble = ""  # why the communicator was aborted
        self.seconds = seconds
        self._abort, self._ranks, self._label = abort, list(ranks), label
        self._attendance = attendance
        self._pending: deque[tuple[float, str, Any]] = deque()
        self._lock = lock()
        self._wake = threading.Event()
        self._closed = False
        threading.Thread(target=self._watch, name="rushlight watchdog", daemon=True).start()

    def started(self, name: str, event: Any) -> None:
        """A collective was started; `event.done` says when it is over."""
        with self._lock:
            self._pending.append((time.monotonic(), name, event))
        self._wake.set()

    def check(self) -> None:
        """Raise if the communicator was aborted."""
        if self.trouble:
            raise DistBackendError(self.trouble)

    def close(self) -> None:
        """Watch no longer."""
        self._closed = True
        self._wake.set()

    def _watch(self) -> None:
        while True:
            self._wake.wait()
            if self._closed:
                return
            with self._lock:
                while self._pending and self._pending[0][2].done:
                    self._pending.popleft()
                oldest = self._pending[0] if self._pending else None
                if oldest is None:
                    self._wake.clear()
            if oldest is not None and (trouble := self._trouble_with(oldest)):
                self.trouble = trouble
                self._abort()
                return
            time.sleep(_PAUSE)

    def _trouble_with(self, oldest: tuple[float, str, Any]) -> str:
        start, name, _ = oldest
        now = time.monotonic()
        if now - start > self.seconds:
            return (
                f"Timed out waiting {self.seconds * 1000:.0f}ms for {name} of {self._label}: the "
                "communicator was aborted.\nAll processes of a group have to call the same "
                "collectives in the same order."
            )
        if now - start > _GRACE and self._attendance is not None:
            lost = self._attendance.lost(self._ranks, now - _GRACE)
            if lost:
                ranks = ", ".join(map(str, lost))
                return (
                    f"Connection closed by peer: rank {ranks} ended during {name} of "
                    f"{self._label}.\nStart again from the last checkpoint."
                )
        return ""
