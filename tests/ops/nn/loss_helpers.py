"""`F`, inputs of losses, and comparing."""

from __future__ import annotations

import types
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces

F: Any = types.SimpleNamespace(**namespaces["nn.functional"])


def leaf(*values: Any) -> Any:
    return torch.tensor(values, dtype=torch.double, requires_grad=True)


def double(*values: Any) -> Any:
    return torch.tensor(values, dtype=torch.double)


def same(got: Any, want: Any) -> bool:
    flat = got.reshape(-1).tolist()
    return flat == pytest.approx(want, rel=1e-9, abs=1e-12, nan_ok=True)
