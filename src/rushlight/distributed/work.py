"""`Work`: a collective or a message that is under way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rushlight.futures import Future
from rushlight.locks import lock

__all__ = ["Work"]
__dir__ = __all__.copy

_SPINS = 2000  # looks in a row before the first pause: most collectives of small tensors are over
_PAUSE = 20e-6  # seconds of the first pause; each is longer than the last one
_LONGEST = 1e-3


class Work:
    """What `async_op=True` returns: `wait()` returns when the result is there.

    `poll` looks whether the transport has done its part, `finish` is then called once to bring the
    result to the tensors, `watch` raises if it cannot come any more.

    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> work = dist.all_reduce(torch.ones(2), async_op=True)
    >>> work.wait()
    True
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, poll: Callable[[], bool], finish: Callable[[], None] | None = None,
        result: list[Any] | None = None, watch: Callable[[float, float | None], None] | None = None,
        source: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        self._poll = poll
        self._finish = finish
        self._result = [] if result is None else result
        self._watch = watch
        self._source = source
        self._began = time.monotonic()
        self._done = False
        self._error: BaseException | None = None
        self._future: Future[Any] | None = None
        self._lock = lock()  # two threads may look: the one that waits and the one that helps

    def advance(self) -> bool:
        """Look whether it is over, and if so bring the result home; errors are kept for `wait`."""
        return self._done or self._look()

    def _look(self) -> bool:
        with self._lock:
            if self._done:
                return True
            try:
                if not self._poll():
                    return False
                if self._finish is not None:
                    self._finish()
            except Exception as error:  # told to whoever waits, in whichever thread this is
                self._error = error
            self._done = True
            future = self._future
        self._tell(future)
        return True

    def give_up_if_lost(self) -> None:
        """End it with an error if the result cannot come any more. For work that nobody waits for
        here: whoever waits for its future would wait for ever."""
        if self._watch is None:
            return
        try:
            self._watch(self._began, None)
        except Exception as error:  # told to whoever waits for it
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._done:
                return
            self._error = error
            self._done = True
            future = self._future
        self._tell(future)

    def _tell(self, future: Future[Any] | None) -> None:
        if future is None:
            return
        if self._error is None:
            future.set_result(self._result)
        else:
            future.set_exception(self._error)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the result is there; an error of the transport is raised here."""
        start = time.monotonic()
        limit = timeout.total_seconds() if isinstance(timeout, timedelta) and timeout else None
        looks, pause = 0, _PAUSE
        while not self.advance():
            looks += 1
            if looks < _SPINS:
                os.sched_yield()
                if looks % 64:
                    continue
            else:
                time.sleep(pause)
                pause = min(1.5 * pause, _LONGEST)
            if self._watch is not None:
                self._watch(start, limit)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is over, well or not."""
        return self.advance()

    def is_success(self) -> bool:
        """Whether it is over, and well."""
        return self.advance() and self._error is None

    def exception(self) -> BaseException | None:
        """The error it ended with."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors with the result."""
        return self._result

    def synchronize(self) -> None:
        """Wait, as `wait` does."""
        self.wait()

    def source_rank(self) -> int:
        """The rank that a message came from."""
        if self._source is None:
            raise RuntimeError("sourceRank() may only be called on work objects of a receive")
        return self._source()

    def _source_rank(self) -> int:
        return self.source_rank()

    def get_future(self) -> Future[Any]:
        """A future with the tensors of the result."""
        with self._lock:
            if self._future is None:
                self._future = Future()
                if self._done:
                    self._tell(self._future)
            return self._future


def finished(result: list[Any] | None = None) -> Work:
    """Work that is already over."""
    work = Work(lambda: True, result=result)
    work.advance()
    return work


def together(works: list[Work], result: list[Any] | None = None) -> Work:
    """Several pieces of work as one."""

    def wait_all(start: float, limit: float | None) -> None:
        for work in works:
            if not work._done and work._watch is not None:
                work._watch(start, limit)

    def raise_errors() -> None:
        for work in works:
            if work._error is not None:
                raise work._error

    def all_over() -> bool:
        over = [work.advance() for work in works]  # each is looked at, also behind one that waits
        return all(over)

    return Work(all_over, raise_errors, result, wait_all)
