"""One step of data-parallel training on a clock that is only computed.

A rank computes forward, then backward from the last layer to the first. A bucket is ready when the
gradients of all its layers are; ready buckets are reduced one after the other, in order, on one
channel, while the rank goes on computing. What remains of the communication when the backward pass
is over is exposed: the rank waits for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rushlight.distributed.simulate import collectives
from rushlight.distributed.simulate.cluster import Cluster
from rushlight.distributed.simulate.layers import Bucket, Layers, buckets


@dataclass(frozen=True)
class Reduction:
    """A bucket on its way: when it was ready, when it was sent and done, and by which algorithm."""

    size: float
    ready: float
    start: float
    end: float
    algorithm: str


@dataclass(frozen=True)
class Step:
    """What a step takes, in seconds from its start.

    `alone` is the step of one rank with the whole work to itself, `compute` what a rank of this
    step computes, `seconds` all of it; `exposed`, the difference, is what it waits for others and
    copies for them.
    """

    ranks: int
    seconds: float
    compute: float
    exposed: float
    communication: float
    alone: float
    forward: float
    backward_end: float
    reductions: tuple[Reduction, ...]

    @property
    def efficiency(self) -> float:
        """The share of the ranks' time that one rank alone would need for the same work."""
        return self.alone / self.seconds if self.seconds else 1.0


def slowest(jitter: float, ranks: int) -> float:
    """By which factor the slowest of `ranks` is slower than their mean, about: the largest of `n`
    normal numbers lies some `sqrt(2 log n)` standard deviations above the middle."""
    return 1.0 + jitter * math.sqrt(2 * math.log(ranks)) if ranks > 1 else 1.0


def advance(
    ready: list[float], costs: list[float], work: float, steal: float
) -> tuple[float, list[tuple[float, float, float]]]:
    """When the backward pass ends, and when each bucket is ready, starts and is done.

    `ready` says after how much work a bucket is complete, `work` is all of it. While a bucket is
    on its way the work goes on at the rate `1 - steal`.

    >>> advance([1.0, 2.0], [3.0, 1.0], 2.0, steal=0.0)
    (2.0, [(1.0, 1.0, 4.0), (2.0, 4.0, 5.0)])
    >>> advance([1.0, 2.0], [3.0, 1.0], 2.0, steal=1.0)
    (5.0, [(1.0, 1.0, 4.0), (5.0, 5.0, 6.0)])
    """
    time = done = 0.0
    busy_until = 0.0
    became_ready: list[float] = []
    spans: list[tuple[float, float]] = []
    marks = [*ready, work]
    for index, mark in enumerate(marks):
        # Compute up to the mark; buckets that are ready leave as soon as the channel is free.
        while True:
            if len(spans) < len(became_ready) and time >= busy_until:
                start = max(time, busy_until)
                busy_until = start + costs[len(spans)]
                spans.append((start, busy_until))
            if done >= mark:
                break
            if time < busy_until:
                rate = 1.0 - steal
                needed = (mark - done) / rate if rate else math.inf
                if time + needed <= busy_until:
                    time, done = time + needed, mark
                else:
                    done, time = done + rate * (busy_until - time), busy_until
            else:
                time, done = time + (mark - done), mark
        if index < len(ready):
            became_ready.append(time)
    # The last mark is the end of the pass, unless a bucket leaves at that very moment.
    end = time
    while len(spans) < len(became_ready):
        start = max(became_ready[len(spans)], busy_until)
        busy_until = start + costs[len(spans)]
        spans.append((start, busy_until))
    return end, [(at, *span) for at, span in zip(became_ready, spans, strict=True)]


def simulate(
    model: Layers,
    cluster: Cluster,
    ranks: int,
    *,
    bucket_cap_mb: float = 25,
    first_mb: float | None = None,
    algorithm: str = "best",
    strong: bool = False,
    sharded: bool = False,
    overlap: bool = True,
) -> Step:
    """A step of `DistributedDataParallel` on `ranks` ranks of a cluster.

    `model` is the work of one rank; with `strong=True` that work is shared by all (a batch of
    fixed size), else each rank has as much (weak scaling). `sharded=True` scatters the summed
    gradients, updates a part of the parameters on each rank, and gathers them: `ring` only.
    `overlap=False` reduces everything after the backward pass.

    >>> from rushlight.distributed.simulate import ETHERNET, Layer, Layers, simulate
    >>> model = Layers([Layer(f"block {i}", 28e6, 0.010, 0.020) for i in range(12)])
    >>> step = simulate(model, ETHERNET, ranks=64)
    >>> round(step.compute, 4), round(step.exposed, 4), round(step.efficiency, 3)
    (0.36, 0.008, 0.978)
    """
    if ranks < 1:
        raise ValueError(f"a step needs at least one rank, got {ranks}")
    work = model.split(ranks) if strong else model
    alone = model.compute / ranks if strong else model.compute
    slow = slowest(cluster.jitter, ranks)
    layers = work.layers
    forward = slow * math.fsum(layer.forward for layer in layers)
    # after[i]: work of the backward pass until layer i has its gradients
    after, total, copying = [0.0] * len(layers), 0.0, 0.0
    for index in range(len(layers) - 1, -1, -1):
        total += slow * layers[index].backward
        copying += layers[index].size / cluster.copy_bandwidth if ranks > 1 else 0.0
        after[index] = total + copying
    found = buckets(layers, bucket_cap_mb, first_mb) if ranks > 1 else []
    costs, names = reduction_costs(found, ranks, cluster, algorithm, sharded)
    complete = [after[bucket.last] if overlap else total + copying for bucket in found]
    end, spans = advance(complete, costs, total + copying, cluster.steal)
    last = max([end, *(span[2] for span in spans)])
    update = work.optimizer
    gather = 0.0
    if sharded and ranks > 1:
        update /= ranks
        gather = collectives.all_gather(work.size, ranks, cluster)
    seconds = forward + last + copying + update + gather
    compute = forward + total + update
    return Step(
        ranks, seconds, compute, seconds - compute, math.fsum(costs) + gather, alone, forward,
        forward + end,
        tuple(
            Reduction(bucket.size, forward + ready, forward + start, forward + done, name)
            for bucket, (ready, start, done), name in zip(found, spans, names, strict=True)
        ),
    )  # fmt: skip


def reduction_costs(
    found: list[Bucket], ranks: int, cluster: Cluster, algorithm: str, sharded: bool
) -> tuple[list[float], list[str]]:
    """Seconds and algorithm of each bucket."""
    if sharded:
        times = [collectives.reduce_scatter(b.size, ranks, cluster) for b in found]
        chosen = [(time, "ring") for time in times]
    else:
        chosen = [collectives.all_reduce(b.size, ranks, cluster, algorithm) for b in found]
    return [time + cluster.overhead for time, _ in chosen], [name for _, name in chosen]
