"""Storages: sizes, elements, shared memory."""

from __future__ import annotations

import pytest

import rushlight as torch


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storage() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    row = x[1]
    whole = row.untyped_storage()
    assert whole.nbytes() == len(whole) == 24
    assert whole == x.untyped_storage() and torch.is_storage(whole)
    assert whole.data_ptr() == x.data_ptr() == row.data_ptr() - 12
    typed = row.storage()
    assert typed.tolist() == [0, 1, 2, 3, 4, 5] and typed.dtype is torch.float32
    typed[0] = 9
    assert x[0, 0].item() == 9
