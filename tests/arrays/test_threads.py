"""`set_num_threads` reaches the linear algebra under NumPy."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.arrays import threads


@pytest.mark.skipif(not threads.get_threads(), reason="NumPy's linear algebra is not known here")
def test_threads_are_set() -> None:
    before, told = threads.get_threads(), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert set(threads.get_threads()) == {1} and torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(told)
        threads.set_threads(before[0])
