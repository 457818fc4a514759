"""Does one sentence follow from another? Packed bidirectional LSTM, shared embedding, accuracy."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class Pairs(nn.Module):
    def __init__(self, words, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=0)
        self.embed.weight.requires_grad = False
        self.project = nn.Linear(dim, dim)
        self.encode = nn.LSTM(
            dim, hidden, num_layers=2, bidirectional=True, dropout=0.2, batch_first=True
        )
        self.out = nn.Sequential(
            nn.Linear(8 * hidden, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3)
        )

    def sentence(self, x, length):
        x = torch.relu(self.project(self.embed(x)))
        packed = pack_padded_sequence(x, length, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.encode(packed)
        return h[-2:].transpose(0, 1).contiguous().view(len(length), -1)

    def forward(self, a, b):
        p, h = self.sentence(*a), self.sentence(*b)
        return self.out(torch.cat([p, h, (p - h).abs(), p * h], 1))


def batch(sentences):
    return pad_sequence(sentences, batch_first=True), torch.tensor([len(s) for s in sentences])


torch.manual_seed(0)


def draw():
    return [torch.randint(1, 20, (int(n),)) for n in torch.randint(2, 7, (9,))]


first, second, answer = batch(draw()), batch(draw()), torch.arange(9) % 3
model = Pairs(20, 6, 5)
learned = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(learned, lr=0.02)
criterion = nn.CrossEntropyLoss()
for step in range(8):
    model.train()
    optimizer.zero_grad()
    scores = model(first, second)
    loss = criterion(scores, answer)
    loss.backward()
    optimizer.step()
    right = (torch.max(scores, 1)[1].view(answer.size()) == answer).sum().item()
    print(f"{step} loss {loss.item():.4f} train acc {100.0 * right / 9:.1f}")
print(len(learned), first[0].shape, model.embed.weight[0].sum().item())
