"""Gradient checkpointing of a deep residual network: the same gradients, with and without."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.ff = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.2)
        )
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.ff(self.norm(x))


class Model(nn.Module):
    def __init__(self, width=16, depth=4, how="none"):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head, self.how = nn.Linear(width, 2), how

    def forward(self, x):
        if self.how == "sequential":
            x = checkpoint_sequential(nn.Sequential(*self.blocks), 2, x, use_reentrant=False)
        else:
            for block in self.blocks:
                if self.how == "none":
                    x = block(x)
                else:
                    x = checkpoint(block, x, use_reentrant=self.how == "reentrant")
        return self.head(x.mean(1))


torch.manual_seed(0)
x = torch.randn(4, 6, 16, requires_grad=True)
y = torch.randint(2, (4,))
state = Model().state_dict()
for how in ("none", "reentrant", "plain", "sequential"):
    model = Model(how=how)
    model.load_state_dict(state)
    torch.manual_seed(9)
    x.grad = None
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    total = torch.cat([p.grad.flatten() for p in model.parameters()])
    print(
        how,
        f"{loss.item():.6f} {total.norm().item():.6f} {x.grad.abs().sum().item():.6f}",
        [b.calls for b in model.blocks],
    )
