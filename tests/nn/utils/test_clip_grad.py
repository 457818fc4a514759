"""Clipping gradients."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


def test_clipping() -> None:
    a: Any = torch.zeros(2, requires_grad=True)
    b: Any = torch.zeros(1, requires_grad=True)
    a.grad, b.grad = torch.tensor([2.0, 3.0]), torch.tensor([6.0])
    assert nn.utils.clip_grad_norm_((p for p in (a, b)), 3.5).item() == 7
    assert a.grad.tolist() == pytest.approx([1, 1.5]) and b.grad.item() == pytest.approx(3)
    assert nn.utils.clip_grad_norm_([a, b], 100, norm_type=float("inf")).item() == pytest.approx(3)
    nn.utils.clip_grad_value_([a], 1.2)
    assert a.grad.tolist() == pytest.approx([1, 1.2])
    with pytest.warns(UserWarning, match="empty generator"):
        nn.utils.clip_grad_norm_((p for p in ()), 1.0)
    assert nn.utils.get_total_norm([]).item() == 0
