"""Teach autograd a function of your own, with the derivative you say it has.

rushlight run examples/custom_function.py
"""

import torch
from torch.autograd import Function


class Cube(Function):
    """x ** 3, keeping only x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Scale(Function):
    """Multiply by a constant on the way forward, and let gradients through unscaled."""

    @staticmethod
    def forward(ctx, x, factor):
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g, None  # one result for each input of forward; a number has no gradient


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = Cube.apply(x)
print(y)
y.sum().backward()
print("3 x²:", x.grad)

# backward is made of differentiable operations, so it can itself be differentiated.
(first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
print("6 x: ", second)

x.grad = None
z = Scale.apply(x, 10)
print(z)
z.backward(torch.ones_like(z))
print("let through:", x.grad)
