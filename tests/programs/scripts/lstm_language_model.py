"""A language model: an LSTM over word numbers, trained by truncated backpropagation."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.1)
        self.out = nn.Linear(width, words)

    def forward(self, x, state):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


torch.manual_seed(0)
text = torch.arange(200) * 7 % 12
data = text.view(4, 50).t().contiguous()
model = Model(12, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
state = (torch.zeros(2, 4, 16), torch.zeros(2, 4, 16))
for i in range(0, 40, 8):
    x, y = data[i : i + 8], data[i + 1 : i + 9]
    state = tuple(s.detach() for s in state)
    optimizer.zero_grad()
    logits, state = model(x, state)
    loss = nn.functional.cross_entropy(logits.view(-1, 12), y.reshape(-1))
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(f"{loss.item():.6f} {norm.item():.6f}")
