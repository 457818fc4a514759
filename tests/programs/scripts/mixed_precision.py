"""Mixed precision: autocast to bfloat16, and a scaler that may be off."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cuda", enabled=False)
x, y = torch.randn(32, 8), torch.randn(32, 1)
for _ in range(4):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
        loss = nn.functional.mse_loss(out.float(), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(out.dtype, loss.dtype, f"{loss.item():.2f}", model[0].weight.grad.dtype)
with torch.autocast("cpu", dtype=torch.bfloat16):
    print((x @ x.t()).dtype, x.sum().dtype, torch.softmax(x.bfloat16(), 1).dtype)
