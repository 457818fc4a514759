"""Optimisers and schedulers give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from tests.harness import LIVE, pytorch, stored
from tests.nn.plain_cases import compare
from tests.optim.cases_optim import close, coarse, exact

STORED = stored("optim/optim")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == (exact | close | coarse).keys()


@pytest.mark.parametrize("name", sorted(exact))
def test_equals_what_is_stored(name: str) -> None:
    compare(exact.run(rushlight, name), STORED[name], True, name)


@pytest.mark.parametrize("name", sorted(close))
def test_is_close_to_what_is_stored(name: str) -> None:
    compare(close.run(rushlight, name), STORED[name], False, name)


def flat(x: Any) -> list[float]:
    if isinstance(x, dict):
        return [z for key in sorted(x) for z in flat(x[key])]
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


@pytest.mark.parametrize("name", sorted(coarse))
def test_is_near_what_is_stored(name: str) -> None:
    assert flat(coarse.run(rushlight, name)) == pytest.approx(flat(STORED[name]), abs=2**-7)


if LIVE:

    @pytest.mark.parametrize("name", sorted(exact))
    def test_equals_pytorch(name: str) -> None:
        compare(exact.run(rushlight, name), exact.run(pytorch(), name), True, name)

    @pytest.mark.parametrize("name", sorted(close))
    def test_is_close_to_pytorch(name: str) -> None:
        compare(close.run(rushlight, name), close.run(pytorch(), name), False, name)

    @pytest.mark.parametrize("name", sorted(coarse))
    def test_is_near_pytorch(name: str) -> None:
        ours, theirs = coarse.run(rushlight, name), coarse.run(pytorch(), name)
        assert flat(ours) == pytest.approx(flat(theirs), abs=2**-7)
