"""Links, hosts and measured points."""

from __future__ import annotations

import pytest

from rushlight.distributed.simulate.cluster import Cluster, Link
from rushlight.distributed.simulate.collectives import all_reduce


def test_measured_points_are_joined_by_lines() -> None:
    cluster = Cluster(Link(0.0, 1e9), measured={2: ((1e3, 1e-5), (1e6, 1e-3), (2e6, 3e-3))})
    assert all_reduce(1e6, 2, cluster) == (1e-3, "measured")
    assert all_reduce(1.5e6, 2, cluster)[0] == pytest.approx(2e-3)
    assert all_reduce(3e6, 2, cluster)[0] == pytest.approx(5e-3)  # the last line goes on
    assert all_reduce(1.0, 2, cluster)[0] == 1e-5
    assert all_reduce(1e6, 4, cluster)[1] != "measured"


@pytest.mark.parametrize("latency, bandwidth", [(-1e-6, 1e9), (1e-6, 0.0)])
def test_impossible_links(latency: float, bandwidth: float) -> None:
    with pytest.raises(ValueError, match="a link needs latency >= 0 and bandwidth > 0"):
        Link(latency, bandwidth)


def test_impossible_clusters() -> None:
    with pytest.raises(ValueError, match="at least one rank"):
        Cluster(Link(0.0, 1.0), per_host=0)
    with pytest.raises(ValueError, match="steal is a share"):
        Cluster(Link(0.0, 1.0), steal=1.5)
