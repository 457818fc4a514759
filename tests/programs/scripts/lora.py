"""Low-rank adapters by parametrisation: frozen weights, merging, their state dict."""

import math

import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize


class LoRA(nn.Module):
    def __init__(self, features_in, features_out, rank=2, alpha=4):
        super().__init__()
        self.lora_A = nn.Parameter(torch.zeros((rank, features_out)))
        self.lora_B = nn.Parameter(torch.zeros((features_in, rank)))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scale, self.enabled = alpha / rank, True

    def forward(self, original):
        if self.enabled:
            return (
                original + torch.matmul(self.lora_B, self.lora_A).view(original.shape) * self.scale
            )
        return original


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1, self.linear2, self.linear3 = (
            nn.Linear(10, 32),
            nn.Linear(32, 32),
            nn.Linear(32, 4),
        )
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.linear3(self.relu(self.linear2(self.relu(self.linear1(x)))))


def train(net, x, y, steps, parameters=None):
    optimizer = torch.optim.Adam(parameters or net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def enable_disable_lora(net, enabled=True):
    for layer in [net.linear1, net.linear2, net.linear3]:
        layer.parametrizations["weight"][0].enabled = enabled


torch.manual_seed(0)
net = Net()
x, y = torch.randn(64, 10), torch.randint(0, 4, (64,))
print(f"{train(net, x, y, 15):.5f}")
original = {name: p.clone().detach() for name, p in net.named_parameters()}
for layer in (net.linear1, net.linear2, net.linear3):
    parametrize.register_parametrization(layer, "weight", LoRA(*layer.weight.shape))
print(
    torch.equal(net.linear1.weight, original["linear1.weight"]),
    net.linear1,
    parametrize.is_parametrized(net.linear1),
)
for name, p in net.named_parameters():
    if "lora" not in name:
        p.requires_grad = False
trainable = [p for p in net.parameters() if p.requires_grad]
print(sum(p.numel() for p in trainable), f"{train(net, x[y == 1], y[y == 1], 10, trainable):.5f}")
assert torch.equal(net.linear1.parametrizations.weight.original, original["linear1.weight"])
enable_disable_lora(net, enabled=False)
print(
    f"{nn.functional.cross_entropy(net(x), y).item():.5f}",
    torch.equal(net.linear2.weight, original["linear2.weight"]),
)
enable_disable_lora(net)
print(
    f"{nn.functional.cross_entropy(net(x), y).item():.5f}",
    sorted(k for k in net.state_dict() if "lora" in k)[:2],
)
before = net(x)
for layer in (net.linear1, net.linear2, net.linear3):
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
print(
    torch.allclose(net(x), before, atol=1e-6),
    type(net.linear1).__name__,
    list(net.state_dict())[:2],
)
