"""A sparse mixture of experts: noisy top-k gating, dispatch by index_add, a load-balancing loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions.normal import Normal


class Gate(nn.Module):
    def __init__(self, width, experts, k):
        super().__init__()
        self.k, self.experts = k, experts
        self.w_gate, self.w_noise = (nn.Parameter(torch.zeros(width, experts)) for _ in range(2))
        self.softplus = nn.Softplus()
        self.register_buffer("mean", torch.tensor([0.0]))
        self.register_buffer("std", torch.tensor([1.0]))

    def forward(self, x):
        clean = x @ self.w_gate
        noise = self.softplus(x @ self.w_noise) + 1e-2 if self.training else None
        logits = clean + torch.randn_like(clean) * noise if self.training else clean
        top, index = logits.topk(min(self.k + 1, self.experts), dim=1)
        gates = torch.zeros_like(logits).scatter(
            1, index[:, : self.k], F.softmax(top[:, : self.k], dim=1)
        )
        if self.training:
            threshold = top[:, self.k].unsqueeze(1)
            load = Normal(self.mean, self.std).cdf((clean - threshold) / noise).sum(0)
        else:
            load = (gates > 0).sum(0).float()
        return gates, load


def cv_squared(x):
    return x.float().var() / (x.float().mean() ** 2 + 1e-10)


class MoE(nn.Module):
    def __init__(self, width, experts=4, k=2):
        super().__init__()
        self.gate = Gate(width, experts, k)
        self.experts = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(width, 2 * width), nn.Mish(), nn.Linear(2 * width, width))
                for _ in range(experts)
            ]
        )

    def forward(self, x):
        gates, load = self.gate(x)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            (rows,) = torch.where(gates[:, i] > 0)
            if rows.numel() == 0:
                continue
            out.index_add_(0, rows, expert(x[rows]) * gates[rows, i, None])
        return out, cv_squared(gates.sum(0)) + cv_squared(load), gates


torch.manual_seed(0)
model = nn.ModuleDict(
    {"inp": nn.Linear(6, 8), "moe": MoE(8), "norm": nn.RMSNorm(8), "out": nn.Linear(8, 3)}
)
optimizer = torch.optim.NAdam(model.parameters(), lr=5e-3, weight_decay=1e-4)
x = torch.randn(60, 6)
y = (x[:, :3].argmax(1)).long()
for step in range(20):
    h = model["inp"](x)
    mixed, balance, gates = model["moe"](h)
    logits = model["out"](model["norm"](h + mixed))
    loss = F.cross_entropy(logits, y) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        print(f"{loss.item():.5f} {balance.item():.5f}", (gates > 0).sum(0).tolist())
model.eval()
print(
    (model["out"](model["norm"](model["moe"](model["inp"](x))[0])).argmax(1) == y).float().mean()
    > 0.3
)
