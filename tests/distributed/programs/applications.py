"""Point-to-point messages, collectives, groups, and a synchronous SGD written by hand.

The shape of PyTorch's tutorial on distributed applications: processes are started by
`multiprocessing`, find each other by the environment, and train a small network on partitions of
one dataset. What they find goes to a queue, and the parent prints it in the order of ranks.
"""

import math
import os
import random
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

SAMPLES = 96


class Partition:
    """Some rows of a dataset, by their numbers."""

    def __init__(self, data, index):
        self.data = data
        self.index = index

    def __len__(self):
        return len(self.index)

    def __getitem__(self, index):
        return self.data[self.index[index]]


class DataPartitioner:
    """A dataset in parts of given shares, shuffled alike on all processes."""

    def __init__(self, data, sizes=(0.7, 0.2, 0.1), seed=1234):
        self.data = data
        self.partitions = []
        rng = random.Random()
        rng.seed(seed)
        indexes = list(range(len(data)))
        rng.shuffle(indexes)
        for share in sizes:
            length = int(share * len(data))
            self.partitions.append(indexes[0:length])
            indexes = indexes[length:]

    def use(self, partition):
        return Partition(self.data, self.partitions[partition])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3)
        self.fc1 = nn.Linear(4 * 3 * 3, 20)
        self.fc2 = nn.Linear(20, 4)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = x.view(-1, 4 * 3 * 3)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def pictures():
    """Pairs of a picture of 8 x 8 points and a class, the same on every process."""
    generator = torch.Generator().manual_seed(7)
    labels = torch.randint(0, 4, (SAMPLES,), generator=generator)
    x = torch.randn(SAMPLES, 1, 8, 8, generator=generator)
    for i, label in enumerate(labels.tolist()):
        x[i, 0, 2 * label : 2 * label + 2] += 2.0
    return [(x[i], labels[i]) for i in range(SAMPLES)]


def partition_dataset():
    size = dist.get_world_size()
    bsz = int(24 / float(size))
    partition_sizes = [1.0 / size for _ in range(size)]
    partition = DataPartitioner(pictures(), partition_sizes).use(dist.get_rank())
    train_set = torch.utils.data.DataLoader(partition, batch_size=bsz, shuffle=False)
    return train_set, bsz


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def blocking(rank, size):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    elif rank == 1:
        dist.recv(tensor=tensor, src=0)
    return tensor[0].item()


def not_blocking(rank, size):
    tensor = torch.zeros(1)
    req = None
    if rank == 0:
        tensor += 1
        req = dist.isend(tensor=tensor, dst=1)
    elif rank == 1:
        req = dist.irecv(tensor=tensor, src=0)
    if req is not None:
        req.wait()
    return tensor[0].item()


def grouped(rank, size):
    group = dist.new_group([0, 1])
    tensor = torch.ones(1)
    if rank in (0, 1):
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
    return tensor[0].item()


def ring(rank, size):
    """An all-reduce of one's own: what arrives from the left is added, and sent to the right."""
    send_buff = torch.arange(3.0) + rank
    accum = send_buff.clone()
    recv_buff = torch.zeros(3)
    left, right = (rank - 1 + size) % size, (rank + 1) % size
    for _ in range(size - 1):
        send_req = dist.isend(send_buff.clone(), right)
        dist.recv(recv_buff, left)
        accum += recv_buff
        send_req.wait()
        send_buff = recv_buff.clone()
    return accum.tolist()


def train(rank, size):
    torch.manual_seed(1234)
    train_set, bsz = partition_dataset()
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    num_batches = math.ceil(len(train_set.dataset) / float(bsz))
    losses = []
    for _ in range(3):
        epoch_loss = 0.0
        for data, target in train_set:
            optimizer.zero_grad()
            output = model(data)
            loss = F.nll_loss(output, target)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        losses.append(round(epoch_loss / num_batches, 4))
    return losses


def run(rank, size):
    return {
        "blocking": blocking(rank, size),
        "not blocking": not_blocking(rank, size),
        "group": grouped(rank, size),
        "ring": ring(rank, size),
        "losses": train(rank, size),
    }


def init_process(rank, size, port, fn, queue, backend="gloo"):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = port
    torch.set_num_threads(1)
    dist.init_process_group(backend, rank=rank, world_size=size)
    queue.put((rank, fn(rank, size)))
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


if __name__ == "__main__":
    world_size = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    mp.set_start_method("spawn")
    port, queue, processes = free_port(), mp.Queue(), []
    for rank in range(world_size):
        p = mp.Process(target=init_process, args=(rank, world_size, port, run, queue))
        p.start()
        processes.append(p)
    found = dict(queue.get() for _ in processes)
    for p in processes:
        p.join()
    for rank in range(world_size):
        for what, value in found[rank].items():
            print(f"rank {rank} {what}: {value}")
    sys.exit(max(abs(p.exitcode) for p in processes))
