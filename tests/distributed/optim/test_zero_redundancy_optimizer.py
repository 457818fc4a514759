"""`ZeroRedundancyOptimizer`: the result of one optimiser, the state in parts, as PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.distributed.library import ranks
from tests.distributed.two_libraries import assert_close, needs_torch

PROGRAM = Path(__file__).parent / "program_zero.py"


@pytest.fixture(scope="module")
def two() -> list[Any]:
    return ranks("rushlight", PROGRAM, 2)


def test_training_equals_that_of_one_optimiser(two: list[Any]) -> None:
    for rank in two:
        assert_close(rank["views False"], rank["plain"], 1e-14)
        assert_close(rank["views True"], rank["plain"], 1e-14)
        assert_close(rank["gone on"], rank["plain gone on"], 1e-14)


def test_each_process_keeps_the_state_of_its_parameters(two: list[Any]) -> None:
    # of 35, 7, 42, 6, 18 and 3 elements: the largest first, to who has least
    assert [rank["mine"] for rank in two] == [[1, 2, 3], [0, 4, 5]]
    assert "state" not in two[0] and sorted(two[1]["state"]) == list("012345")
    assert "consolidate_state_dict(to=0)" in two[0]["not yet"]


def test_all_processes_have_the_same(two: list[Any]) -> None:
    for name in ("views False", "gone on", "uneven"):
        assert two[0][name] == two[1][name]


@needs_torch
def test_as_pytorch_does(two: list[Any]) -> None:
    ours = [{k: v for k, v in rank.items() if k != "uneven"} for rank in two]
    assert_close(ours, ranks("torch", PROGRAM, 2), 1e-12)
