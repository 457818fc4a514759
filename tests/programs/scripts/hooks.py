"""Hooks on tensors and modules: looking at activations and changing gradients."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
seen = {}


def keep(name):
    def hook(module, args, output):
        seen[name] = output.detach()

    return hook


handles = [m.register_forward_hook(keep(n)) for n, m in model.named_modules() if n]
model[0].register_full_backward_hook(lambda m, gi, go: print("grad_out", go[0].norm()))
model[2].weight.register_hook(lambda g: g.clamp(-0.5, 0.5))
x = torch.randn(5, 4, requires_grad=True)
out = model(x)
out.register_hook(lambda g: g * 2)
out.pow(2).sum().backward()
for name, value in seen.items():
    print(name, value.shape, f"{value.abs().mean().item():.6f}")
print(model[2].weight.grad.abs().max().item(), x.grad.norm())
for handle in handles:
    handle.remove()
seen.clear()
model(x)
print(len(seen))
