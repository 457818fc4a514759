"""Parameters to step."""

from __future__ import annotations

from typing import Any

import rushlight as torch


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


def steps(optimizer: Any, params: list[Any], n: int = 3) -> None:
    for _ in range(n):
        optimizer.zero_grad()
        sum((p * p).sum() for p in params).backward()
        optimizer.step()
