"""no_grad and its kin: context managers, decorators, threads, generators, asyncio.

What PyTorch does is stored (cases_grad_mode.py), and asked live where it is installed;
the other tests say what rushlight does beyond it, or where it is kinder.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import importlib
import importlib.util
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight.core.grad_mode import state
from tests.autograd import cases_grad_mode as written
from tests.core.engine.helpers import TwoOutputs
from tests.harness import LIVE, pytorch, stored

STORED = stored("autograd/grad_mode")


# --- as PyTorch does ------------------------------------------------------------------------------
@pytest.mark.parametrize("name", written.cases)
def test_as_pytorch(name: str) -> None:
    before = state.active
    assert written.cases.run(torch, name) == STORED["cases"][name]
    if LIVE:
        assert written.cases.run(pytorch(), name) == STORED["cases"][name]
    gc.collect()
    assert state.active == before


def test_random_programs() -> None:
    before = state.active
    for seed in written.SEEDS:
        assert written.observed(torch, seed) == STORED["programs"][seed], written.program(
            written.random.Random(seed)
        )
    assert state.active == before


def test_random_programs_are_those_of_pytorch() -> None:
    if LIVE:
        library = importlib.import_module("torch")
        for seed in written.SEEDS[:100]:
            assert written.observed(library, seed) == STORED["programs"][seed]


# --- rushlight's own ------------------------------------------------------------------------------
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


@pytest.mark.parametrize(
    "use",
    [
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i),
        lambda x, i: x.take(i),
    ],
)
def test_indices_of_inference_mode_cannot_be_saved(use: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        indices = torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match="^Inference tensors cannot be saved for backward."):
        use(x, indices)
    assert use(x.detach(), indices).tolist() == [1.0, 1.0]


def test_gradients_are_no_inference_tensors() -> None:
    """A pass inside inference mode gives gradients that can be used outside. PyTorch's cannot."""
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    with torch.inference_mode():
        y.backward()
    assert not x.grad.is_inference()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_async_generators() -> None:
    """The mode holds for each step, and not while the generator is suspended."""
    closed: list[bool] = []

    @torch.no_grad()
    async def steps() -> AsyncIterator[object]:
        received: object = None
        try:
            for _ in range(4):
                await asyncio.sleep(0)
                try:
                    received = yield (received, asks())
                except KeyError:
                    received = "caught"
        finally:
            closed.append(asks())

    async def main() -> list[Any]:
        g: Any = steps()
        seen = [
            await anext(g),
            asks(),
            await g.asend(1),
            asks(),
            await g.athrow(KeyError()),
            asks(),
        ]
        await g.aclose()
        seen.append([inside async for _, inside in steps()])
        return seen

    found = asyncio.run(main())
    assert found[:6] == [(None, False), True, (1, False), True, ("caught", False), True]
    assert found[6] == [False] * 4 and closed == [False, False] and asks()


def test_decorated_coroutines_keep_their_mode_while_others_run() -> None:
    seen: list[tuple[str, bool]] = []

    @torch.no_grad()
    async def quiet() -> None:
        for _ in range(3):
            seen.append(("quiet", asks()))
            await asyncio.sleep(0)

    async def loud() -> None:
        for _ in range(3):
            seen.append(("loud", asks()))
            await asyncio.sleep(0)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(quiet())
                group.create_task(loud())

    asyncio.run(main())
    assert len(seen) == 12 and all(asked is (name == "loud") for name, asked in seen)
    assert asks()


def test_tasks_that_set_the_mode_by_a_call() -> None:
    before = state.active

    async def switch() -> bool:
        torch.set_grad_enabled(False)
        await asyncio.sleep(0)
        return asks()

    async def main() -> list[bool]:
        found = list(await asyncio.gather(*(switch() for _ in range(5))))
        return [*found, asks()]

    assert asyncio.run(main()) == [False] * 5 + [True]
    gc.collect()
    assert state.active == before  # the tasks are over, and ops are as quick as before


def test_callbacks_and_contexts() -> None:
    context = contextvars.copy_context()
    with torch.no_grad():
        inside = contextvars.copy_context()
        assert context.run(asks) and not inside.run(asks)
    assert inside.run(asks)  # the block is over

    async def main() -> list[bool]:
        loop = asyncio.get_running_loop()
        seen: list[bool] = []
        with torch.no_grad():
            loop.call_soon(lambda: seen.append(asks()))
            await asyncio.sleep(0)
            loop.call_later(0.001, lambda: seen.append(asks()))
        await asyncio.sleep(0.01)
        return seen

    assert asyncio.run(main()) == [False, True]


def test_a_cancelled_task_leaves_no_mode() -> None:
    before = state.active

    async def wait() -> None:
        with torch.inference_mode():
            await asyncio.sleep(60)

    async def main() -> bool:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asks()

    assert asyncio.run(main()) and state.active == before


def test_modes_of_threads_that_are_gone() -> None:
    before = state.active

    def work() -> None:
        torch.set_grad_enabled(False)
        torch.no_grad().__enter__()
        torch.inference_mode().__enter__()
        assert not asks()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gc.collect()
    assert state.active == before and asks()


def test_left_in_another_order() -> None:
    before = state.active
    outer, inner = torch.no_grad(), torch.enable_grad()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert asks()  # the inner one is still there
    inner.__exit__(None, None, None)
    assert asks() and state.active == before


def test_a_generator_left_elsewhere_disturbs_nobody() -> None:
    def steps() -> Iterator[None]:
        with torch.no_grad():
            yield

    before = state.active
    g = steps()
    contextvars.copy_context().run(next, g)
    torch.set_grad_enabled(False)
    try:
        del g
        gc.collect()
        assert not asks()  # what was set here is still set
    finally:
        torch.set_grad_enabled(True)
    assert asks() and state.active == before


def test_settings_of_multithreading() -> None:
    enabled, before = torch.autograd.grad_mode.is_multithreading_enabled, state.active
    torch.autograd.grad_mode.set_multithreading_enabled(False)
    try:
        assert not enabled()
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(enabled()))
        thread.start()
        thread.join()
        assert seen == [True]
        assert asyncio.run(asyncio.to_thread(enabled))
    finally:
        torch.autograd.grad_mode.set_multithreading_enabled(True)
    assert state.active == before  # ops are as quick as ever


def test_one_mode_object_in_two_threads() -> None:
    mode = torch.no_grad()
    entered, go, left = (threading.Event() for _ in range(3))

    def other() -> None:
        with mode:
            entered.set()
            go.wait()
        left.set()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    with mode:
        go.set()
        left.wait()
        assert not torch.is_grad_enabled()
    thread.join()
    assert torch.is_grad_enabled()


def test_inference_mode_reaches_into_functions() -> None:
    with torch.inference_mode():
        a, _ = TwoOutputs.apply(torch.ones(2))
        assert a.is_inference()
