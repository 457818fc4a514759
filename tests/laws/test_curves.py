"""One seed, one run: fifty steps of training lose what they lose in PyTorch, to 1e-4."""

from __future__ import annotations

import pytest

import rushlight
from tests.harness import LIVE, pytorch, stored
from tests.laws.cases_curves import curves

STORED = stored("laws/curves")


@pytest.mark.parametrize("name", sorted(curves))
def test_losses_are_those_stored(name: str) -> None:
    assert curves[name](rushlight) == pytest.approx(STORED[name], rel=1e-4)


if LIVE:

    @pytest.mark.parametrize("name", sorted(curves))
    def test_losses_are_pytorchs(name: str) -> None:
        assert curves[name](rushlight) == pytest.approx(curves[name](pytorch()), rel=1e-4)
