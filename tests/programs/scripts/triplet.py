"""A network that puts like things near each other: triplet and contrastive losses."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.PReLU(), nn.Linear(12, 3))
centres = torch.randn(3, 6)
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
for _ in range(6):
    kind = torch.randint(0, 3, (16,))
    other = (kind + torch.randint(1, 3, (16,))) % 3
    anchor, near, far = (
        nn.functional.normalize(net(centres[k] + 0.1 * torch.randn(16, 6)), dim=1)
        for k in (kind, kind, other)
    )
    loss = nn.TripletMarginLoss(margin=0.5)(anchor, near, far)
    loss = loss + nn.CosineEmbeddingLoss()(anchor, far, -torch.ones(16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f} {nn.PairwiseDistance()(anchor, near).mean().item():.6f}")
