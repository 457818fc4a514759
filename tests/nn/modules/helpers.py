"""A small network."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import nn


class Net(nn.Module):
    """A parameter, a buffer, a shared module, a module that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("cache", torch.zeros(1), persistent=False)
        self.first = nn.Linear(2, 2)
        self.again = self.first
        self.absent: Any = None
        self.inner = nn.Sequential(nn.Linear(2, 1))

    def forward(self, x: Any) -> Any:
        return self.inner(self.first(x)) * self.scale


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]
