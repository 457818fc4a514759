"""Measurements and tables look as PyTorch's do."""

from __future__ import annotations

import pytest

import rushlight
from tests.harness import agree, as_stored, stored
from tests.utils.benchmark.cases_compare import cases

STORED = stored("utils/benchmark/compare")


@pytest.mark.parametrize("name", cases)
def test_gives_what_is_stored(name: str) -> None:
    got = as_stored(cases.run(rushlight, name))
    assert agree(STORED[name], got), got
