"""Sparse tensors do what PyTorch's do: what is stored, and live where it is installed."""

from __future__ import annotations

import pytest

import rushlight
from tests.harness import LIVE, agree, pytorch, stored
from tests.ops.sparse.cases_sparse import GROUPS

STORED = stored("ops/sparse/sparse")
CASES = [(title, name) for title, group in GROUPS.items() for name in group]


def test_every_case_is_stored() -> None:
    assert {title: list(names) for title, names in STORED.items()} == {
        title: list(group) for title, group in GROUPS.items()
    }


@pytest.mark.parametrize(("title", "name"), CASES)
def test_as_stored(title: str, name: str) -> None:
    got, want = GROUPS[title].run(rushlight, name), STORED[title][name]
    assert agree(want, got), f"\n{want}\n{got}"


if LIVE:

    @pytest.mark.parametrize("title", GROUPS)
    def test_as_pytorch(title: str) -> None:
        assert GROUPS[title].results(pytorch()) == STORED[title]
