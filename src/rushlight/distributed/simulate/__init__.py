"""What data-parallel training will take on machines you do not have yet.

A simulator of the communication of `DistributedDataParallel`: the cost of all-reduce algorithms on
a network of two levels, buckets, and their overlap with the backward pass. It computes; it starts
no processes. `python -m rushlight.distributed.simulate --ranks 8 64 1024` prints a table.

>>> from rushlight.distributed.simulate import GPUS, gpt, simulate
>>> model = gpt(12, 768, tokens=16384, flops=2e14)
>>> for ranks in (8, 64, 1024):
...     step = simulate(model, GPUS, ranks)
...     print(ranks, f"{step.efficiency:.2f}", step.reductions[-1].algorithm)
8 0.98 ring
64 0.97 hierarchical
1024 0.95 hierarchical
"""

from __future__ import annotations

from rushlight.distributed.simulate.cluster import CLUSTERS, ETHERNET, GPUS, Cluster, Link
from rushlight.distributed.simulate.collectives import all_gather, all_reduce, reduce_scatter
from rushlight.distributed.simulate.layers import Bucket, Layer, Layers, buckets, gpt, mlp
from rushlight.distributed.simulate.picture import curves, svg
from rushlight.distributed.simulate.step import Reduction, Step, simulate

__all__ = [
    "CLUSTERS",
    "ETHERNET",
    "GPUS",
    "Bucket",
    "Cluster",
    "Layer",
    "Layers",
    "Link",
    "Reduction",
    "Step",
    "all_gather",
    "all_reduce",
    "buckets",
    "curves",
    "gpt",
    "mlp",
    "reduce_scatter",
    "simulate",
    "svg",
]
