"""What collectives cost: closed formulas, and the choice of the quickest algorithm.

With `p` ranks, `n` bytes, latency `a`, `b` seconds a byte and `c` seconds to add a byte:

| algorithm | steps | time |
| --- | --- | --- |
| ring | 2 (p-1) | 2 (p-1) a + 2 n b (p-1)/p + n c (p-1)/p |
| doubling | log p | log p (a + n b + n c) |
| halving | 2 log p | 2 log p a + 2 n b (p-1)/p + n c (p-1)/p |
| tree | 2 log p | 2 log p (a + n b) + log p n c |
| hierarchical | | a reduce-scatter in each host, an all-reduce between hosts, an all-gather |

Small messages want few steps (doubling), large ones few bytes (ring, halving). `halving` matches
ring's bytes with few steps, but its partners are far apart: where the ranks of a host share a
network adapter, its messages share the bandwidth too. `schedule.py` writes the same algorithms out
message by message.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.distributed.simulate.cluster import Cluster


def largest_power(ranks: int) -> int:
    """The largest power of two that is not above `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def ring_pass(size: float, ranks: int, cluster: Cluster) -> float:
    """Half a ring all-reduce without its sums: `ranks - 1` steps of one `ranks`-th of the bytes.

    All ranks step together, so that the slowest link sets the pace; in a ring a host has one
    message out and one in, which nothing shares.
    """
    link = cluster.between if cluster.hosts(ranks) > 1 else cluster.inside
    return (ranks - 1) * link.seconds(size / ranks)


def adding(size: float, cluster: Cluster) -> float:
    return size / cluster.reduce_bandwidth


def reduce_scatter(size: float, ranks: int, cluster: Cluster) -> float:
    """The ring's first half: each rank ends with its part of the sum.

    >>> from rushlight.distributed.simulate import Cluster, Link
    >>> reduce_scatter(8e6, 8, Cluster(Link(0.0, 1e9)))
    0.007
    """
    share = (ranks - 1) / ranks
    return ring_pass(size, ranks, cluster) + adding(size * share, cluster)


def all_gather(size: float, ranks: int, cluster: Cluster) -> float:
    """The ring's second half: the parts, `size` bytes together, go to everybody."""
    return ring_pass(size, ranks, cluster)


def ring(size: float, ranks: int, cluster: Cluster) -> float:
    return reduce_scatter(size, ranks, cluster) + all_gather(size, ranks, cluster)


def exchange(size: float, distance: int, ranks: int, cluster: Cluster) -> float:
    """Every rank and the one `distance` away swap `size` bytes.

    If the partner is on another host, as many messages leave a host as it has ranks; partners
    less than a host away are inside it, unless hosts are not filled by powers of two.
    """
    crossing = min(distance, cluster.per_host, ranks)
    if cluster.hosts(ranks) == 1 or (
        distance < cluster.per_host and cluster.per_host % (2 * distance) == 0
    ):
        return cluster.inside.seconds(size)
    return cluster.between.seconds(size, cluster.sharing(crossing))


def fold(size: float, ranks: int, cluster: Cluster) -> float:
    """What ranks beyond a power of two cost: they hand in their numbers, and get the sum back."""
    extra = ranks - largest_power(ranks)
    if not extra:
        return 0.0
    one_way = exchange(size, largest_power(ranks), ranks, cluster)
    return 2 * one_way + adding(size, cluster)


def doubling(size: float, ranks: int, cluster: Cluster) -> float:
    """Recursive doubling: all bytes to the neighbour, then to the one two away, four away, ..."""
    total, distance, core = fold(size, ranks, cluster), 1, largest_power(ranks)
    while distance < core:
        total += exchange(size, distance, ranks, cluster) + adding(size, cluster)
        distance *= 2
    return total


def halving(size: float, ranks: int, cluster: Cluster) -> float:
    """Recursive halving, then doubling: half of the bytes to the neighbour, a quarter to the one
    two away, ...; and the same way back with the sums."""
    total, distance, core = fold(size, ranks, cluster), 1, largest_power(ranks)
    part = size
    while distance < core:
        part /= 2
        total += 2 * exchange(part, distance, ranks, cluster) + adding(part, cluster)
        distance *= 2
    return total


def tree(size: float, ranks: int, cluster: Cluster) -> float:
    """A sum up a binomial tree to rank 0, and the result down the same tree."""
    total, distance = 0.0, 1
    while distance < ranks:
        inside = distance < cluster.per_host and cluster.per_host % (2 * distance) == 0
        # Of the ranks of a host every `2 * distance`-th sends.
        flows = -(-cluster.per_host // (2 * distance))
        link = cluster.inside if inside or cluster.hosts(ranks) == 1 else cluster.between
        shared = cluster.sharing(flows) if link is cluster.between else 1.0
        total += 2 * link.seconds(size, shared) + adding(size, cluster)
        distance *= 2
    return total


def hierarchical(size: float, ranks: int, cluster: Cluster) -> float:
    """A reduce-scatter inside each host, all-reduces of the parts between hosts, an all-gather.

    All ranks of a host send their parts at once and share its adapters.
    """
    hosts, local = cluster.hosts(ranks), min(cluster.per_host, ranks)
    inside = Cluster(cluster.inside, reduce_bandwidth=cluster.reduce_bandwidth)
    link = cluster.between
    shared = type(link)(link.latency, link.bandwidth / cluster.sharing(local))
    outside = Cluster(shared, reduce_bandwidth=cluster.reduce_bandwidth)
    total = 0.0
    if local > 1:
        total += reduce_scatter(size, local, inside) + all_gather(size, local, inside)
    if hosts > 1:
        total += min(
            cost(size / local, hosts, outside)
            for name, cost in FLAT.items()
            if name in cluster.algorithms
        )
    return total


FLAT: dict[str, Callable[[float, int, Cluster], float]] = {
    "ring": ring,
    "doubling": doubling,
    "halving": halving,
    "tree": tree,
}
ALGORITHMS = {**FLAT, "hierarchical": hierarchical}


def all_reduce(
    size: float, ranks: int, cluster: Cluster, algorithm: str = "best"
) -> tuple[float, str]:
    """Seconds of an all-reduce of `size` bytes, and the algorithm: the quickest, or the given.

    >>> from rushlight.distributed.simulate import ETHERNET
    >>> all_reduce(1_000, 64, ETHERNET)[1], all_reduce(100e6, 64, ETHERNET)[1]
    ('doubling', 'halving')
    >>> round(all_reduce(100e6, 64, ETHERNET, "ring")[0], 4)
    0.0303
    """
    if ranks == 1:
        return 0.0, "none"
    if algorithm == "best":
        known = cluster.measured_seconds(size, ranks)
        if known is not None:
            return known, "measured"
        two_levels = 1 < cluster.hosts(ranks) < ranks
        return min(
            (cost(size, ranks, cluster), name)
            for name, cost in (ALGORITHMS if two_levels else FLAT).items()
            if name in cluster.algorithms
        )
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"no all-reduce algorithm {algorithm!r}; there are {', '.join(ALGORITHMS)}"
        )
    return ALGORITHMS[algorithm](size, ranks, cluster), algorithm
