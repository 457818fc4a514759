"""DistributedDataParallel from `mp.spawn`: a basic step, a checkpoint, a model on several devices.

The shape of PyTorch's tutorial on it, for processors without GPUs. Each rank writes what it found
into a file, and the parent prints the files in the order of ranks.
"""

import os
import socket
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = port
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


class ToyMpModel(nn.Module):
    """Two layers that may live on two devices."""

    def __init__(self, dev0, dev1):
        super().__init__()
        self.dev0, self.dev1 = dev0, dev1
        self.net1 = nn.Linear(10, 10).to(dev0)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5).to(dev1)

    def forward(self, x):
        x = self.relu(self.net1(x.to(self.dev0)))
        return self.net2(x.to(self.dev1))


def data_of(rank):
    generator = torch.Generator().manual_seed(rank)
    return (torch.randn(20, 10, generator=generator), torch.randn(20, 5, generator=generator))


def tell(folder, rank, what, *values):
    with open(os.path.join(folder, f"rank{rank}"), "a") as file:
        print(f"rank {rank} {what}:", *(f"{value:.5f}" for value in values), file=file)


def step(ddp_model, optimizer, rank):
    inputs, labels = data_of(rank)
    optimizer.zero_grad()
    loss = nn.MSELoss()(ddp_model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def checksum(model):
    return sum(p.double().abs().sum().item() for p in model.parameters())


def demo_basic(rank, world_size, port, folder):
    setup(rank, world_size, port)
    torch.manual_seed(rank)  # DDP gives all the weights of rank 0
    ddp_model = DDP(ToyModel())
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.01)
    losses = [step(ddp_model, optimizer, rank) for _ in range(3)]
    tell(folder, rank, "basic", *losses, checksum(ddp_model))
    cleanup()


def demo_checkpoint(rank, world_size, port, folder):
    setup(rank, world_size, port)
    torch.manual_seed(rank + 10)
    ddp_model = DDP(ToyModel())
    path = os.path.join(folder, "model.checkpoint")
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()  # rank 0 has written before others read
    map_location = {"cuda:0": f"cuda:{rank}"}
    ddp_model.load_state_dict(torch.load(path, map_location=map_location, weights_only=True))
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.01)
    loss = step(ddp_model, optimizer, rank)
    tell(folder, rank, "checkpoint", loss, checksum(ddp_model))
    if rank == 0:
        os.remove(path)
    cleanup()


def demo_model_parallel(rank, world_size, port, folder):
    setup(rank, world_size, port)
    devices = ("cpu", "cpu")
    if torch.cuda.device_count() >= 2 * world_size:
        devices = (f"cuda:{2 * rank}", f"cuda:{2 * rank + 1}")
    torch.manual_seed(rank + 20)
    ddp_mp_model = DDP(ToyMpModel(*devices))
    optimizer = optim.SGD(ddp_mp_model.parameters(), lr=0.01)
    inputs, labels = data_of(rank)
    optimizer.zero_grad()
    loss = nn.MSELoss()(ddp_mp_model(inputs), labels.to(devices[1]))
    loss.backward()
    optimizer.step()
    tell(folder, rank, "model parallel", loss.item(), checksum(ddp_mp_model.cpu()))
    cleanup()


def run_demo(demo_fn, world_size, folder):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    mp.spawn(demo_fn, args=(world_size, port, folder), nprocs=world_size, join=True)


if __name__ == "__main__":
    world_size = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as folder:
        run_demo(demo_basic, world_size, folder)
        run_demo(demo_checkpoint, world_size, folder)
        run_demo(demo_model_parallel, world_size, folder)
        for rank in range(world_size):
            with open(os.path.join(folder, f"rank{rank}")) as file:
                print(file.read(), end="")
