"""Which all-reduce is best where, and what it cannot be quicker than."""

from __future__ import annotations

import pytest

from rushlight.distributed.simulate import collectives
from rushlight.distributed.simulate.cluster import ETHERNET, GPUS, Cluster, Link


@pytest.mark.parametrize("name", collectives.ALGORITHMS)
@pytest.mark.parametrize("ranks", [2, 8, 64, 1024])
def test_nothing_beats_the_bandwidth(name: str, ranks: int) -> None:
    """Each rank must send and receive 2 n (p-1)/p bytes, in log p steps at least."""
    size = 25e6
    seconds = collectives.ALGORITHMS[name](size, ranks, ETHERNET)
    assert seconds >= 2 * size * (ranks - 1) / ranks / ETHERNET.between.bandwidth
    assert seconds >= ranks.bit_length() * ETHERNET.between.latency - ETHERNET.between.latency


def test_small_messages_take_few_steps_and_large_ones_few_bytes() -> None:
    cluster = Cluster(Link(20e-6, 1e9), algorithms=("ring", "doubling"))
    assert collectives.all_reduce(100, 16, cluster)[1] == "doubling"
    assert collectives.all_reduce(1e8, 16, cluster)[1] == "ring"


def test_the_hierarchy_pays_where_hosts_share_an_adapter() -> None:
    one = Cluster(Link(20e-6, 1e9), Link(2e-6, 1e11), per_host=8)
    ring, both = (collectives.all_reduce(1e8, 64, one, n)[0] for n in ("ring", "hierarchical"))
    assert both < ring
    # Between hosts go 2 n (h-1)/h bytes, whatever the ranks of a host.
    assert both == pytest.approx(2 * 1e8 * 7 / 8 / 1e9, rel=0.05)


def test_the_best_is_one_that_the_library_has() -> None:
    for size in (1e2, 1e5, 1e8):
        seconds, name = collectives.all_reduce(size, 64, GPUS)
        assert name in GPUS.algorithms
        assert seconds == min(collectives.ALGORITHMS[x](size, 64, GPUS) for x in GPUS.algorithms)


def test_the_two_halves_of_a_ring_are_the_ring() -> None:
    halves = collectives.reduce_scatter(1e6, 8, ETHERNET) + collectives.all_gather(1e6, 8, ETHERNET)
    assert halves == collectives.ring(1e6, 8, ETHERNET)


def test_an_unknown_algorithm_is_named() -> None:
    with pytest.raises(ValueError, match="no all-reduce algorithm 'star'; there are ring, "):
        collectives.all_reduce(1.0, 2, ETHERNET, "star")
