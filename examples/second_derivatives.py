"""Derivatives of derivatives: curvature, a Hessian, and Newton's method on top of it.

rushlight run examples/second_derivatives.py
"""

import torch


def rosenbrock(p):
    """A banana-shaped valley whose lowest point is (1, 1)."""
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def gradient_and_hessian(f, p):
    """The gradient with its graph, then the gradient of each of its entries."""
    (g,) = torch.autograd.grad(f(p), p, create_graph=True)
    rows = [torch.autograd.grad(entry, p, retain_graph=True)[0] for entry in g]
    return g.detach(), torch.stack(rows)


t = torch.linspace(0, 3, 4, requires_grad=True)
(slope,) = torch.autograd.grad(torch.sin(t).sum(), t, create_graph=True)
(curvature,) = torch.autograd.grad(slope.sum(), t)
print("sin'' is -sin:", torch.allclose(curvature, -torch.sin(t)))

p = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
for step in range(7):
    g, hessian = gradient_and_hessian(rosenbrock, p)
    print(f"step {step}  f = {rosenbrock(p).item():.3e}  at ({p[0]:.4f}, {p[1]:.4f})")
    a, b, c, d = hessian.flatten()
    inverse = torch.stack([d, -b, -c, a]).reshape(2, 2) / (a * d - b * c)
    with torch.no_grad():
        p -= inverse @ g
