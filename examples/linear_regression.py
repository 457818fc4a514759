"""Fit a straight line by gradient descent, first by hand, then with nn and optim.

rushlight run examples/linear_regression.py
"""

import torch
from torch import nn, optim

torch.manual_seed(0)
x = torch.linspace(-1, 1, 50).unsqueeze(1)
y = 3 * x - 1 + 0.1 * torch.randn(50, 1)  # slope 3, intercept -1, some noise

# By hand: the loss is differentiated, the parameters take a step, the gradients are cleared.
slope = torch.zeros(1, requires_grad=True)
intercept = torch.zeros(1, requires_grad=True)
for _ in range(200):
    loss = ((slope * x + intercept - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():  # a step is no part of the function that is differentiated
        slope -= 0.3 * slope.grad
        intercept -= 0.3 * intercept.grad
    slope.grad.zero_()
    intercept.grad.zero_()
print(f"by hand:  y = {slope.item():.3f} x + {intercept.item():.3f}")

# The same with a layer and an optimiser.
model = nn.Linear(1, 1)
optimizer = optim.SGD(model.parameters(), lr=0.3)
for _ in range(200):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(f"with nn:  y = {model.weight.item():.3f} x + {model.bias.item():.3f}")
