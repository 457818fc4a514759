"""Every test of `func`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rushlight.core.grad_mode import state
from rushlight.core.transforms.stack import stack


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a level open."""
    yield
    assert state.level == 0
    assert stack.batches == 0
    assert stack.tangents == 0
