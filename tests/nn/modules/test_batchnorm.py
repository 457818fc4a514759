"""Batch norms: what they count, and load."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn


def test_batch_norm_loads_what_was_saved_before_it_counted() -> None:
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    assert repr(nn.BatchNorm1d(2).load_state_dict(state)) == "<All keys matched successfully>"


def test_batch_norm_counts() -> None:
    m = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 2.0):
        m(torch.tensor([[0.0], [value]]))
    assert m.num_batches_tracked.item() == 2
    assert m.running_mean.item() == pytest.approx(0.75)
    m.reset_running_stats()
    assert m.running_var.item() == 1
    still = nn.BatchNorm1d(1, track_running_stats=False).eval()
    y = still(torch.tensor([[0.0], [2.0]]))
    assert y.flatten().tolist() == pytest.approx([-1, 1], abs=1e-4)
