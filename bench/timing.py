"""Timing that a noisy machine can't spoil much: best of several, the contestants taking turns."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter, sleep

__all__ = ["alternate"]


def _once(run: Callable[[], object], loops: int, rest: float = 0.0) -> float:
    """Seconds a call. The first is not counted: it finds the other's data in the caches."""
    if rest:
        sleep(rest)
    run()
    start = perf_counter()
    for _ in range(loops):
        run()
    return (perf_counter() - start) / loops


def _loops(run: Callable[[], object], least: float) -> int:
    loops = 1
    while _once(run, loops) * loops < least and loops < 1 << 20:
        loops *= 2
    return loops


def alternate(
    runs: dict[str, Callable[[], object]],
    rounds: int = 15,
    least: float = 0.01,
    rest: float = 0.0,
) -> dict[str, float]:
    """Seconds a call for each contestant: the best of `rounds`, taken in turns. Between them all
    rest for some seconds: threads that wait for work keep a processor busy for a while."""
    for run in runs.values():
        run()
    loops = {name: _loops(run, least) for name, run in runs.items()}
    best = dict.fromkeys(runs, float("inf"))
    gc.collect()
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], _once(run, loops[name], rest))
    return best
