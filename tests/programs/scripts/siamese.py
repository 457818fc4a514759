"""A siamese network: two views through one body, a score of their likeness, Adadelta and StepLR."""

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, count):
        draw = torch.Generator().manual_seed(11)
        self.kind = torch.randint(0, 3, (count,), generator=draw)
        base = torch.randn(3, 1, 8, 8, generator=draw)
        self.image = base[self.kind] + 0.3 * torch.randn(count, 1, 8, 8, generator=draw)
        self.other = torch.randperm(count, generator=draw)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        j = self.other[i]
        return self.image[i], self.image[j], (self.kind[i] == self.kind[j]).float()


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.head = nn.Sequential(nn.Linear(108, 16), nn.ReLU(inplace=True), nn.Linear(16, 1))
        self.body.apply(self.init)
        self.head.apply(self.init)

    @staticmethod
    def init(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward(self, a, b):
        return torch.sigmoid(self.head(torch.cat((self.body(a), self.body(b)), 1))).squeeze(1)


torch.manual_seed(1)
loader = DataLoader(Pairs(40), batch_size=10, shuffle=True, drop_last=True)
model, criterion = Siamese(), nn.BCELoss()
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
for epoch in range(4):
    model.train()
    for a, b, same in loader:
        optimizer.zero_grad()
        loss = criterion(model(a, b), same)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(a, b).round() == same).sum().item() for a, b, same in loader)
    print(epoch, round(loss.item(), 4), right, round(scheduler.get_last_lr()[0], 4))
