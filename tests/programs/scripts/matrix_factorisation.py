"""Recommending by factors: sparse gradients, SparseAdam, a sampler with weights."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler, random_split


class Factors(nn.Module):
    def __init__(self, users, items, rank, sparse=True):
        super().__init__()
        self.user = nn.Embedding(users, rank, sparse=sparse)
        self.item = nn.Embedding(items, rank, sparse=sparse)
        self.user_bias, self.item_bias = (
            nn.Embedding(users, 1, sparse=sparse),
            nn.Embedding(items, 1, sparse=sparse),
        )
        for p in self.parameters():
            nn.init.normal_(p, std=0.1)

    def forward(self, user, item):
        score = (self.user(user) * self.item(item)).sum(-1, keepdim=True)
        return (score + self.user_bias(user) + self.item_bias(item)).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.count = patience, float("inf"), 0

    def __call__(self, value):
        self.count = 0 if value < self.best else self.count + 1
        self.best = min(self.best, value)
        return self.count >= self.patience


torch.manual_seed(2)
users, items = torch.randint(0, 30, (400,)), torch.randint(0, 20, (400,))
truth = torch.randn(30, 3) @ torch.randn(3, 20)
ratings = truth[users, items] + 0.1 * torch.randn(400)
train, valid = random_split(
    TensorDataset(users, items, ratings), [0.8, 0.2], generator=torch.Generator().manual_seed(1)
)
counts = torch.bincount(users[torch.tensor(train.indices)], minlength=30)
weights = 1.0 / counts[users[train.indices]].float()
sampler = WeightedRandomSampler(weights, num_samples=len(train), replacement=True)
loader = DataLoader(train, batch_size=32, sampler=sampler)
model = Factors(30, 20, 4)
optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.05)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
stop = EarlyStopping(2)
for epoch in range(6):
    model.train()
    for user, item, rating in loader:
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(user, item), rating)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        u, i, r = (torch.stack(column) for column in zip(*valid))
        error = nn.functional.mse_loss(model(u, i), r).sqrt()
    print(epoch, f"{loss.item():.5f} {error:.5f}", optimizer.param_groups[0]["lr"])
    if stop(error.item()):
        break
grad = model.user.weight.grad
print(grad.is_sparse, grad.coalesce().indices().shape, model.user.weight.grad.to_dense().shape)
top = torch.topk(model.user.weight @ model.item.weight.t(), k=3, dim=1)
print(top.indices[:3].tolist(), len(Subset(train, range(5))))
