"""MAML on sine waves: inner steps by autograd.grad with create_graph, functional_call."""

import math
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Task:
    def __init__(self, generator):
        self.amplitude = torch.empty(1).uniform_(0.1, 5.0, generator=generator)
        self.phase = torch.empty(1).uniform_(0, math.pi, generator=generator)
        self.generator = generator

    def sample(self, k):
        x = torch.rand(k, 1, generator=self.generator) * 10 - 5
        return x, self.amplitude * torch.sin(x + self.phase)


class MAML:
    def __init__(self, model, alpha=0.01, beta=0.002, inner=2, first_order=False):
        self.model, self.alpha, self.inner, self.first_order = model, alpha, inner, first_order
        self.meta = torch.optim.Adam(self.model.parameters(), beta)

    def adapt(self, x, y, params=None, create_graph=True):
        params = OrderedDict(self.model.named_parameters()) if params is None else params
        for _ in range(self.inner):
            loss = F.mse_loss(functional_call(self.model, params, (x,)), y)
            grads = torch.autograd.grad(loss, params.values(), create_graph=create_graph)
            params = OrderedDict(
                (name, p - self.alpha * g) for (name, p), g in zip(params.items(), grads)
            )
        return params

    def outer(self, tasks, k):
        total = torch.tensor(0.0)
        for task in tasks:
            params = self.adapt(*task.sample(k), create_graph=not self.first_order)
            x, y = task.sample(k)
            total = total + F.mse_loss(functional_call(self.model, params, x), y)
        self.meta.zero_grad()
        (total / len(tasks)).backward()
        self.meta.step()
        return total.item() / len(tasks)


for first_order in (False, True):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(5)
    net = nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
    maml = MAML(net, first_order=first_order)
    losses = [maml.outer([Task(generator) for _ in range(4)], 8) for _ in range(12)]
    print(first_order, " ".join(f"{v:.4f}" for v in losses[::3]))
    task = Task(generator)
    x, y = task.sample(10)
    before = F.mse_loss(net(x), y)
    after = F.mse_loss(functional_call(net, maml.adapt(x, y, create_graph=False), (x,)), y)
    print(
        f"{before.item():.5f} {after.item():.5f} {sum(p.grad.norm() for p in net.parameters()):.5f}"
    )
