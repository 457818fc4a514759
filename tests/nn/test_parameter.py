"""`Parameter`: memory, copies, pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import rushlight as torch
from rushlight import nn


def test_a_parameter_shares_memory_and_version() -> None:
    x = torch.zeros(2)
    p: Any = nn.Parameter(x)
    x.add_(1)
    assert p.tolist() == [1, 1] and p._version == x._version
    assert p.is_leaf and p.requires_grad and type(p * 2) is torch.Tensor


def test_a_parameter_is_copied_and_pickled() -> None:
    p: Any = nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    twin = copy.deepcopy([p, p])
    assert twin[0] is twin[1] and type(twin[0]) is nn.Parameter and twin[0].grad is None
    back = pickle.loads(pickle.dumps(nn.Parameter(torch.ones(2), requires_grad=False)))
    assert type(back) is nn.Parameter and not back.requires_grad and back.tolist() == [1, 1]
