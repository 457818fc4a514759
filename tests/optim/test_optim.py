"""Optimisers and schedulers give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from tests.harness import LIVE, plain_tests, pytorch, stored
from tests.optim.cases_optim import close, coarse, exact

globals().update(plain_tests("optim/optim", exact, close, coarse))


def flat(x: Any) -> list[float]:
    if isinstance(x, dict):
        return [z for key in sorted(x) for z in flat(x[key])]
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


@pytest.mark.parametrize("name", sorted(coarse))
def test_is_near_what_is_stored(name: str) -> None:
    known = stored("optim/optim")[name]
    assert flat(coarse.run(rushlight, name)) == pytest.approx(flat(known), abs=2**-7)


if LIVE:

    @pytest.mark.parametrize("name", sorted(coarse))
    def test_is_near_pytorch(name: str) -> None:
        ours, theirs = coarse.run(rushlight, name), coarse.run(pytorch(), name)
        assert flat(ours) == pytest.approx(flat(theirs), abs=2**-7)
