"""`python -m rushlight.distributed.simulate`: a table of step times by numbers of ranks."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rushlight.distributed.simulate.cluster import CLUSTERS, Cluster, Link
from rushlight.distributed.simulate.collectives import ALGORITHMS
from rushlight.distributed.simulate.layers import Layers, gpt, mlp
from rushlight.distributed.simulate.picture import svg
from rushlight.distributed.simulate.step import Step, simulate


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m rushlight.distributed.simulate",
        description="Step time and efficiency of data-parallel training, computed.",
    )
    add = parser.add_argument
    add("--ranks", type=int, nargs="+", default=[1, 8, 64, 1024])
    add("--cluster", choices=CLUSTERS, default="ethernet", help="which machines")
    add("--latency", type=float, help="microseconds of a message between hosts")
    add("--bandwidth", type=float, help="gigabits a second between hosts")
    add("--per-host", type=int, help="ranks on a host")
    add("--jitter", type=float, default=0.0, help="spread of ranks' compute time, as a share")
    add("--model", choices=["gpt", "mlp"], default="gpt")
    add("--depth", type=int, default=12, help="blocks, or hidden layers")
    add("--width", type=int, default=768)
    add("--batch", type=int, default=8192, help="tokens, or rows, of one rank")
    add("--tflops", type=float, default=1.0, help="10^12 operations a second that a rank reaches")
    add("--bucket-cap-mb", type=float, nargs="+", default=[25.0])
    add("--algorithm", choices=["best", *ALGORITHMS], default="best")
    add("--strong", action="store_true", help="share one batch, instead of a batch a rank")
    add("--sharded", action="store_true", help="reduce-scatter, sharded update, all-gather")
    add("--svg", type=Path, help="draw the steps into this file")
    return parser.parse_args(words)


def cluster_of(chosen: argparse.Namespace) -> Cluster:
    cluster = CLUSTERS[chosen.cluster]
    link = cluster.between
    if chosen.latency is not None:
        link = Link(chosen.latency * 1e-6, link.bandwidth)
    if chosen.bandwidth is not None:
        link = Link(link.latency, chosen.bandwidth * 1e9 / 8)
    return replace(
        cluster,
        between=link,
        per_host=chosen.per_host or cluster.per_host,
        jitter=chosen.jitter,
    )


def model_of(chosen: argparse.Namespace) -> Layers:
    flops = chosen.tflops * 1e12
    if chosen.model == "gpt":
        return gpt(chosen.depth, chosen.width, chosen.batch, flops)
    return mlp([chosen.width] * (chosen.depth + 1), chosen.batch, flops)


def row(step: Step, cap: float) -> str:
    algorithms = ", ".join(sorted({r.algorithm for r in step.reductions})) or "none"
    return (
        f"{step.ranks:>6} {cap:>7g} {len(step.reductions):>8} {step.compute * 1e3:>11.2f} "
        f"{step.communication * 1e3:>11.2f} {step.exposed * 1e3:>11.2f} "
        f"{step.seconds * 1e3:>11.2f} "
        f"{step.efficiency:>11.1%}  {algorithms}"
    )


def main(words: list[str] | None = None) -> int:
    """Print the table.

    >>> main("--ranks 1 8 --model mlp --depth 3 --batch 256".split())
     ranks  bucket  buckets  compute ms     comm ms  exposed ms     step ms  efficiency  algorithm
         1      25        0        2.72        0.00        0.00        2.72      100.0%  none
         8      25        2        2.72        1.99        1.29        4.00       67.9%  halving
    0
    """
    chosen = arguments(words)
    cluster, model = cluster_of(chosen), model_of(chosen)
    steps: dict[str, Step] = {}
    print(
        f"{'ranks':>6} {'bucket':>7} {'buckets':>8} {'compute ms':>11} {'comm ms':>11} "
        f"{'exposed ms':>11} {'step ms':>11} {'efficiency':>11}  algorithm"
    )
    for ranks in chosen.ranks:
        for cap in chosen.bucket_cap_mb:
            step = simulate(
                model, cluster, ranks,
                bucket_cap_mb=cap, algorithm=chosen.algorithm,
                strong=chosen.strong, sharded=chosen.sharded,
            )  # fmt: skip
            print(row(step, cap))
            steps[f"{ranks} ranks" + (f", {cap:g} MB" if len(chosen.bucket_cap_mb) > 1 else "")] = (
                step
            )
    if chosen.svg:
        chosen.svg.write_text(svg(steps), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
