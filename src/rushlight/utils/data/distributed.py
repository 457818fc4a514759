"""`DistributedSampler`: each of several processes takes its own share of the samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from rushlight.ops.registry import functions
from rushlight.random import Generator
from rushlight.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]
__dir__ = __all__.copy


class DistributedSampler(Sampler[int]):
    """DistributedSampler(dataset, num_replicas=None, rank=None, shuffle=True, seed=0,
    drop_last=False)

    Every `num_replicas`-th index, from number `rank` on; without them the processes of
    `torch.distributed` and the number of this one. All get equally many: some samples come twice,
    or with `drop_last` some are left out. Call `set_epoch` before each pass: it gives the pass its
    own order.

    >>> data = range(5)
    >>> [list(DistributedSampler(data, 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None,
        shuffle: bool = True, seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            from rushlight import distributed

            if not distributed.is_available():
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else -(-size // num_replicas)
        if drop_last and size % num_replicas == 0:
            self.num_samples = size // num_replicas
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        indices = list(range(count))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            indices = functions["randperm"](count, generator=generator).tolist()
        whole = list(itertools.islice(itertools.cycle(indices), self.total_size))
        return iter(whole[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Give the next pass an order of its own; the same in all processes."""
        self.epoch = epoch
