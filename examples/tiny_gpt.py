"""A transformer of two layers learns to sort: it reads six digits, and writes them in order.

rushlight run examples/tiny_gpt.py
rushlight run examples/tiny_gpt.py --steps 60

It runs under PyTorch too, and prints the same. `pip install '.[examples]'` adds a progress bar.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

try:
    from tqdm import trange
except ImportError:  # the bar is a comfort: without it the same lines are printed

    def trange(count, **options):
        return range(count)


DIGITS, LENGTH = 10, 6  # how many different ones, and how many in a row


class Attention(nn.Module):
    """Each place takes in a mean of the places up to it, weighed by how well they fit."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.asked = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.asked(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.each = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.each(self.norms[1](x))


class GPT(nn.Module):
    """A score for each digit that may come next, at every place."""

    def __init__(self, width=64, heads=4, layers=2):
        super().__init__()
        self.digits = nn.Embedding(DIGITS, width)
        self.places = nn.Embedding(2 * LENGTH - 1, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, DIGITS, bias=False)

    def forward(self, row):
        x = self.digits(row) + self.places(torch.arange(row.shape[1]))
        return self.scores(self.norm(self.blocks(x)))


def rows(count):
    """Digits, and behind them the same in order: [count, 2 * LENGTH]."""
    given = torch.randint(DIGITS, (count, LENGTH))
    return torch.cat([given, given.sort(1).values], 1)


@torch.no_grad()
def write(net, given):
    """What the network puts behind the digits it is given, one after the other."""
    net.eval()
    row = given
    for _ in range(LENGTH):
        row = torch.cat([row, net(row)[:, -1:].argmax(-1)], 1)
    net.train()
    return row[:, LENGTH:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="optimiser steps")
    options = parser.parse_args()

    torch.manual_seed(0)
    net = GPT()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=options.steps + 1)
    for step in trange(options.steps, desc="sorting", leave=False, disable=None):
        row = rows(64)
        scores = net(row[:, :-1])[:, LENGTH - 1 :]  # what it says of the second half
        loss = F.cross_entropy(scores.flatten(0, 1), row[:, LENGTH:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == options.steps - 1:
            print(f"step {step:4d}  loss {loss.item():.3f}")

    row = rows(200)
    written = write(net, row[:, :LENGTH])
    share = (written == row[:, LENGTH:]).all(1).float().mean().item()
    print(f"{row[0, :LENGTH].tolist()} -> {written[0].tolist()}")
    print(f"{share:.0%} of 200 new rows are sorted right")


if __name__ == "__main__":
    main()
