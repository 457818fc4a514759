"""Eight threads on shared tensors: forward, backward, hooks, writes in place, modes, transforms.

Each attempt is one drawn scene, in which every thread does its part many times and the sum is known
beforehand. Threads change places a thousand times as often as usual.
"""

from __future__ import annotations

import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as rl
from rushlight.core.engine.hooks import leaf_hooks
from rushlight.core.grad_mode import current, state
from rushlight.core.transforms.stack import stack

TITLE = "threads"
SHORT = 36
THREADS = 8
LONGEST = 120.0  # seconds until threads are taken to wait for each other for ever

Scene = Callable[[random.Random], tuple[Callable[[int], None], Callable[[], str | None]]]


def writes(rng: random.Random) -> Any:
    """Every thread adds to one tensor: no update is lost, and every one is counted."""
    n, times = rng.choice([1, 7, 1000, 20000]), 25
    x = rl.zeros(n)
    y = rl.zeros(n)
    part = y[: max(1, n // 2)]

    def work(k: int) -> None:
        for _ in range(times):
            x.add_(1)
            x.mul_(1).sub_(0)
            part.add_(2)

    def judge() -> str | None:
        want = float(times * THREADS)
        if x.min().item() != want or x.max().item() != want:
            return f"{n} elements: additions gave {x.min().item()} to {x.max().item()}, not {want}"
        if part.min().item() != 2 * want or part.max().item() != 2 * want:
            return f"{n} elements: additions through a view were lost"
        return None if x._version == 3 * times * THREADS else f"{x._version} writes counted"

    return work, judge


def gradients(rng: random.Random) -> Any:
    """Passes over one graph add to the same leaves."""
    n, times = rng.choice([1, 3, 500]), 10
    a = rl.ones(n, requires_grad=True)
    b = rl.full((n,), 2.0, requires_grad=True)
    shared = (a * b + a) * b

    def work(k: int) -> None:
        for _ in range(times):
            (shared * (k + 1) + a).sum().backward(retain_graph=True)

    def judge() -> str | None:
        total = times * THREADS * (THREADS + 1) // 2
        want = [6.0 * total + times * THREADS] * n, [5.0 * total] * n
        have = a.grad.tolist(), b.grad.tolist()
        return None if have == want else f"gradients {have[0][:2]}, {have[1][:2]}, not {want}"

    return work, judge


def hooks(rng: random.Random) -> Any:
    """Hooks come and go on one leaf while passes run."""
    x = rl.ones(2, requires_grad=True)
    seen: list[int] = []
    kept = [x.register_hook(lambda g: seen.append(1)) for _ in range(2)]

    def work(k: int) -> None:
        for _ in range(10):
            with x.register_hook(lambda g: None):
                (x * 2).sum().backward()

    def judge() -> str | None:
        for handle in kept:
            handle.remove()
        if leaf_hooks.count != 0:
            return f"{leaf_hooks.count} hooks are counted, and there are none"
        if len(seen) != 2 * 10 * THREADS:
            return f"{len(seen)} calls of two hooks in {10 * THREADS} passes"
        have = x.grad.tolist()
        return None if have == [20.0 * THREADS] * 2 else f"the gradient is {have}"

    return work, judge


def modes(rng: random.Random) -> Any:
    """A mode of one thread is nobody else's."""
    x = rl.ones(3, requires_grad=True)
    shared = rl.no_grad()
    wrong: list[str] = []

    def work(k: int) -> None:
        for _ in range(15):
            if k % 2:
                with shared, rl.inference_mode(k % 4 == 1):
                    if (x * 2).requires_grad is (k % 4 == 1):
                        wrong.append("recorded in inference mode, or not outside it")
            elif not (x * 2).requires_grad:
                wrong.append("not recorded in a thread that entered no mode")
            if not rl.is_grad_enabled():
                wrong.append("recording stayed off")

    def judge() -> str | None:
        return wrong[0] if wrong else None

    return work, judge


def transforms(rng: random.Random) -> Any:
    """Derivatives and batches, of each thread its own."""
    x = rl.arange(4.0)
    found: list[bool] = []

    def work(k: int) -> None:
        for _ in range(3):
            cube = rl.func.grad(lambda t: (t**3).sum())(x).tolist() == [0.0, 3.0, 12.0, 27.0]
            rows = rl.func.vmap(rl.func.grad(lambda t: t * t))(x).tolist() == [0.0, 2.0, 4.0, 6.0]
            value = rl.func.jvp(lambda t: t * t, (x,), (x,))[1].tolist() == [0.0, 2.0, 8.0, 18.0]
            found.append(cube and rows and value)

    def judge() -> str | None:
        return None if found == [True] * 3 * THREADS else "a derivative came out wrong"

    return work, judge


def quiet(rng: random.Random) -> Any:
    """Ops say nothing about 1/0; turned into errors, warnings stop none of them."""
    x = rl.zeros(rng.choice([1, 3000]), requires_grad=True)

    def work(k: int) -> None:
        for _ in range(10):
            y = (1 / x).log() - float("inf")
            y.sum().backward()

    def judge() -> str | None:
        return None if bool(x.grad.isnan().all()) else f"the gradient is {x.grad}"

    return work, judge


SCENES: tuple[Scene, ...] = (writes, gradients, hooks, modes, transforms, quiet)


def together(work: Callable[[int], None]) -> list[BaseException]:
    """Do `work(k)` in every thread, begun at one moment; what went wrong."""
    barrier = threading.Barrier(THREADS)
    trouble: list[BaseException] = []

    def begin(k: int) -> None:
        try:
            barrier.wait()
            work(k)
        except BaseException as error:  # told to whoever asked
            trouble.append(error)

    threads = [threading.Thread(target=begin, args=(k,), daemon=True) for k in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(LONGEST)
    if any(t.is_alive() for t in threads):
        trouble.append(TimeoutError("threads wait for each other"))
    return trouble


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    rng = random.Random(f"threads {seed}")
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    try:
        number = 0
        while True:
            scene = SCENES[number % len(SCENES)]
            number += 1
            work, judge = scene(rng)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                trouble = together(work)
            said = f"{type(trouble[0]).__name__}: {trouble[0]}" if trouble else judge()
            left = current() is not None or state.active or stack.batches or stack.tangents
            if said is None and (left or state.busy):
                said = "a mode, a level or a busy op was left behind"
            yield (
                None if said is None else f"seed {seed}, attempt {number}, {scene.__name__}: {said}"
            )
    finally:
        sys.setswitchinterval(before)
