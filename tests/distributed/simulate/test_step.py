"""A simulated step obeys what any step must obey."""

from __future__ import annotations

import random

import pytest

from rushlight.distributed.simulate import Cluster, Layer, Layers, Link, simulate
from rushlight.distributed.simulate.collectives import ring

NETWORK = Cluster(Link(20e-6, 1e9), reduce_bandwidth=5e9)
MODEL = Layers([Layer(str(i), 4e6, 0.01, 0.02) for i in range(10)], optimizer=0.005)


def random_model(seed: int) -> Layers:
    draw = random.Random(seed)
    layers = [
        Layer(str(i), draw.uniform(1e3, 3e7), draw.uniform(0, 0.01), draw.uniform(0, 0.02))
        for i in range(draw.randrange(1, 20))
    ]
    return Layers(layers, draw.uniform(0, 0.01))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("steal", [0.0, 0.4, 1.0])
def test_bounds(seed: int, steal: float) -> None:
    """Never quicker than computing alone or communicating alone, never slower than both in turn;
    and stolen time is real: with `steal=1` nothing is gained."""
    model = random_model(seed)
    cluster = Cluster(Link(20e-6, 1e9), steal=steal)
    step = simulate(model, cluster, 8)
    assert step.exposed >= 0
    assert step.seconds >= max(step.compute, step.communication) - 1e-12
    assert step.seconds <= step.compute + step.communication + 1e-12
    if steal == 1:
        assert step.seconds == pytest.approx(step.compute + step.communication)
    assert step.seconds <= simulate(model, cluster, 8, overlap=False).seconds + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_one_channel_takes_buckets_in_order(seed: int) -> None:
    step = simulate(random_model(seed), NETWORK, 16)
    free = 0.0
    for reduction in step.reductions:
        assert reduction.start == pytest.approx(max(reduction.ready, free))
        assert reduction.end > reduction.start
        free = reduction.end


def test_one_rank_does_not_communicate() -> None:
    step = simulate(MODEL, NETWORK, 1)
    assert (step.exposed, step.communication, step.efficiency) == (0, 0, 1)
    assert step.seconds == MODEL.compute


def test_by_hand() -> None:
    """Two layers of 10 MB, 1 GB/s, no latency: each bucket takes 10 ms on two ranks."""
    layers = [Layer("a", 1e7, 0.001, 0.004), Layer("b", 1e7, 0.001, 0.004)]
    step = simulate(Layers(layers, 0.001), Cluster(Link(0.0, 1e9)), 2, bucket_cap_mb=1)
    # forward until 2; b from 6 to 16; a, ready at 10, from 16 to 26; the update until 27
    assert [round(1e3 * r.end, 6) for r in step.reductions] == [16, 26]
    assert step.seconds == pytest.approx(0.027)
    assert step.exposed == pytest.approx(0.016)


def test_copies_take_the_ranks_own_time() -> None:
    """10 MB into buckets and out of them again, at 1 GB/s: 20 ms, when nothing else takes long."""
    cluster = Cluster(Link(0.0, 1e15), copy_bandwidth=1e9)
    layers = Layers([Layer("a", 1e7, 0.001, 0.004)])
    assert simulate(layers, cluster, 2).seconds == pytest.approx(0.025)
    assert simulate(layers, cluster, 1).seconds == pytest.approx(0.005)


def test_more_ranks_are_less_efficient() -> None:
    for strong in (False, True):
        found = [simulate(MODEL, NETWORK, r, strong=strong).efficiency for r in (1, 2, 8, 64, 512)]
        assert found == sorted(found, reverse=True)
        assert found[0] == 1


def test_slow_ranks_hold_up_the_others() -> None:
    jittery = Cluster(Link(0.0, 1e15), jitter=0.05)
    step = simulate(MODEL, jittery, 1024)
    assert step.seconds == pytest.approx(0.005 + 0.3 * (1 + 0.05 * 3.723), rel=1e-3)


def test_sharding_moves_half_of_the_bytes_after_the_update() -> None:
    step = simulate(MODEL, NETWORK, 4, sharded=True, bucket_cap_mb=1000, first_mb=1000)
    assert step.communication == pytest.approx(ring(MODEL.size, 4, NETWORK))
    assert step.compute == pytest.approx(0.3 + 0.005 / 4)
    with pytest.raises(ValueError, match="at least one rank"):
        simulate(MODEL, NETWORK, 0)
