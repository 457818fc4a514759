"""Contrastive learning: two views of each sample, NT-Xent loss, a linear probe."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class TwoViews(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.labels = torch.randint(3, (n,), generator=g)
        self.x = torch.randn(n, 1, 8, 8, generator=g) * 0.3
        for k in range(3):
            self.x[self.labels == k, :, 2 * k : 2 * k + 3] += 1

    def __len__(self):
        return len(self.x)

    def augment(self, x):
        if torch.rand(1).item() < 0.5:
            x = x.flip(-1)
        shift = int(torch.randint(-1, 2, ()))
        return torch.roll(x, shift, dims=-1) * (0.8 + 0.4 * torch.rand(())) + 0.05 * torch.randn(
            x.shape
        )

    def __getitem__(self, i):
        return (self.augment(self.x[i]), self.augment(self.x[i])), self.labels[i]


class Encoder(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding="same"),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((2, 2)),
            nn.Flatten(),
        )


def nt_xent(a, b, temperature=0.5):
    z = F.normalize(torch.cat([a, b], dim=0), dim=1)
    n = len(a)
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    target = torch.arange(2 * n).roll(n)
    return F.cross_entropy(sim, target)


torch.manual_seed(0)
data = TwoViews(48)
encoder = Encoder()
projector = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))
parameters = [
    {"params": [p for n, p in encoder.named_parameters() if p.ndim > 1], "weight_decay": 1e-4},
    {"params": [p for n, p in encoder.named_parameters() if p.ndim <= 1], "weight_decay": 0.0},
    {"params": projector.parameters()},
]
optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9),
    ],
    milestones=[3],
)
for epoch in range(3):
    for (a, b), _ in DataLoader(data, batch_size=16, shuffle=True, drop_last=True):
        loss = nt_xent(projector(encoder(a)), projector(encoder(b)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(f"epoch {epoch} loss {loss:.4f} lr {scheduler.get_last_lr()[0]:.5f}")
encoder.eval()
for p in encoder.parameters():
    p.requires_grad = False
features = encoder(data.x)
probe = nn.Linear(64, 3)
opt = torch.optim.LBFGS(probe.parameters(), max_iter=10)


def closure():
    opt.zero_grad()
    loss = F.cross_entropy(probe(features), data.labels)
    loss.backward()
    return loss


print(f"{opt.step(closure):.4f}")
print(
    "accuracy",
    (probe(features).argmax(1) == data.labels).float().mean().item() > 0.8,
    features.requires_grad,
)
