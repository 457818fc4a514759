"""`Timer` counts runs and adds up what its clock says."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.utils.benchmark import Timer


class Clock:
    """Goes on by a millisecond with every call of `tick`."""

    def __init__(self) -> None:
        self.ticks = 0

    def tick(self) -> None:
        self.ticks += 1

    def now(self) -> float:
        return self.ticks / 1000


def test_timeit() -> None:
    clock = Clock()
    found = Timer("clock.tick()", globals={"clock": clock}, timer=clock.now).timeit(50)
    assert found.number_per_run == 50 and found.mean == pytest.approx(0.001)
    assert clock.ticks == 52  # two to warm up


def test_blocks() -> None:
    clock = Clock()
    calls: list[tuple[int, float]] = []
    timer = Timer("clock.tick()", "x = torch.ones(2)", globals={"clock": clock}, timer=clock.now)
    found = timer.blocked_autorange(lambda n, t: calls.append((n, t)), min_run_time=0.05)
    assert found.median == pytest.approx(0.001) and len(found.times) == len(calls)
    assert sum(found.raw_times) >= 0.05
    settled = timer.adaptive_autorange(min_run_time=0.001)
    assert settled.median == pytest.approx(0.001) and len(settled.times) >= 4


def test_threads_are_set_back() -> None:
    before = torch.get_num_threads()
    timer = Timer("n.append(torch.get_num_threads())", globals={"n": (n := [])}, num_threads=1)
    timer.timeit(1)
    assert set(n) == {1} and torch.get_num_threads() == before


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="Currently only a `str` stmt is supported"):
        Timer(lambda: 1)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="See `Timer.blocked_autorange"):
        Timer().repeat()
