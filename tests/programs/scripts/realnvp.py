"""A normalising flow of affine couplings on two moons; sampling through the inverse."""

import math

import torch
from torch import distributions, nn
from torch.nn import functional as F


class Coupling(nn.Module):
    def __init__(self, mask, hidden=32):
        super().__init__()
        self.register_buffer("mask", mask)
        net = lambda last: nn.Sequential(
            nn.Linear(2, hidden),
            nn.LeakyReLU(),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(),
            nn.Linear(hidden, 2),
            *last,
        )
        self.s, self.t = net([nn.Tanh()]), net([])

    def forward(self, x):
        held = x * self.mask
        s, t = self.s(held) * (1 - self.mask), self.t(held) * (1 - self.mask)
        return held + (1 - self.mask) * (x * torch.exp(s) + t), s.sum(dim=1)

    def inverse(self, z):
        held = z * self.mask
        s, t = self.s(held) * (1 - self.mask), self.t(held) * (1 - self.mask)
        return held + (1 - self.mask) * (z - t) * torch.exp(-s)


class RealNVP(nn.Module):
    def __init__(self, count):
        super().__init__()
        masks = [torch.tensor([i % 2, 1 - i % 2], dtype=torch.float32) for i in range(count)]
        self.layers = nn.ModuleList(Coupling(mask) for mask in masks)
        self.prior = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))

    def log_prob(self, x):
        logdet = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, more = layer(x)
            logdet += more
        return self.prior.log_prob(x) + logdet

    @torch.no_grad()
    def sample(self, n):
        z = self.prior.sample((n,))
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def moons(n):
    angle = math.pi * torch.rand(n)
    side = torch.randint(0, 2, (n,)).float()
    x = torch.stack([torch.cos(angle) + side, torch.sin(angle) * (1 - 2 * side) + 0.5 * side], 1)
    return x + 0.05 * torch.randn_like(x)


torch.manual_seed(3)
flow = RealNVP(4)
optimizer = torch.optim.AdamW(flow.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=60)
for step in range(60):
    loss = -flow.log_prob(moons(128)).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 15 == 14:
        print(f"step {step + 1}: nll {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.6f}")
samples = flow.sample(200)
print(samples.mean(0), samples.std(0), torch.cov(samples.T))
x = moons(5)
z, ld = flow.layers[0](x)
print(torch.allclose(flow.layers[0].inverse(z), x, atol=1e-5), F.softplus(ld))
