"""The machines of a simulation: how long a message takes, and which ranks share a host.

The model is the usual one of collective communication: a message of `n` bytes takes `latency +
n / bandwidth` seconds, and adding `n` bytes to `n` others takes `n / reduce_bandwidth`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise


@dataclass(frozen=True)
class Link:
    """A way between two ranks: seconds until the first byte arrives, and bytes a second after it.

    >>> from rushlight.distributed.simulate import Link
    >>> Link(latency=20e-6, bandwidth=12.5e9).seconds(1_000_000)
    0.0001
    """

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        if self.latency < 0 or self.bandwidth <= 0:
            raise ValueError(
                "a link needs latency >= 0 and bandwidth > 0, "
                f"got {self.latency} and {self.bandwidth}"
            )

    def seconds(self, size: float, flows: float = 1.0) -> float:
        """The time of one message of `size` bytes, while `flows` of them share the bandwidth."""
        return self.latency + size * flows / self.bandwidth


@dataclass(frozen=True)
class Cluster:
    """Hosts of `per_host` ranks each; ranks that follow each other fill a host before the next.

    `between` joins hosts, `within` the ranks of a host (by default the same). A host has `nics`
    network adapters, each of `between`'s bandwidth, which its ranks share. `steal` is the share of
    a rank's processor that communication takes away from computing while it runs: 0 where the
    network hardware does the work, 1 where the core that computes must also copy and add.
    `jitter` is the standard deviation of a rank's compute time, as a share of it: all wait for the
    slowest. A rank copies gradients into buckets, and sums out of them, at `copy_bandwidth` bytes
    a second, in the time of its own. `overhead` are seconds that each collective takes beside its
    messages. `algorithms` are those that the communication library has.

    `measured` replaces the formulas where all-reduces were timed: pairs of bytes and seconds, for
    the number of ranks they were measured on; between them times are interpolated.
    """

    between: Link
    within: Link | None = None
    per_host: int = 1
    nics: int = 1
    reduce_bandwidth: float = float("inf")
    copy_bandwidth: float = float("inf")
    steal: float = 0.0
    jitter: float = 0.0
    overhead: float = 0.0
    algorithms: tuple[str, ...] = ("ring", "doubling", "halving", "tree", "hierarchical")
    measured: dict[int, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.per_host < 1 or self.nics < 1:
            raise ValueError(
                f"a host has at least one rank and one adapter, got {self.per_host}, {self.nics}"
            )
        if not 0 <= self.steal <= 1:
            raise ValueError(f"steal is a share between 0 and 1, got {self.steal}")

    @property
    def inside(self) -> Link:
        """The link between two ranks of one host."""
        return self.within or self.between

    def host(self, rank: int) -> int:
        return rank // self.per_host

    def hosts(self, ranks: int) -> int:
        """How many hosts hold that many ranks."""
        return -(-ranks // self.per_host)

    def sharing(self, flows: float) -> float:
        """By how much messages are slower when `flows` of them leave a host at once."""
        return max(1.0, flows / self.nics)

    def flat(self) -> Cluster:
        """The same network with each rank on a host of its own."""
        return replace(self, within=None, per_host=1, nics=1)

    def measured_seconds(self, size: float, ranks: int) -> float | None:
        """The measured time of an all-reduce, interpolated; None if that was not measured."""
        points = self.measured.get(ranks)
        if not points:
            return None
        if size <= points[0][0]:
            return points[0][1]
        if len(points) == 1:
            return points[0][1] * size / points[0][0]
        lines = list(pairwise(points))
        # Beyond the last point the last line goes on.
        (low, fast), (high, slow) = next((x for x in lines if size <= x[1][0]), lines[-1])
        return fast + (slow - fast) * (size - low) / (high - low)


# Round numbers for planning, not measurements: what sellers promise, less what protocols take.
ETHERNET = Cluster(between=Link(20e-6, 11e9), reduce_bandwidth=10e9)
GPUS = Cluster(
    between=Link(6e-6, 45e9), within=Link(3e-6, 300e9),
    per_host=8, nics=8, reduce_bandwidth=1e12,
    algorithms=("ring", "tree", "hierarchical"),
)  # fmt: skip
CLUSTERS = {
    # 100 Gb/s Ethernet, one rank a host, sums on the processor
    "ethernet": ETHERNET,
    # hosts of eight GPUs: NVLink inside, one 400 Gb/s InfiniBand adapter a GPU between
    "gpus": GPUS,
}
