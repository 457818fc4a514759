"""Every test of `func`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rushlight.core.grad_mode import state
from rushlight.core.record import slots


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a level open."""
    yield
    assert state.level == 0
    assert slots.batches == 0
    assert slots.levels == 0
