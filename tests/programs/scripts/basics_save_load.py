"""The basics: saving a model's weights, or all of it, and loading them again."""

import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
x = torch.randn(5, 3)
model(x)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "weights.pth")
    torch.save(model.state_dict(), path)
    fresh = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    print(fresh.load_state_dict(torch.load(path, weights_only=True)))
    fresh.eval(), model.eval()
    print(torch.equal(fresh(x), model(x)), fresh(x))
    whole = os.path.join(folder, "model.pth")
    torch.save(model, whole)
    again = torch.load(whole, weights_only=False)
    print(torch.equal(again(x), model(x)), list(again.state_dict()))
    try:
        torch.load(whole)
    except Exception as error:
        print(type(error).__name__)
