"""Modules, losses and training give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

import pytest

import rushlight
from tests.harness import LIVE, pytorch, stored
from tests.nn.cases_nn import close, exact
from tests.nn.plain_cases import compare

STORED = stored("nn/nn")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == (exact | close).keys()


@pytest.mark.parametrize("name", sorted(exact))
def test_equals_what_is_stored(name: str) -> None:
    compare(exact.run(rushlight, name), STORED[name], True, name)


@pytest.mark.parametrize("name", sorted(close))
def test_is_close_to_what_is_stored(name: str) -> None:
    compare(close.run(rushlight, name), STORED[name], False, name)


if LIVE:

    @pytest.mark.parametrize("name", sorted(exact))
    def test_equals_pytorch(name: str) -> None:
        compare(exact.run(rushlight, name), exact.run(pytorch(), name), True, name)

    @pytest.mark.parametrize("name", sorted(close))
    def test_is_close_to_pytorch(name: str) -> None:
        compare(close.run(rushlight, name), close.run(pytorch(), name), False, name)
