"""A loop whose length depends on the data: the graph is whatever the program did.

rushlight run examples/doubling.py
"""

import torch

torch.manual_seed(4)
x = torch.randn(3, requires_grad=True)
y = x * 2
doublings = 1
while y.data.norm() < 1000:
    y = y * 2
    doublings += 1
print(f"{doublings} doublings, norm {y.data.norm():.1f}")

# y is a vector: backward wants to know how much each entry counts.
weights = torch.tensor([0.1, 1.0, 0.0001])
y.backward(weights)
print(x.grad)
print(torch.allclose(x.grad, weights * 2**doublings))
