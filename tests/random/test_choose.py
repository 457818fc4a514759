"""Shuffles and permutations."""

from __future__ import annotations

import tracemalloc

import pytest

from rushlight import random as raw
from rushlight.random import choose


@pytest.mark.parametrize("n", [2, 3, 10, 200, 201, 1000, 8192, 8193, 16384, 16385, 100000])
def test_a_shuffle_without_a_loop_equals_the_loop(n: int) -> None:
    targets = choose._targets(n, raw.Generator().manual_seed(n))
    assert (choose._swap_all(targets) == choose._swap(targets.tolist())).all()


def test_a_shuffle_takes_little_more_memory_than_its_result() -> None:
    generator = raw.Generator().manual_seed(0)
    raw.randperm(1000, gen=generator)
    tracemalloc.start()
    try:
        order = raw.randperm(1_000_000, gen=generator)
        assert tracemalloc.get_traced_memory()[1] < 4 * order.nbytes
    finally:
        tracemalloc.stop()


def test_a_long_permutation_is_made_from_the_inside_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "LONG", 100)
    words = raw.Generator().take64(150).tolist()
    order: list[int] = []
    for i, word in enumerate(words):
        place = word % (i + 1)
        order.append(i if place == i else order[place])
        order[place] = i
    assert raw.randperm(150, gen=raw.Generator()).tolist() == order
