"""Train a perceptron on several processes: each takes rows of the batch, gradients are averaged.

rushlight run examples/distributed_training.py
rushlight launch -n 2 examples/distributed_training.py

Whatever the number of processes, the losses are the same: the mean of the gradients of equal parts
of a batch is the gradient of the batch. It runs under PyTorch too, started by `torchrun`.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROWS = 48  # a batch; 1, 2, 3, 4, 6, 8 ... processes share it evenly


def join():
    """Find the other processes, if there are any: who starts several says so in the environment."""
    if any(name in os.environ for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")):
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return dist.get_rank(), dist.get_world_size()


def batches(steps):
    """All processes draw the same numbers, and keep their own rows."""
    rows = slice(dist.get_rank(), ROWS, dist.get_world_size())
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        x = torch.randn(ROWS, 8, generator=generator)
        y = torch.sin(x.sum(1, keepdim=True))
        yield x[rows], y[rows]


def train(steps):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(batches(steps)):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()  # the gradients of all processes are averaged while it runs
        optimizer.step()
        if step % 10 == 0 or step == steps - 1:
            report(step, loss.item())
    return model


def report(step, loss):
    losses = [None] * dist.get_world_size()
    dist.all_gather_object(losses, loss)
    if dist.get_rank() == 0:
        ranks = ", ".join(f"rank {rank}: {part:.4f}" for rank, part in enumerate(losses))
        print(f"step {step} loss {sum(losses) / len(losses):.4f} ({ranks})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=51)
    steps = parser.parse_args().steps
    rank, size = join()
    if ROWS % size:
        raise SystemExit(f"{size} processes cannot share {ROWS} rows evenly")
    model = train(steps)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    largest, smallest = weights.clone(), weights.clone()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    dist.all_reduce(smallest, dist.ReduceOp.MIN)
    if rank == 0:
        same = torch.equal(largest, smallest)
        print(f"the weights are {'the same' if same else 'NOT the same'} on {size} process(es)")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
