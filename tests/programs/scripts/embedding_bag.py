"""Short texts in classes, as bags of words of different lengths."""

import torch
from torch import nn
from torch.utils.data import DataLoader

texts = [
    (0, "the cat sat on the mat"),
    (1, "stocks fell sharply today"),
    (0, "a cat and a dog play"),
    (1, "the market and stocks rose"),
    (0, "dog sat on the mat today"),
    (1, "market fell on fear"),
]
words = {w: i for i, w in enumerate(sorted({w for _, t in texts for w in t.split()}))}


def collate(batch):
    labels = torch.tensor([label for label, _ in batch], dtype=torch.int64)
    lists = [torch.tensor([words[w] for w in t.split()]) for _, t in batch]
    offsets = torch.tensor([0] + [len(x) for x in lists[:-1]]).cumsum(dim=0)
    return labels, torch.cat(lists), offsets


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(len(words), 8)
        self.fc = nn.Linear(8, 2)
        self.embedding.weight.data.uniform_(-0.5, 0.5)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
for _ in range(4):
    right = 0
    for label, text, offsets in DataLoader(texts, batch_size=3, shuffle=True, collate_fn=collate):
        optimizer.zero_grad()
        out = model(text, offsets)
        loss = nn.functional.cross_entropy(out, label)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        right += (out.argmax(1) == label).sum().item()
        print(f"{loss.item():.6f}")
    print("right", right)
