"""An LSTM learns to write a rhyme, letter by letter.

rushlight run examples/char_rnn.py
rushlight run examples/char_rnn.py --steps 50 --letters 80

It runs under PyTorch too, and prints the same. `pip install '.[examples]'` adds a progress bar.
"""

import argparse

import torch
from torch import nn

try:
    from tqdm import trange
except ImportError:  # the bar is a comfort: without it the same lines are printed

    def trange(count, **options):
        return range(count)


RHYME = """\
This is the farmer sowing his corn,
That kept the cock that crowed in the morn,
That waked the priest all shaven and shorn,
That married the man all tattered and torn,
That kissed the maiden all forlorn,
That milked the cow with the crumpled horn,
That tossed the dog,
That worried the cat,
That killed the rat,
That ate the malt
That lay in the house that Jack built.
"""
LETTERS = sorted(set(RHYME))
NUMBER = {letter: number for number, letter in enumerate(LETTERS)}


class Writer(nn.Module):
    """Which letter comes next, from those before: a score for each, at every place."""

    def __init__(self, width=16, hidden=96):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.scores = nn.Linear(hidden, len(LETTERS))

    def forward(self, text, state=None):
        output, state = self.lstm(self.letters(text), state)
        return self.scores(output), state


@torch.no_grad()
def write(net, start, count):
    """`count` letters behind `start`, the likeliest each time; the state carries what was read."""
    net.eval()
    text, state = start, None
    following = torch.tensor([[NUMBER[letter] for letter in start]])
    for _ in range(count):
        scores, state = net(following, state)
        following = scores[:, -1:].argmax(-1)
        text += LETTERS[following.item()]
    net.train()
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="optimiser steps")
    parser.add_argument("--letters", type=int, default=150, help="how much to write at the end")
    options = parser.parse_args()

    torch.manual_seed(0)
    text = torch.tensor([NUMBER[letter] for letter in RHYME])
    net = Writer()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    length = 48
    for step in trange(options.steps, desc="reading", leave=False, disable=None):
        first = torch.randint(len(text) - length, (16, 1))
        places = first + torch.arange(length + 1)
        part = text[places]  # 16 parts of the rhyme; each letter's answer is the one behind it
        scores, _ = net(part[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), part[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 40 == 0 or step == options.steps - 1:
            print(f"step {step:4d}  loss {loss.item():.3f}")

    print(write(net, "That ", options.letters))


if __name__ == "__main__":
    main()
