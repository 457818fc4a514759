"""Averages of weights over training, and parameters in groups."""

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(
    [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.01}], lr=0.1
)
swa, ema = AveragedModel(model), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
x = torch.randn(20, 3)
y = x.prod(1, keepdim=True)
for step in range(6):
    loss = nn.functional.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
    if step >= 2:
        swa.update_parameters(model)
        swa_scheduler.step()
    print(f"{loss.item():.6f}", [round(g["lr"], 6) for g in optimizer.param_groups])
print(f"{swa(x).norm().item():.5f} {ema(x).norm().item():.5f}", swa.n_averaged)
