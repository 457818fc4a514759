"""`ElasticDistributedSampler`: going on in the middle of an epoch, perhaps with other processes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from rushlight.ops.registry import functions
from rushlight.random import Generator
from rushlight.utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]
__dir__ = __all__.copy


class ElasticDistributedSampler(DistributedSampler):
    """ElasticDistributedSampler(dataset, num_replicas=None, rank=None, start_index=0): a
    `DistributedSampler` of the samples from `start_index` on.

    >>> from rushlight.distributed.elastic.utils.data import ElasticDistributedSampler
    >>> sorted(i for rank in (0, 1) for i in ElasticDistributedSampler(range(8), 2, rank, 4))
    [4, 5, 6, 7]
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None,
        start_index: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(dataset, num_replicas, rank)
        if start_index >= len(dataset):
            raise ValueError(
                f"Start index {start_index} should be less than dataset size {len(dataset)}"
            )
        self.start_index = start_index
        self.num_samples = -(-(len(dataset) - start_index) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        left = len(self.dataset) - self.start_index
        order = functions["randperm"](left, generator=Generator().manual_seed(self.epoch))
        indices = order.add(self.start_index).tolist()
        whole = list(itertools.islice(itertools.cycle(indices), self.total_size))
        return iter(whole[self.rank :: self.num_replicas])
