"""A transformer encoder that learns to reverse short sequences."""

import math

import torch
from torch import nn


class Position(nn.Module):
    def __init__(self, width, most=16):
        super().__init__()
        at = torch.arange(most).unsqueeze(1)
        by = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(1, most, width)
        table[0, :, 0::2] = torch.sin(at * by)
        table[0, :, 1::2] = torch.cos(at * by)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[:, : x.size(1)]


torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
model = nn.Sequential(
    nn.Embedding(10, 16), Position(16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 10)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
for _ in range(6):
    x = torch.randint(0, 10, (8, 6))
    loss = nn.functional.cross_entropy(model(x).transpose(1, 2), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")
model.eval()
with torch.no_grad():
    print(model(x).shape, f"{model(x).square().mean().item():.5f}")
