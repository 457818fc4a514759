"""Futures: results that come later, from another thread.

>>> future = torch.futures.Future()
>>> then = future.then(lambda f: f.wait() + 1)
>>> future.set_result(41)
>>> then.wait()
42
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from rushlight.locks import lock as _lock

__all__ = ["Future", "collect_all", "wait_all"]
__dir__ = __all__.copy

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """Future(*, devices=None): a value that someone will set.

    >>> f = torch.futures.Future()
    >>> f.done()
    False
    >>> f.set_result("ready")
    >>> f.wait()
    'ready'
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._lock = _lock()
        self._ready = threading.Event()
        self._result: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether there is a result, or an error."""
        return self._ready.is_set()

    def wait(self) -> T:
        """Wait for the result, and return it; an error is raised here."""
        self._ready.wait()
        return self.value()

    def value(self) -> T:
        """The result, which must be there."""
        if not self.done():
            raise RuntimeError("completed() INTERNAL ASSERT FAILED: the Future has no value yet")
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Another future, of what `callback` makes of this one when it is done."""
        following: Future[S] = Future()

        def go_on(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                text = (
                    "Got the following error when running the callback: "
                    f"{type(error).__name__}: {error}"
                )
                following._complete(None, RuntimeError(text))
            else:
                following._complete(result, None)

        self.add_done_callback(go_on)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Have `callback` called with this future when it is done; at once if it is."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: T) -> None:
        """Give the result: those who wait get it."""
        self._complete(result, None)

    def set_exception(self, result: Any) -> None:
        """Give an error in place of a result."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, result: T | None, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._result, self._error = result, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """collect_all(futures) -> Future: done, with the list itself, when all are.

    >>> f = torch.futures.Future()
    >>> all_of_them = torch.futures.collect_all([f])
    >>> f.set_result(1)
    >>> [x.value() for x in all_of_them.wait()]
    [1]
    """
    gathered: Future[list[Future[Any]]] = Future()
    left = [len(futures)]
    guard = _lock()

    def one_done(done: Future[Any]) -> None:
        with guard:
            left[0] -= 1
            last = left[0] == 0
        if last:
            failed = next((f._error for f in futures if f._error is not None), None)
            gathered._complete(None if failed else futures, failed)

    if not futures:
        gathered.set_result([])
    for future in futures:
        future.add_done_callback(one_done)
    return gathered


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """wait_all(futures) -> list: the results of all, waited for.

    >>> f = torch.futures.Future()
    >>> f.set_result(1)
    >>> torch.futures.wait_all([f, f])
    [1, 1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
