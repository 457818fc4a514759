"""The basics: a network as a class, its layers one by one, and its parameters."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.stack = nn.Sequential(
            nn.Linear(4 * 4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)
        )

    def forward(self, x):
        return self.stack(self.flatten(x))


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Network().to(device)
print(model)
x = torch.rand(2, 4, 4, device=device)
logits = model(x)
probabilities = nn.Softmax(dim=1)(logits)
print(logits, probabilities.argmax(1))
print(nn.Flatten()(x).size(), nn.Linear(16, 5)(nn.Flatten()(x)).size())
for name, parameter in model.named_parameters():
    print(name, parameter.size(), parameter[:2])
print(sum(p.numel() for p in model.parameters()))
