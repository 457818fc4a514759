"""Exact Gaussian-process regression: an RBF kernel, log marginal likelihood by Cholesky, Adam."""

import math

import torch
from torch import nn
from torch.distributions import MultivariateNormal, constraints, transform_to


class RBF(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_length = nn.Parameter(torch.zeros(1, dtype=torch.double))
        self.raw_scale = nn.Parameter(torch.zeros(1, dtype=torch.double))

    @property
    def length(self):
        return nn.functional.softplus(self.raw_length)

    def forward(self, a, b):
        return nn.functional.softplus(self.raw_scale) * torch.exp(
            -0.5 * torch.cdist(a, b).div(self.length).square()
        )


class GP(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y, self.kernel = x, y, RBF()
        self.noise = nn.Parameter(torch.tensor(-2.0, dtype=torch.double))

    def chol(self):
        k = self.kernel(self.x, self.x)
        return torch.linalg.cholesky(
            k + transform_to(constraints.positive)(self.noise) * torch.eye(len(k), dtype=k.dtype)
        )

    def nll(self):
        L = self.chol()
        alpha = torch.cholesky_solve(self.y.unsqueeze(-1), L).squeeze(-1)
        return (
            0.5 * self.y.dot(alpha)
            + L.diagonal().log().sum()
            + 0.5 * len(self.y) * math.log(2 * math.pi)
        )

    @torch.no_grad()
    def predict(self, x):
        L, k = self.chol(), self.kernel(self.x, x)
        v = torch.linalg.solve_triangular(L, k, upper=False)
        mean = k.T @ torch.cholesky_solve(self.y[:, None], L)
        return mean.squeeze(1), self.kernel(x, x) - v.mT @ v


torch.manual_seed(0)
x = torch.linspace(0, 1, 20, dtype=torch.double).unsqueeze(1)
y = torch.sin(6 * x).squeeze(1) + 0.1 * torch.randn(20, dtype=torch.double)
gp = GP(x, y)
optimizer = torch.optim.Adam(gp.parameters(), lr=0.1)
history = []
for i in range(25):
    optimizer.zero_grad()
    loss = gp.nll()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print(" ".join(f"{v:.5f}" for v in history[::6]))
print({name: round(p.item(), 5) for name, p in gp.named_parameters()})
mean, cov = gp.predict(torch.tensor([[0.25], [0.5], [1.5]], dtype=torch.double))
print(mean, cov.diag().clamp(min=0).sqrt())
dist = MultivariateNormal(mean, cov + 1e-6 * torch.eye(3, dtype=torch.double))
print(dist.log_prob(mean), dist.entropy(), dist.rsample((2,)).shape)
print(
    torch.autograd.functional.hessian(
        lambda s: (gp.kernel.raw_length * 0).sum() + (s.exp() * y.double()).sum(),
        torch.zeros(1, dtype=torch.double),
    )
)
