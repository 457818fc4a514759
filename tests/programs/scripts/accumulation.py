"""Gradients over several small batches equal those over one large; norms are clipped."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
x, y = torch.randn(12, 5), torch.randn(12, 1)
nn.functional.mse_loss(model(x), y).backward()
whole = model.weight.grad.clone()
model.zero_grad()
for xs, ys in zip(x.chunk(3), y.chunk(3)):
    (nn.functional.mse_loss(model(xs), ys) / 3).backward()
print(torch.allclose(whole, model.weight.grad, atol=1e-6), whole)
print(nn.utils.clip_grad_norm_(model.parameters(), 0.1), model.weight.grad.norm())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(1, 7):
    loss = nn.functional.huber_loss(model(x), y)
    loss.backward()
    if step % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
    print(f"{loss.item():.6f}")
