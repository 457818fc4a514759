"""Sobol's sequence is PyTorch's, to the last bit."""

from __future__ import annotations

import pytest

import rushlight
import rushlight.quasirandom
from tests.cases_quasirandom import cases
from tests.harness import LIVE, agree, as_stored, pytorch, stored

STORED = stored("quasirandom")


@pytest.mark.parametrize("name", cases)
def test_points_are_those_stored(name: str) -> None:
    assert agree(STORED[name], as_stored(cases.run(rushlight, name)))


if LIVE:

    @pytest.mark.parametrize("args", [(3,), (1111, True, 0), (40, True, 7)])
    def test_points_are_pytorchs(args: tuple[int, ...]) -> None:
        ours = rushlight.quasirandom.SobolEngine(*args)
        theirs = pytorch().quasirandom.SobolEngine(*args)
        for count in (1, 5, 64):
            assert ours.draw(count).tolist() == theirs.draw(count).tolist()
