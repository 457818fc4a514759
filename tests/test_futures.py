"""Futures: results from another thread, callbacks, errors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rushlight.futures import Future, collect_all, wait_all


def test_a_result_from_another_thread() -> None:
    future: Future[int] = Future()
    following = future.then(lambda f: f.value() + 1).then(lambda f: f.wait() * 2)
    assert not future.done() and not following.done()
    threading.Thread(target=future.set_result, args=(20,)).start()
    assert future.wait() == 20 and following.wait() == 42 and future.done()


def test_callbacks_run_once_and_at_once_when_it_is_done() -> None:
    seen: list[Any] = []
    future: Future[str] = Future()
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.set_result("x")
    future.add_done_callback(lambda f: seen.append(f.value() * 2))
    assert seen == ["x", "xx"]


def test_only_one_result() -> None:
    future: Future[int] = Future()
    with pytest.raises(RuntimeError, match="completed"):
        future.value()
    future.set_result(1)
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete"):
        future.set_result(2)


def test_errors() -> None:
    future: Future[int] = Future()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception."):
        future.set_exception(3)
    future.set_exception(ValueError("bad"))
    with pytest.raises(ValueError, match="bad"):
        future.wait()
    with pytest.raises(RuntimeError, match="Got the following error when running the callback: V"):
        future.then(lambda f: f.wait()).wait()
    assert future.then(lambda f: 3).wait() == 3
    with pytest.raises(ValueError, match="bad"):
        wait_all([future])


def test_collecting() -> None:
    futures: list[Future[int]] = [Future() for _ in range(3)]
    gathered = collect_all(futures)
    for i, future in enumerate(reversed(futures)):
        assert not gathered.done()
        future.set_result(i)
    assert [f.value() for f in gathered.wait()] == [2, 1, 0]
    assert wait_all(futures) == [2, 1, 0] and wait_all([]) == []
