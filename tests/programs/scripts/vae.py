"""A variational autoencoder: two terms of loss, and noise that gradients pass through."""

import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(16, 12), nn.Linear(12, 3), nn.Linear(12, 3)
        self.fc3, self.fc4 = nn.Linear(3, 12), nn.Linear(12, 16)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        std = torch.exp(0.5 * logvar)
        z = mu + torch.randn_like(std) * std
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


torch.manual_seed(1)
x = (torch.rand(32, 16) > 0.6).float()
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    optimizer.zero_grad()
    out, mu, logvar = model(x)
    bce = F.binary_cross_entropy(out, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    (bce + kld).backward()
    optimizer.step()
    print(f"{bce.item():.4f} {kld.item():.5f}")
