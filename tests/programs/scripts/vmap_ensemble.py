"""Several models at once by vmap, and gradients of each sample."""

import copy

import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

torch.manual_seed(0)
models = [nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)) for _ in range(4)]
x = torch.randn(6, 3)
params, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")


def run(params, buffers, x):
    return functional_call(base, (params, buffers), (x,))


all_at_once = vmap(run, in_dims=(0, 0, None))(params, buffers, x)
one_by_one = torch.stack([m(x) for m in models])
print(all_at_once.shape, torch.allclose(all_at_once, one_by_one, atol=1e-6))
y = torch.randint(0, 2, (6,))


def loss(params, sample, target):
    out = functional_call(models[0], params, (sample.unsqueeze(0),))
    return nn.functional.cross_entropy(out, target.unsqueeze(0))


weights = {k: v.detach() for k, v in models[0].named_parameters()}
each = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
for name, g in each.items():
    print(name, g.shape, f"{g.norm().item():.6f}")
