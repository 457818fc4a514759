"""A physics-informed network for the heat equation: second derivatives, Adam, then LBFGS."""

import numpy as np
import torch
import torch.nn as nn


class PINN(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.activation = nn.Tanh()
        self.linears = nn.ModuleList([nn.Linear(a, b) for a, b in zip(layers[:-1], layers[1:])])
        for linear in self.linears:
            nn.init.xavier_normal_(linear.weight.data, gain=1.0)
            nn.init.zeros_(linear.bias.data)
        self.alpha = nn.Parameter(torch.tensor([0.5]))
        self.iter = 0

    def forward(self, x, t):
        a = torch.cat([x, t], dim=1)
        for linear in self.linears[:-1]:
            a = self.activation(linear(a))
        return self.linears[-1](a)

    def residual(self, x, t):
        x, t = x.clone().requires_grad_(True), t.clone().requires_grad_(True)
        u = self(x, t)
        grad = lambda y, v: torch.autograd.grad(
            y, v, torch.ones_like(y), retain_graph=True, create_graph=True
        )[0]
        u_x, u_t = grad(u, x), grad(u, t)
        u_xx = grad(u_x, x)
        return u_t - self.alpha * u_xx


np.random.seed(1234)
torch.manual_seed(1234)
# in float32 LBFGS takes another way at the first difference in rounding
torch.set_default_dtype(torch.double)
grid = np.random.rand(80, 2)
xf, tf = (torch.from_numpy(grid[:, i : i + 1]).double() for i in (0, 1))
x0 = torch.linspace(0, 1, 30).unsqueeze(1)
u0, zero = torch.sin(np.pi * x0), torch.zeros_like(x0)
exact = lambda x, t: torch.exp(-0.3 * np.pi**2 * t) * torch.sin(np.pi * x)
xd, td = torch.rand(40, 1), torch.rand(40, 1)
model = PINN([2, 16, 16, 1])
mse = nn.MSELoss(reduction="mean")


def loss_of():
    initial = mse(model(x0, torch.zeros_like(x0)), u0)
    t = torch.linspace(0, 1, 30).view(-1, 1)
    walls = mse(model(torch.zeros_like(t), t), zero) + mse(model(torch.ones_like(t), t), zero)
    data = mse(model(xd, td), exact(xd, td))
    return initial + walls + data + 0.1 * torch.mean(model.residual(xf, tf) ** 2)


adam = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(30):
    adam.zero_grad()
    loss = loss_of()
    loss.backward()
    adam.step()
print(f"Adam {loss.item():.6f} alpha {model.alpha.item():.5f}")
lbfgs = torch.optim.LBFGS(
    model.parameters(), lr=0.5, max_iter=15, history_size=20, line_search_fn="strong_wolfe"
)


def closure():
    lbfgs.zero_grad()
    loss = loss_of()
    loss.backward()
    model.iter += 1
    return loss


first = lbfgs.step(closure)
print(f"LBFGS from {first.item():.5f} to {loss_of().item():.5f}, calls {model.iter > 10}")
with torch.no_grad():
    error = (model(xd, td) - exact(xd, td)).norm() / exact(xd, td).norm()
print(f"relative error {error:.3f}")
torch.set_default_dtype(torch.float)
