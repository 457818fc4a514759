"""A network that names the language of a word, letter by letter."""

import torch
from torch import nn

letters = "abcdefghijklmnopqrstuvwxyz"
names = {
    "it": ["rossi", "bianchi", "conti"],
    "de": ["schmidt", "weber", "koch"],
    "cz": ["novak", "dvorak", "cerny"],
}
kinds = list(names)


def as_tensor(word):
    x = torch.zeros(len(word), 1, len(letters))
    for i, letter in enumerate(word):
        x[i][0][letters.find(letter)] = 1
    return x


class RNN(nn.Module):
    def __init__(self, n, hidden, out):
        super().__init__()
        self.rnn, self.h2o = nn.RNN(n, hidden), nn.Linear(hidden, out)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, line):
        _, hidden = self.rnn(line)
        return self.softmax(self.h2o(hidden[0]))


torch.manual_seed(0)
model = RNN(len(letters), 16, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    total = 0.0
    for k, kind in enumerate(kinds):
        for word in names[kind]:
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(model(as_tensor(word)), torch.tensor([k]))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 3)
            optimizer.step()
            total += loss.item()
    print(f"{total:.6f}")
_, top = model(as_tensor("rossi")).topk(1)
print(kinds[top.item()])
