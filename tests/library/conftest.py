"""Every test of `torch.library`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rushlight.core.grad_mode import state


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """A test leaves no mode entered, and with it no slow path."""
    before = state.active
    yield
    assert state.active == before
