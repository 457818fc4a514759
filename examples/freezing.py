"""Train part of a network: freeze the first layer, and see that only the last one moves.

rushlight run examples/freezing.py
"""

import torch
from torch import nn, optim

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
for parameter in net[0].parameters():
    parameter.requires_grad_(False)

before = {name: p.detach().clone() for name, p in net.named_parameters()}
optimizer = optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)

x = torch.randn(64, 4)
target = x.sum(dim=1, keepdim=True)
for epoch in range(100):
    loss = nn.functional.mse_loss(net(x), target)
    if epoch % 33 == 0:
        print(f"epoch {epoch:3d}  loss {loss.item():.4f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

for name, p in net.named_parameters():
    state = "trained" if not torch.equal(p, before[name]) else "frozen"
    print(f"{name:10} {state:8} grad is {'None' if p.grad is None else 'there'}")
