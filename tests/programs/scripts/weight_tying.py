"""One matrix for reading and for writing words: shared in the state, in saving and in training."""

import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(7, 4)
        self.gru = nn.GRU(4, 4, batch_first=True)
        self.decoder = nn.Linear(4, 7, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(self.gru(self.encoder(x))[0])


torch.manual_seed(0)
model = Tied()
print(len(list(model.parameters())), list(model.state_dict()))
optimizer = torch.optim.Adamax(model.parameters(), lr=0.05)
x = torch.arange(21).view(3, 7) % 7
for _ in range(5):
    loss = nn.functional.cross_entropy(model(x[:, :-1]).reshape(-1, 7), x[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")
print(model.decoder.weight is model.encoder.weight, model.encoder.weight.grad.norm())
