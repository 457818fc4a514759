"""The basics: gradients of a loss, when none are recorded, and Jacobian products."""

import torch

torch.manual_seed(0)
x, y = torch.ones(5), torch.zeros(3)
w = torch.randn(5, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
z = torch.matmul(x, w) + b
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
print("z", z.grad_fn.name(), "loss", loss.grad_fn.name())
loss.backward()
print(w.grad, b.grad)
print(z.requires_grad)
with torch.no_grad():
    print((torch.matmul(x, w) + b).requires_grad)
print(z.detach().requires_grad)
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print("first", inp.grad)
out.backward(torch.ones_like(out), retain_graph=True)
print("second", inp.grad)
inp.grad.zero_()
out.backward(torch.ones_like(out))
print("zeroed", inp.grad)
print(torch.autograd.functional.jacobian(lambda v: v**2, torch.arange(3.0)))
