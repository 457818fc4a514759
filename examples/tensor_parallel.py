"""One perceptron spread over processes: each has a part of the hidden units, and one sum over all
processes puts the output together.

rushlight run examples/tensor_parallel.py
rushlight launch -n 2 examples/tensor_parallel.py

The result and every gradient are compared with those of the whole perceptron on one process. The
collectives are those of `torch.distributed.nn.functional`, which have gradients of their own.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_reduce

WIDTH, HIDDEN, ROWS = 6, 24, 5


def join():
    """Find the other processes, if there are any: who starts several says so in the environment."""
    if any(name in os.environ for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")):
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return dist.get_rank(), dist.get_world_size()


class ColumnParallel(nn.Module):
    """A linear layer of which this process computes some of the outputs."""

    def __init__(self, whole):
        super().__init__()
        rank, size = dist.get_rank(), dist.get_world_size()
        self.weight = nn.Parameter(whole.weight.detach().chunk(size, dim=0)[rank].clone())
        self.bias = nn.Parameter(whole.bias.detach().chunk(size)[rank].clone())

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class RowParallel(nn.Module):
    """A linear layer of which this process reads some of the inputs; the sum is everybody's."""

    def __init__(self, whole):
        super().__init__()
        rank, size = dist.get_rank(), dist.get_world_size()
        self.weight = nn.Parameter(whole.weight.detach().chunk(size, dim=1)[rank].clone())
        self.bias = nn.Parameter(whole.bias.detach().clone())

    def forward(self, x):
        return all_reduce(nn.functional.linear(x, self.weight)) + self.bias


def compare(name, ours, whole):
    """All processes say how far they are from the whole; the first one prints the largest."""
    worst = (ours - whole).abs().max()
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(f"{name:20} differs by {worst.item():.0e}" if worst > 1e-12 else f"{name:20} agrees")
    assert worst <= 1e-12, name


def main():
    rank, size = join()
    torch.manual_seed(0)  # the same numbers on all processes
    first = nn.Linear(WIDTH, HIDDEN, dtype=torch.float64)
    second = nn.Linear(HIDDEN, WIDTH, dtype=torch.float64)
    x = torch.randn(ROWS, WIDTH, dtype=torch.float64, requires_grad=True)
    target = torch.randn(ROWS, WIDTH, dtype=torch.float64)

    dense = second(torch.tanh(first(x)))
    nn.functional.mse_loss(dense, target).backward()
    dense_x, x.grad = x.grad, None

    column, row = ColumnParallel(first), RowParallel(second)
    output = row(torch.tanh(column(x)))
    # Each process computes the whole loss. What is differentiated is the sum over all processes,
    # so each gives its share.
    (nn.functional.mse_loss(output, target) / size).backward()

    if rank == 0:
        print(f"{HIDDEN} hidden units on {size} process(es), {HIDDEN // size} on each")
    compare("output", output.detach(), dense.detach())
    compare("first weight", column.weight.grad, first.weight.grad.chunk(size, dim=0)[rank])
    compare("first bias", column.bias.grad, first.bias.grad.chunk(size)[rank])
    compare("second weight", row.weight.grad, second.weight.grad.chunk(size, dim=1)[rank])
    # What every process has a copy of, every process adds to.
    for name, ours, whole in (
        ("second bias", row.bias.grad, second.bias.grad),
        ("input", x.grad, dense_x),
    ):
        dist.all_reduce(ours)
        compare(name, ours, whole)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
