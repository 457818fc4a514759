"""Metric learning: an additive-margin head, an optimiser of its own, a moving average."""

import math
from typing import Callable, Iterable, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.optimizer import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Lion(Optimizer):
    def __init__(
        self, params: Iterable, lr: float = 1e-4, betas=(0.9, 0.99), weight_decay: float = 0.0
    ):
        if not 0.0 <= lr:
            raise ValueError("Invalid learning rate: {}".format(lr))
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure: Optional[Callable] = None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad, state = p.grad, self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                exp_avg, (beta1, beta2) = state["exp_avg"], group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


class ArcMarginProduct(nn.Module):
    def __init__(self, in_features, out_features, s=16.0, m=0.30, easy_margin=False):
        super().__init__()
        self.s, self.m, self.easy_margin = s, m, easy_margin
        self.weight = nn.Parameter(torch.FloatTensor(out_features, in_features))
        nn.init.xavier_uniform_(self.weight)
        self.cos_m, self.sin_m = math.cos(m), math.sin(m)
        self.th, self.mm = math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, input, label):
        cosine = F.linear(F.normalize(input), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = (
            torch.where(cosine > 0, phi, cosine)
            if self.easy_margin
            else torch.where(cosine > self.th, phi, cosine - self.mm)
        )
        one_hot = torch.zeros(cosine.size())
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return ((one_hot * phi) + ((1.0 - one_hot) * cosine)) * self.s


torch.manual_seed(0)
centres = torch.randn(5, 12)
labels = torch.arange(60) % 5
x = centres[labels] + 0.4 * torch.randn(60, 12)
model = nn.Sequential(
    nn.Linear(12, 24), nn.BatchNorm1d(24), nn.SELU(), nn.AlphaDropout(0.05), nn.Linear(24, 6)
)
head = ArcMarginProduct(6, 5)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
optimizer = Lion(
    [{"params": model.parameters()}, {"params": head.parameters(), "lr": 2e-2}],
    lr=5e-3,
    weight_decay=1e-2,
)
for step in range(24):
    index = torch.randperm(60)[:20]
    loss = nn.CrossEntropyLoss()(head(model(x[index]), labels[index]), labels[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
    if step % 8 == 7:
        print(f"{step} {loss.item():.4f}")
ema.eval()
with torch.no_grad():
    e = F.normalize(ema(x))
    similarity = (e @ e.t()).fill_diagonal_(-1)
    print((labels[similarity.argmax(1)] == labels).float().mean().item(), int(ema.n_averaged))
print(len(optimizer.state_dict()["state"]), [g["lr"] for g in optimizer.param_groups], optimizer)
