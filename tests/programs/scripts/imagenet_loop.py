"""The usual loop: meters, accuracy at 1 and 5, a checkpoint of the best, resuming from it."""

import os
import shutil
import tempfile
from enum import Enum

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset


class Summary(Enum):
    NONE, AVERAGE = 0, 1


class AverageMeter:
    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name, self.fmt, self.summary_type = name, fmt, summary_type
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [
            correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0))
            for k in topk
        ]


def run(loader, model, criterion, optimizer=None):
    losses, top1, top5 = (
        AverageMeter("Loss", ":.3f"),
        AverageMeter("Acc@1", ":6.2f"),
        AverageMeter("Acc@5", ":6.2f"),
    )
    model.train(optimizer is not None)
    with torch.set_grad_enabled(optimizer is not None):
        for images, target in loader:
            output = model(images.to("cpu", non_blocking=True))
            loss = criterion(output, target)
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            losses.update(loss.item(), images.size(0))
            top1.update(acc1[0].item(), images.size(0))
            top5.update(acc5[0].item(), images.size(0))
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    print("train" if optimizer else "test ", losses, top1, top5)
    return top1.avg


torch.manual_seed(4)
pattern = torch.randn(8, 3, 6, 6)
kind = torch.arange(64) % 8
data = TensorDataset(pattern[kind] + 0.5 * torch.randn(64, 3, 6, 6), kind)
loader = DataLoader(Subset(data, range(48)), batch_size=16, shuffle=True)
held = DataLoader(Subset(data, range(48, 64)), batch_size=16)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(32, 8),
)
model = nn.DataParallel(model)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2], gamma=0.1)
with tempfile.TemporaryDirectory() as folder:
    path, best_path, best = (
        os.path.join(folder, "last.pth.tar"),
        os.path.join(folder, "best.pth.tar"),
        0,
    )
    for epoch in range(3):
        run(loader, model, criterion, optimizer)
        acc = run(held, model, criterion)
        scheduler.step()
        state = {
            "epoch": epoch + 1,
            "state_dict": model.state_dict(),
            "best_acc1": max(acc, best),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }
        torch.save(state, path)
        if acc > best:
            best = acc
            shutil.copyfile(path, best_path)
    checkpoint = torch.load(best_path, map_location="cpu")
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    print(
        checkpoint["epoch"],
        checkpoint["best_acc1"],
        scheduler.last_epoch,
        list(checkpoint["state_dict"])[:2],
    )
    run(held, model, criterion)
