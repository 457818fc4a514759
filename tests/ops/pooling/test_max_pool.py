"""Pooling: what PyTorch gives, stored, and live where it is installed."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.calls import call_tests
from tests.ops.pooling.cases_max_pool import CALLS, ERRORS

globals().update(call_tests("ops/pooling/max_pool", CALLS, ERRORS))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_adaptive_results_that_no_memory_holds(kind: str) -> None:
    """They are refused before a window is made for each of their places."""
    x = torch.ones(1, 3, 3)
    pool = getattr(torch.nn.functional, f"adaptive_{kind}_pool2d")
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        pool(x, 2**70)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed with sizes="):
        pool(x, 2**62)
    with pytest.raises(MemoryError, match="^Unable to allocate"):
        pool(x, (1, 2**50))
