"""Train a LeNet to tell pictures apart: data, loop, validation, checkpoint, loss curve.

rushlight run examples/train_images.py
rushlight run examples/train_images.py --steps 40 --out /tmp/lenet

It runs under PyTorch too, and prints the same. The pictures are made here, so that nothing need be
fetched. `pip install '.[examples]'` adds a progress bar (tqdm) and the loss curve (matplotlib).
"""

import argparse
import math
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

try:
    from tqdm import tqdm
except ImportError:  # the bar is a comfort: without it the same lines are printed

    def tqdm(batches, **options):
        return batches


KINDS = ("stripes", "columns", "disc", "frame")


def draw(count, noise=0.4):
    """`count` pictures of 28 x 28 points, [count, 1, 28, 28], and the number of each one's kind."""
    kind = torch.randint(len(KINDS), (count,))
    rows = torch.arange(28.0).view(1, 28, 1)
    columns = torch.arange(28.0).view(1, 1, 28)
    y, x, width = torch.rand(3, count, 1, 1)
    y, x, width = 8 + 12 * y, 8 + 12 * x, 3 + 3 * width
    across = torch.sin(2 * math.pi * (rows + y) / width).expand(count, 28, 28)
    along = torch.sin(2 * math.pi * (columns + x) / width).expand(count, 28, 28)
    far = torch.sqrt((rows - y) ** 2 + (columns - x) ** 2)
    edge = torch.maximum((rows - y).abs(), (columns - x).abs())
    disc = torch.where(far < width, 1.0, -1.0)
    frame = torch.where((edge - width).abs() < 1, 1.0, -1.0)
    every = torch.stack([across, along, disc, frame])
    picture = every[kind, torch.arange(count)]
    return (picture + noise * torch.randn(count, 28, 28)).unsqueeze(1), kind


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classes = nn.Sequential(
            nn.Flatten(),
            nn.Linear(16 * 5 * 5, 120), nn.ReLU(),
            nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, len(KINDS)),
        )  # fmt: skip

    def forward(self, picture):
        return self.classes(self.features(picture))


@torch.no_grad()
def accuracy(net, loader):
    """The share of pictures whose kind the network names."""
    net.eval()
    right = sum(int((net(picture).argmax(1) == kind).sum()) for picture, kind in loader)
    net.train()
    return right / len(loader.dataset)


def save_curve(losses, path):
    """The loss of each step as a picture; False where there is no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(losses) + 1), losses)
    axes.set(xlabel="step", ylabel="loss", title="LeNet on four kinds of pictures", ylim=(0, None))
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=120, help="optimiser steps in all")
    parser.add_argument("--out", type=Path, default=Path("runs/lenet"), help="folder of results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    train, valid = random_split(TensorDataset(*draw(1200)), [1000, 200])
    batches = DataLoader(train, batch_size=32, shuffle=True)
    check = DataLoader(valid, batch_size=100)

    net = LeNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    losses = []
    epoch = 0
    while len(losses) < options.steps:
        epoch += 1
        for picture, kind in tqdm(batches, desc=f"epoch {epoch}", leave=False, disable=None):
            loss = loss_fn(net(picture), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == options.steps:
                break
        share = accuracy(net, check)
        print(f"step {len(losses):4d}  loss {losses[-1]:.3f}  validation accuracy {share:.1%}")

    # A checkpoint holds numbers, not code: a new network of the same form takes them in.
    path = options.out / "lenet.pt"
    torch.save(
        {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, path
    )
    again = LeNet()
    again.load_state_dict(torch.load(path)["net"])
    same = accuracy(again, check) == accuracy(net, check)
    print(f"saved {path.name}; loaded again it is {'as good' if same else 'another network'}")
    if save_curve(losses, options.out / "loss.png"):
        print("saved loss.png")
    else:
        print("no loss.png: matplotlib is not installed")


if __name__ == "__main__":
    main()
