"""Datasets over several processes: each sample once, with workers or without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed import running

PROGRAM = """
import sys
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, get_worker_info
from torch.utils.data.distributed import DistributedSampler
from tests.distributed.running import report


class Stream(IterableDataset):
    '''Every process, and every worker of it, reads its own part of a stream.'''

    def __iter__(self):
        worker = get_worker_info()
        workers, number = (1, 0) if worker is None else (worker.num_workers, worker.id)
        step = workers * dist.get_world_size()
        return iter(range(dist.get_rank() * workers + number, 23, step))


def main():
    dist.init_process_group("gloo")
    workers = int(sys.argv[1])
    data = TensorDataset(torch.arange(11))
    epochs = []
    sampler = DistributedSampler(data, seed=3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        loader = DataLoader(data, batch_size=2, sampler=sampler, num_workers=workers)
        epochs.append([x for (batch,) in loader for x in batch.tolist()])
    read = [x for batch in DataLoader(Stream(), batch_size=3, num_workers=workers)
            for x in batch.tolist()]
    total = torch.tensor([sum(read)])
    dist.all_reduce(total)
    report(dist.get_rank(), [epochs, read, total.item()])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_every_sample_comes_once(tmp_path: Path, workers: int) -> None:
    program = "from rushlight import compat\ncompat.install()\n" + PROGRAM
    found = running.launch(program, 2, tmp_path, str(workers))
    for epoch in range(2):
        seen = sorted(found[0][0][epoch] + found[1][0][epoch])
        assert len(seen) == 12 and set(seen) == set(range(11))  # 11 in two equal parts: one twice
    assert found[0][0][0] != found[0][0][1]  # another order in each epoch
    assert sorted(found[0][1] + found[1][1]) == list(range(23))
    assert found[0][2] == found[1][2] == sum(range(23))
