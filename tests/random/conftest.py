"""Every test of random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rushlight import random as raw
from rushlight.random import generator


@pytest.fixture(autouse=True)
def bare() -> Iterator[None]:
    """States as arrays and devices as names, and the default generator left as it was."""
    outside = generator._outside
    before = outside.state, outside.array, outside.device
    plain = generator._Outside
    raw.present(plain.state, plain.array, plain.device)
    try:
        with raw.fork_rng():
            yield
    finally:
        raw.present(*before)
