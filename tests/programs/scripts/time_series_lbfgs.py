"""Two LSTM cells learn to continue sine waves, by L-BFGS with a closure."""

import math

import torch
from torch import nn, optim


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1, self.lstm2 = nn.LSTMCell(1, 8), nn.LSTMCell(8, 8)
        self.linear = nn.Linear(8, 1)

    def forward(self, input, future=0):
        states = [torch.zeros(input.size(0), 8, dtype=torch.double) for _ in range(4)]
        outputs = []
        for part in input.split(1, dim=1):
            states[:2] = self.lstm1(part, tuple(states[:2]))
            states[2:] = self.lstm2(states[0], tuple(states[2:]))
            outputs.append(self.linear(states[2]))
        for _ in range(future):
            states[:2] = self.lstm1(outputs[-1], tuple(states[:2]))
            states[2:] = self.lstm2(states[0], tuple(states[2:]))
            outputs.append(self.linear(states[2]))
        return torch.cat(outputs, dim=1)


torch.manual_seed(0)
shift = torch.tensor([0.0, 2.0, 4.0], dtype=torch.double)
wave = torch.sin(torch.arange(20, dtype=torch.double) * 2 * math.pi / 10 + shift[:, None])
model = Sequence().double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(model.parameters(), lr=0.8, max_iter=4)
for step in range(3):

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(wave[:, :-1]), wave[:, 1:])
        loss.backward()
        return loss

    print(step, round(optimizer.step(closure).item(), 5))
with torch.no_grad():
    print(model(wave[:1, :-1], future=3)[0, -3:])
