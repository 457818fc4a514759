"""A learning-rate range test, then one-cycle training; states restored from memory."""

import copy
import io

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, ReduceLROnPlateau, _LRScheduler
from torch.utils.data import DataLoader, TensorDataset


class ExponentialLR(_LRScheduler):
    def __init__(self, optimizer, end_lr, num_iter, last_epoch=-1):
        self.end_lr, self.num_iter = end_lr, num_iter
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        r = self.last_epoch / (self.num_iter - 1)
        return [base_lr * (self.end_lr / base_lr) ** r for base_lr in self.base_lrs]


class LRFinder:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.history = {"lr": [], "loss": []}
        self.memory = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, self.memory)

    def reset(self):
        self.memory.seek(0)
        saved = torch.load(self.memory, map_location=lambda storage, location: storage)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])

    def range_test(self, loader, end_lr, num_iter, smooth_f=0.05, diverge_th=5):
        scheduler, best, iterator = (
            ExponentialLR(self.optimizer, end_lr, num_iter),
            None,
            iter(loader),
        )
        for iteration in range(num_iter):
            try:
                inputs, labels = next(iterator)
            except StopIteration:
                iterator = iter(loader)
                inputs, labels = next(iterator)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(inputs), labels)
            loss.backward()
            self.optimizer.step()
            loss = loss.item()
            self.history["lr"].append(scheduler.get_last_lr()[0])
            scheduler.step()
            if iteration:
                loss = smooth_f * loss + (1 - smooth_f) * self.history["loss"][-1]
            best = loss if best is None or loss < best else best
            self.history["loss"].append(loss)
            if loss > diverge_th * best:
                print("Stopping early, the loss has diverged")
                break


torch.manual_seed(0)
x = torch.randn(96, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.PReLU(), nn.BatchNorm1d(32), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)
before = copy.deepcopy(model.state_dict())
finder = LRFinder(model, optimizer, nn.CrossEntropyLoss())
finder.range_test(loader, end_lr=10, num_iter=30)
print(
    " ".join(
        f"{a:.5f}:{b:.4f}" for a, b in list(zip(finder.history["lr"], finder.history["loss"]))[::6]
    )
)
finder.reset()
print(all(torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values())))
for group in optimizer.param_groups:
    group.pop("initial_lr", None)
cycle = OneCycleLR(
    optimizer,
    max_lr=0.2,
    epochs=3,
    steps_per_epoch=len(loader),
    pct_start=0.3,
    anneal_strategy="cos",
)
for epoch in range(3):
    for a, b in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        cycle.step()
    group = optimizer.param_groups[0]
    print(f"{loss.item():.5f} {group['lr']:.6f} {group['momentum']:.5f}")
plateau = ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1)
for value in (1.0, 0.9, 0.95, 0.97, 0.99):
    plateau.step(value)
print(
    plateau.get_last_lr(),
    plateau.num_bad_epochs,
    isinstance(cycle, torch.optim.lr_scheduler.LRScheduler),
    LambdaLR.__name__,
)
