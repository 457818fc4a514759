"""Training that stops, is saved, and goes on as if it had not stopped."""

import os
import tempfile

import torch
from torch import nn


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)


def train(model, optimizer, scheduler, steps):
    for _ in range(steps):
        x = torch.randn(16, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"{loss.item():.6f}")


print("whole")
train(*make(), 6)
print("in two")
first = make()
train(*first, 3)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.tar")
    states = [part.state_dict() for part in first]
    torch.save({"parts": states, "rng": torch.get_rng_state(), "epoch": 3}, path)
    second = make()
    found = torch.load(path)
for part, state in zip(second, found["parts"]):
    part.load_state_dict(state)
torch.set_rng_state(found["rng"])
train(*second, 6 - found["epoch"])
