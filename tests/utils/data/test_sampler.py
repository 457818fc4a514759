"""utils/data/sampler.py does what PyTorch does: stored, and live where it is installed."""

from __future__ import annotations

import tracemalloc

import pytest

import rushlight
import rushlight.utils.data
from tests.harness import LIVE, agree, as_stored, pytorch, stored
from tests.utils.data.cases_sampler import cases

STORED = stored("utils/data/sampler")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == cases.keys()


@pytest.mark.parametrize("name", cases)
def test_gives_what_is_stored(name: str) -> None:
    got = as_stored(cases.run(rushlight, name))
    assert agree(STORED[name], got), got


def test_an_order_of_many_samples_is_no_list_of_as_many_ints() -> None:
    sampler = rushlight.utils.data.RandomSampler(range(300_000))
    for _ in sampler:  # what is made once, and the first block
        break
    order = iter(sampler)
    tracemalloc.start()
    try:
        next(order)
        assert tracemalloc.get_traced_memory()[0] < 1.5 * 300_000 * 8
    finally:
        tracemalloc.stop()
    assert len(set(order)) == 299_999


if LIVE:

    @pytest.mark.parametrize("name", cases)
    def test_gives_what_pytorch_gives(name: str) -> None:
        got = as_stored(cases.run(rushlight, name))
        assert agree(as_stored(cases.run(pytorch(), name)), got), got
