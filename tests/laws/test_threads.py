"""Many threads: backward passes over shared graphs, hooks and graphs across threads, quiet ops.

Tests that take `torch` run on rushlight, and on PyTorch too where it is installed: what they assert
is true of both. Numbers are small integers, so that sums are exact in any order.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.core import fp_warnings as quiet
from rushlight.core.engine.hooks import leaf_hooks
from rushlight.core.grad_mode import state

THREADS = 8


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    """Let threads interrupt each other a thousand times as often as they usually do."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """`work(k)` for each k, in threads that start at one moment."""
    barrier = threading.Barrier(threads)

    def begin(k: int) -> Any:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


# --- passes over one graph ------------------------------------------------------------------------
def test_passes_over_a_shared_part(torch: Any) -> None:
    a = torch.ones(3, requires_grad=True)
    b = torch.full((3,), 2.0, requires_grad=True)
    shared = (a * b + a) * b  # a (b b + b)

    def work(k: int) -> None:
        for _ in range(25):
            (shared * (k + 1) + a).sum().backward(retain_graph=True)

    together(work)
    times = 25 * sum(range(1, THREADS + 1))
    assert a.grad.tolist() == [6.0 * times + 25 * THREADS] * 3
    assert b.grad.tolist() == [5.0 * times] * 3


def test_one_graph_many_passes(torch: Any) -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = x
    for _ in range(20):
        y = y * 1 + x
    y = y.sum()

    def work(k: int) -> list[Any]:
        found = [torch.autograd.grad(y, x, retain_graph=True)[0].tolist() for _ in range(10)]
        y.backward(retain_graph=True)
        return found

    assert all(g == [21.0] * 4 for found in together(work) for g in found)
    assert x.grad.tolist() == [21.0 * THREADS] * 4


def test_interior_gradients_and_inputs(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    h = x * 3
    y = (h * w).sum()

    def work(k: int) -> list[Any]:
        found = []
        for _ in range(10):
            found.append(torch.autograd.grad(y, [h, w], retain_graph=True)[k % 2].tolist())
            y.backward(inputs=[x] if k % 2 else [w], retain_graph=True)
        return found

    found = together(work)
    assert all(g == ([3.0, 3.0] if k % 2 else [1.0, 1.0]) for k in range(THREADS) for g in found[k])
    assert x.grad.tolist() == w.grad.tolist() == [3.0 * 10 * THREADS / 2] * 2


def test_higher_orders(torch: Any) -> None:
    x = torch.tensor(2.0, requires_grad=True)
    shared = x**4

    def work(k: int) -> list[float]:
        (g,) = torch.autograd.grad(shared * (k + 1), x, create_graph=True)
        (h,) = torch.autograd.grad(g, x, create_graph=True)
        (j,) = torch.autograd.grad(h, x, retain_graph=True)
        return [g.item(), h.item(), j.item()]

    assert together(work) == [[32.0 * n, 48.0 * n, 48.0 * n] for n in range(1, THREADS + 1)]


def test_a_graph_that_was_freed_elsewhere(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    threading.Thread(target=y.backward).start()
    for t in threading.enumerate():
        if t is not threading.current_thread() and not t.daemon:
            t.join()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_graphs_made_by_several_threads(torch: Any) -> None:
    """Each thread goes on from what the thread before it made; another runs backward."""
    x = torch.ones(2, requires_grad=True)
    y = x

    def longer() -> None:
        nonlocal y
        for _ in range(5):
            y = y * 2

    for _ in range(4):
        worker = threading.Thread(target=longer)
        worker.start()
        worker.join()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: y.sum().backward()).result()
    assert x.grad.tolist() == [2.0**20] * 2


def test_parts_made_at_one_time(torch: Any) -> None:
    x = torch.ones(3, requires_grad=True)

    def work(k: int) -> Any:
        y = x * k
        for _ in range(30):
            y = y + x
        return y

    torch.stack(together(work)).sum().backward()
    assert x.grad.tolist() == [sum(k + 30.0 for k in range(THREADS))] * 3


def test_reentrant_passes(torch: Any) -> None:
    shared = torch.ones(2, requires_grad=True)

    class Inner(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                (x * x * shared).sum().backward()  # and so into `shared`, of another graph
            return x.grad * g

    def work(k: int) -> list[float]:
        x = torch.full((2,), float(k), requires_grad=True)
        for _ in range(5):
            Inner.apply(x).sum().backward()
        return list(x.grad.tolist())

    assert together(work) == [[10.0 * k] * 2 for k in range(THREADS)]
    assert shared.grad.tolist() == [5.0 * sum(k * k for k in range(THREADS))] * 2


def test_a_failure_stays_in_its_thread(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    shared = x * 2

    def work(k: int) -> str:
        y = shared * 1
        if k % 2:

            def fail(g: Any) -> None:
                raise KeyError(k)

            y.register_hook(fail)
        try:
            for _ in range(10):
                y.sum().backward(retain_graph=True)
        except KeyError as error:
            return str(error)
        return "fine"

    found = together(work)
    assert found == [str(k) if k % 2 else "fine" for k in range(THREADS)]
    assert x.grad.tolist() == [2.0 * 10 * THREADS / 2] * 2


def test_a_write_is_noticed_in_other_threads(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: y.detach().add_(1)).result()
        text = "^one of the variables needed for gradient computation has been modified by an inpl"
        with pytest.raises(RuntimeError, match=text):
            pool.submit(z.backward).result()


# --- hooks ----------------------------------------------------------------------------------------
def test_hooks_run_in_the_thread_of_the_pass(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen: list[tuple[str, int]] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *args: seen.append((name, threading.get_ident()))

    x.register_hook(note("leaf"))
    x.register_post_accumulate_grad_hook(note("post"))
    y.register_hook(note("tensor"))
    y.grad_fn.register_prehook(note("pre"))
    y.grad_fn.register_hook(note("node"))
    names = ["tensor", "pre", "node", "leaf", "post"]

    def work(k: int) -> list[tuple[str, int]]:
        y.sum().backward(retain_graph=True)
        return [entry for entry in seen if entry[1] == threading.get_ident()]

    for found in together(work, 4):
        idents = {ident for _, ident in found}
        assert len(idents) == 1 and len(found) % len(names) == 0
        assert [name for name, _ in found[: len(names)]] == names
    assert len(seen) == 4 * len(names)


def test_hooks_added_and_removed_while_passes_run(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    calls: list[int] = []

    def work(k: int) -> None:
        for _ in range(20):
            if k % 2:
                handles = [t.register_hook(lambda g: calls.append(1)) for t in (x, y)]
                y.sum().backward(retain_graph=True)
                for handle in handles:
                    handle.remove()
            else:
                y.sum().backward(retain_graph=True)

    together(work)
    assert x.grad.tolist() == [2.0 * 20 * THREADS] * 2
    assert len(calls) >= 2 * 20 * THREADS / 2
    count = len(calls)
    y.sum().backward()
    assert len(calls) == count


def test_hooks_that_build_graphs(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    shared = x * 3

    def work(k: int) -> float:
        y = shared * (k + 1)
        made: list[Any] = []
        y.register_hook(lambda g: made.append((g * x).sum()))
        torch.autograd.grad(y.sum(), x, create_graph=True)
        return float(torch.autograd.grad(made[0], x)[0].sum())

    assert together(work) == [2.0] * THREADS


def test_multi_grad_hooks(torch: Any) -> None:
    def work(k: int) -> list[int]:
        a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
        seen: list[int] = []
        register = torch.autograd.graph.register_multi_grad_hook
        handle = register((a, b), lambda grads: seen.append(sum(g is not None for g in grads)))
        for _ in range(5):
            (a * b).sum().backward()
            a.sum().backward()
        handle.remove()
        return seen

    assert together(work) == [[2, 1] * 5] * THREADS


# --- modes ----------------------------------------------------------------------------------------
def test_modes_do_not_mix(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)

    def work(k: int) -> set[tuple[bool, bool]]:
        mode = (torch.no_grad, torch.enable_grad, torch.inference_mode)[k % 3]
        seen = set()
        for _ in range(50):
            with mode():
                seen.add(((x * 2).requires_grad, torch.ones(1).is_inference()))
        return seen

    expected = [{(False, False)}, {(True, False)}, {(False, True)}]
    assert together(work) == [expected[k % 3] for k in range(THREADS)]
    assert (x * 2).requires_grad


def test_every_mode_is_given_back() -> None:
    torch: Any = rushlight
    x = torch.ones(2, requires_grad=True)
    before = state.active

    def work(k: int) -> None:
        for i in range(40):
            with torch.no_grad(), torch.enable_grad():
                (x * 2).sum().backward()
            torch.set_grad_enabled(i % 2 == 0)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                (x * x).sum().backward() if i % 2 == 0 else None
        torch.set_grad_enabled(False)  # and the thread ends

    together(work)
    gc.collect()
    assert state.active == before
    assert (x * 2).requires_grad


def test_generators_left_in_another_thread() -> None:
    torch: Any = rushlight
    before = state.active

    def steps() -> Iterator[bool]:
        with torch.no_grad():
            yield torch.is_grad_enabled()
            yield torch.is_grad_enabled()

    made = [steps() for _ in range(THREADS)]
    assert together(lambda k: next(made[k])) == [False] * THREADS
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        for g in made:
            g.close()
        assert not torch.is_grad_enabled()  # what this thread set is still there
    finally:
        torch.set_grad_enabled(True)
    assert state.active == before


# --- what is made on first use --------------------------------------------------------------------
def test_a_leaf_has_one_node(torch: Any) -> None:
    for _ in range(20):
        x = torch.ones(1, requires_grad=True)
        found = together(lambda k, x=x: (x * k).grad_fn.next_functions[0][0])
        assert all(n is found[0] for n in found)


def test_no_hook_is_lost() -> None:  # PyTorch loses some
    torch: Any = rushlight
    for _ in range(20):
        x = torch.ones(1, requires_grad=True)
        y = x * 2
        seen: list[int] = []

        def work(k: int, x: Any = x, y: Any = y, seen: list[int] = seen) -> None:
            for t in (x, y):
                t.register_hook(lambda g: seen.append(k))
            x.register_post_accumulate_grad_hook(lambda p: seen.append(k))
            y.grad_fn.register_hook(lambda gi, go: seen.append(k))
            y.grad_fn.metadata[k] = k

        together(work)
        y.backward()
        assert sorted(seen) == sorted(list(range(THREADS)) * 4)
        assert len(y.grad_fn.metadata) == THREADS


def test_a_hook_is_uncounted_once() -> None:
    torch: Any = rushlight
    gc.collect()
    before = leaf_hooks.count
    x = torch.ones(1, requires_grad=True)
    for _ in range(50):
        handle = x.register_hook(lambda g: None)
        together(lambda k, handle=handle: handle.remove())
    assert leaf_hooks.count == before


# --- node numbers ---------------------------------------------------------------------------------
def test_numbers_are_never_given_twice() -> None:
    torch: Any = rushlight
    x = torch.ones(1, requires_grad=True)
    found = together(lambda k: [(x * 2).grad_fn._seq_nr for _ in range(200)])
    numbers = [n for some in found for n in some]
    assert len(set(numbers)) == len(numbers)
    assert all(some == sorted(some) for some in found)


# --- training -------------------------------------------------------------------------------------
def test_training_without_locks(torch: Any) -> None:
    """Threads that train one model, each on its own gradients (Hogwild)."""
    w = torch.zeros(4, requires_grad=True)
    lock = threading.Lock()

    def work(k: int) -> None:
        for _ in range(20):
            (g,) = torch.autograd.grad((w * (k + 1)).sum(), w)
            with lock, torch.no_grad():
                w.sub_(g)

    together(work)
    assert w.tolist() == [-20.0 * sum(range(1, THREADS + 1))] * 4


def test_modules_and_optimisers(torch: Any) -> None:
    def work(k: int) -> list[Any]:
        layer = torch.nn.Linear(2, 1)
        with torch.no_grad():
            layer.weight.fill_(1.0)
            layer.bias.fill_(0.0)
        optimiser = torch.optim.SGD(layer.parameters(), lr=0.5)
        for _ in range(5):
            optimiser.zero_grad()
            layer(torch.full((1, 2), float(k))).sum().backward()
            optimiser.step()
        return [layer.weight.tolist(), layer.bias.tolist()]

    assert together(work) == [[[[1 - 2.5 * k] * 2], [-2.5]] for k in range(THREADS)]


# --- silence --------------------------------------------------------------------------------------
@pytest.fixture
def shown() -> Iterator[list[tuple[int, str]]]:
    """Every warning that is shown, with its thread. rushlight's filter stands in front."""
    found: list[tuple[int, str]] = []
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("always")
        quiet.install_filter()
        warnings.showwarning = lambda message, *rest: found.append(
            (threading.get_ident(), str(message))
        )
        yield found


def test_ops_are_silent_and_others_are_not(shown: list[tuple[int, str]]) -> None:
    torch: Any = rushlight
    zero = torch.zeros(20_000, requires_grad=True)
    inf = torch.full((20_000,), float("inf"))
    stop = threading.Event()

    def ours() -> None:
        while not stop.is_set():
            zero / zero
            inf - inf
            (zero * inf).sum().backward()
            zero.log()

    workers = [threading.Thread(target=ours) for _ in range(3)]
    for worker in workers:
        worker.start()
    a = np.zeros(3)
    try:
        # the op that was under way when the second thread was first seen is taken for anyone's
        while not shown:
            a / a
        shown.clear()
        for _ in range(300):
            a / a
            np.log(np.zeros(2_000))
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert {ident for ident, _ in shown} == {threading.get_ident()}
    assert len(shown) == 600


def test_silence_when_alone(shown: list[tuple[int, str]]) -> None:
    torch: Any = rushlight
    zero = torch.zeros(3, requires_grad=True)
    (zero / zero).sum().backward()
    torch.linalg.inv(torch.full((2, 2), float("nan")))
    assert shown == []
    np.zeros(2) / np.zeros(2)
    assert [text for _, text in shown] == ["invalid value encountered in divide"]
    shown.clear()
    zero.register_hook(lambda g: np.log(np.zeros(1)) and None)  # the user's own code, in a pass
    (zero / zero).sum().backward()
    assert [text for _, text in shown] == ["divide by zero encountered in log"]
    assert not state.busy
