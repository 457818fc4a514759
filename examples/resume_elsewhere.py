"""Train, save a checkpoint, and go on from it on another number of processes.

rushlight launch -n 2 examples/resume_elsewhere.py here
rushlight run examples/resume_elsewhere.py here

Each run goes on where the last one stopped. All processes write a part of the checkpoint, and any
number of them reads it; the losses are those of a training that was never stopped. It runs under
PyTorch too, which reads the checkpoints of rushlight, as rushlight reads PyTorch's.
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

ROWS = 48  # a batch; 1, 2, 3, 4, 6, 8 ... processes share it evenly


def join():
    """Find the other processes, if there are any: who starts several says so in the environment."""
    if any(name in os.environ for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")):
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return dist.get_rank(), dist.get_world_size()


class Training:
    """All that must be saved to go on: model, optimiser, and how far we are."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = DistributedDataParallel(
            nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.done = 0

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "done": torch.tensor(self.done)}

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        self.done = state["done"].item()

    def step(self):
        """One batch, which follows from its number: it is the same after a pause."""
        generator = torch.Generator().manual_seed(self.done)
        x = torch.randn(ROWS, 8, generator=generator)
        y = torch.sin(x.sum(1, keepdim=True))
        rows = slice(dist.get_rank(), ROWS, dist.get_world_size())
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x[rows]), y[rows])
        loss.backward()
        self.optimizer.step()
        self.done += 1
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        return mean.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="checkpoint", type=Path)
    parser.add_argument("--more", type=int, default=5, help="how many steps to train")
    chosen = parser.parse_args()
    rank, size = join()
    if ROWS % size:
        raise SystemExit(f"{size} processes cannot share {ROWS} rows evenly")
    training = Training()
    # The metadata is written last: where it is, the checkpoint is complete.
    complete = sorted(path.parent for path in chosen.folder.glob("*/.metadata"))
    if complete:
        state = {"training": training.state_dict()}
        checkpoint.load(state, checkpoint_id=complete[-1])
        training.load_state_dict(state["training"])
    if rank == 0:
        print(f"{size} process(es), {training.done} steps done before")
    for _ in range(chosen.more):
        number, loss = training.done, training.step()
        if rank == 0:
            print(f"step {number} loss {loss:.4f}")
    folder = chosen.folder / f"step-{training.done:06}"
    checkpoint.save({"training": training.state_dict()}, checkpoint_id=folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
