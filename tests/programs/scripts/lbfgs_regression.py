"""Logistic regression by LBFGS, with its closure and line search."""

import torch

torch.manual_seed(0)
x = torch.randn(40, 3, dtype=torch.float64)
y = (x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) > 0.1).double()
w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
b = torch.zeros((), dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.LBFGS([w, b], lr=1, max_iter=5, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ w + b, y)
    loss = loss + 0.01 * w.square().sum()
    loss.backward()
    return loss


for _ in range(4):
    print(f"{optimizer.step(closure).item():.8f}")
print(w.tolist(), b.item())
