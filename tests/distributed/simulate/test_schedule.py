"""Schedules give every rank the sum, and take the seconds that the formulas say."""

from __future__ import annotations

import pytest

from rushlight.distributed.simulate import collectives, schedule
from rushlight.distributed.simulate.cluster import Cluster, Link

RANKS = [2, 3, 4, 5, 7, 8, 12, 16]
FLAT = Cluster(Link(20e-6, 1e9), reduce_bandwidth=5e9)
# Hosts of four with a quick link inside; a host's ranks share one adapter, or have two.
HOSTS = [
    Cluster(Link(20e-6, 1e9), Link(2e-6, 3e10), per_host=4, nics=nics, reduce_bandwidth=5e9)
    for nics in (1, 2)
]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", schedule.SCHEDULES)
def test_every_rank_has_the_sum(name: str, ranks: int) -> None:
    rounds = schedule.SCHEDULES[name](ranks)
    parts = schedule.parts_of(rounds)
    numbers = [[float(10**part * (rank + 1)) for part in range(parts)] for rank in range(ranks)]
    sums = [sum(row[part] for row in numbers) for part in range(parts)]
    assert schedule.run(rounds, numbers) == [sums] * ranks


@pytest.mark.parametrize("size", [1e3, 1e7])
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", schedule.SCHEDULES)
def test_a_formula_is_its_schedule(name: str, ranks: int, size: float) -> None:
    timed = schedule.seconds(schedule.SCHEDULES[name](ranks), size, FLAT)
    assert collectives.ALGORITHMS[name](size, ranks, FLAT) == pytest.approx(timed)


@pytest.mark.parametrize("cluster", HOSTS, ids=["one adapter", "two adapters"])
@pytest.mark.parametrize("ranks", [4, 8, 16, 32])
@pytest.mark.parametrize("name", schedule.SCHEDULES)
def test_a_formula_is_its_schedule_on_hosts(name: str, ranks: int, cluster: Cluster) -> None:
    timed = schedule.seconds(schedule.SCHEDULES[name](ranks), 1e6, cluster)
    assert collectives.ALGORITHMS[name](1e6, ranks, cluster) == pytest.approx(timed)
