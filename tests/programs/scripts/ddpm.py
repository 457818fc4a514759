"""Denoising diffusion on points of a spiral: noise schedule, EMA of the weights, sampling."""

import copy
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    timesteps: int = 40
    beta_1: float = 1e-4
    beta_t: float = 0.05
    width: int = 48
    epochs: int = 3
    lr: float = 2e-3


class SinusoidalEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half = self.dim // 2
        freqs = torch.exp(torch.arange(half, device=time.device) * -(math.log(10000) / (half - 1)))
        args = time[:, None] * freqs[None, :]
        return torch.cat((args.sin(), args.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.time = nn.Sequential(
            SinusoidalEmbedding(16), nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width)
        )
        self.inp = nn.Linear(2, width)
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Linear(width, width))
                for _ in range(2)
            ]
        )
        self.out = nn.Linear(width, 2)
        nn.init.zeros_(self.out.weight)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


def extract(a, t, x_shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


class Diffusion(nn.Module):
    def __init__(self, model, config):
        super().__init__()
        self.model, self.T = model, config.timesteps
        betas = torch.linspace(config.beta_1, config.beta_t, config.timesteps, dtype=torch.float64)
        alphas = 1.0 - betas
        bar = torch.cumprod(alphas, dim=0)
        prev = F.pad(bar[:-1], (1, 0), value=1.0)
        register = lambda name, val: self.register_buffer(name, val.to(torch.float32))
        register("sqrt_bar", bar.sqrt())
        register("sqrt_one_minus", (1 - bar).sqrt())
        register("recip", (1 / alphas).sqrt())
        register("coef", betas / (1 - bar).sqrt())
        register("variance", betas * (1 - prev) / (1 - bar))

    def forward(self, x):
        t = torch.randint(self.T, (x.shape[0],), device=x.device).long()
        noise = torch.randn_like(x)
        noisy = (
            extract(self.sqrt_bar, t, x.shape) * x
            + extract(self.sqrt_one_minus, t, x.shape) * noise
        )
        return F.mse_loss(self.model(noisy, t), noise, reduction="none").mean(1).mean()

    @torch.inference_mode()
    def sample(self, n):
        x = torch.randn(n, 2)
        for step in reversed(range(self.T)):
            t = torch.full((n,), step, dtype=torch.long)
            mean = extract(self.recip, t, x.shape) * (
                x - extract(self.coef, t, x.shape) * self.model(x, t)
            )
            x = (
                mean + extract(self.variance, t, x.shape).sqrt() * torch.randn_like(x)
                if step
                else mean
            )
        return x


class EMA:
    def __init__(self, model, decay):
        self.decay, self.shadow = decay, copy.deepcopy(model).eval().requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            for mine, theirs in zip(self.shadow.state_dict().values(), model.state_dict().values()):
                if mine.dtype.is_floating_point:
                    mine.copy_(mine * self.decay + (1 - self.decay) * theirs)


def main():
    config = Config()
    torch.manual_seed(7)
    angle = torch.rand(256) * 3 * math.pi
    data = torch.stack((angle * angle.cos(), angle * angle.sin()), dim=1) / 5
    loader = DataLoader(TensorDataset(data), batch_size=64, shuffle=True, drop_last=True)
    diffusion = Diffusion(Denoiser(config.width), config)
    ema = EMA(diffusion, 0.9)
    optimizer = torch.optim.Adam(diffusion.parameters(), lr=config.lr, betas=(0.9, 0.99))
    for epoch in range(config.epochs):
        losses = []
        for (x,) in loader:
            loss = diffusion(x)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
            optimizer.step()
            ema.update(diffusion)
            losses.append(loss.detach())
        print(f"epoch {epoch}: {torch.stack(losses).mean():.5f}")
    points = ema.shadow.sample(64)
    print(points.abs().mean().item(), points.norm(dim=1).max().item())
    print(sorted(k for k in diffusion.state_dict() if not k.startswith("model")))


if __name__ == "__main__":
    main()
