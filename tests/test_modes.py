"""no_grad and its kin: context managers, decorators, threads, generators, asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import rushlight as torch
from rushlight.core.modes import state


def asks() -> bool:
    return (torch.ones(1, requires_grad=True) * 2).requires_grad


def test_nesting() -> None:
    with torch.no_grad():
        assert not asks()
        with torch.enable_grad():
            assert asks()
        assert not asks()
        with torch.set_grad_enabled(True):
            assert asks()
    assert asks()


def test_left_by_an_exception() -> None:
    with pytest.raises(ValueError, match="x"), torch.no_grad():
        raise ValueError("x")
    assert asks()


def test_set_grad_enabled_as_a_function() -> None:
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled() and not asks()
    finally:
        torch.set_grad_enabled(True)
    assert asks()


def test_calls_do_not_pile_up() -> None:
    before = state.active
    for _ in range(3):
        torch.set_grad_enabled(False)
        assert not asks() and state.active == before + 1
        with torch.set_grad_enabled(True):
            assert asks()
        assert not asks()
        torch.set_grad_enabled(True)
        assert asks() and state.active == before
    with torch.no_grad():
        torch.set_grad_enabled(True)
        assert asks()
    assert asks() and state.active == before
    with torch.enable_grad():
        torch.set_grad_enabled(False)
    assert asks() and state.active == before


def test_decorators() -> None:
    @torch.no_grad()
    def f() -> bool:
        return asks()

    @torch.no_grad
    def g() -> bool:
        return asks()

    @torch.set_grad_enabled(False)
    def h() -> bool:
        return asks()

    assert not f() and not g() and not h() and asks()
    assert f.__name__ == "f"


def test_one_object_entered_again() -> None:
    mode = torch.no_grad()
    with mode:
        with mode:
            assert not asks()
        assert not asks()
    assert asks()


def test_generators_do_not_leak() -> None:
    @torch.no_grad()
    def steps() -> Iterator[bool]:
        for _ in range(3):
            yield asks()

    seen = []
    for inside in steps():
        seen.append((inside, asks()))
    assert seen == [(False, True)] * 3

    closed = []

    @torch.no_grad()
    def echo() -> Iterator[object]:
        received: object = None
        try:
            while True:
                try:
                    received = yield (received, asks())
                except KeyError:
                    received = "caught"
        finally:
            closed.append(asks())

    g = echo()
    assert next(g) == (None, False)
    assert g.send(4) == (4, False)
    assert g.throw(KeyError()) == ("caught", False)
    g.close()
    assert closed == [False] and asks()


def test_classes_decorate_their_constructor() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Thing:
            def __init__(self) -> None:
                self.made = asks()

            def later(self) -> bool:
                return asks()

    assert Thing().made is False and Thing().later()


def test_threads_have_their_own_mode() -> None:
    seen: list[bool] = []
    with torch.no_grad():
        t = threading.Thread(target=lambda: seen.append(asks()))
        t.start()
        t.join()
    assert seen == [True]


def test_tasks_have_their_own_mode() -> None:
    async def quiet(ready: asyncio.Event, go: asyncio.Event) -> bool:
        with torch.no_grad():
            ready.set()
            await go.wait()
            return asks()

    async def loud(ready: asyncio.Event, go: asyncio.Event) -> bool:
        await ready.wait()
        inside = asks()
        go.set()
        return inside

    async def main() -> list[bool]:
        ready, go = asyncio.Event(), asyncio.Event()
        return list(await asyncio.gather(quiet(ready, go), loud(ready, go)))

    assert asyncio.run(main()) == [False, True]

    @torch.no_grad()
    async def decorated() -> bool:
        await asyncio.sleep(0)
        return asks()

    assert asyncio.run(decorated()) is False


def test_a_task_started_inside_a_block_outlives_it() -> None:
    async def main() -> bool:
        async def later() -> bool:
            await asyncio.sleep(0)
            return asks()

        with torch.no_grad():
            task = asyncio.ensure_future(later())
        return await task

    assert asyncio.run(main())


def test_inference_mode() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        y.add_(1)
    with pytest.raises(
        RuntimeError,
        match="^Inplace update to inference tensor outside InferenceMode is not allowed.",
    ):
        y.add_(1)
    with pytest.raises(RuntimeError, match="^Inference tensors cannot be saved for backward."):
        x * y
    assert (x + y).requires_grad
    assert not y.clone().is_inference()

    @torch.inference_mode()
    def f() -> bool:
        return torch.ones(1).is_inference()

    assert f()
    with torch.inference_mode(False):
        assert asks()
