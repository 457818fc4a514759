"""`DTensor` and `DeviceMesh`: as PyTorch's, on the same programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rushlight.distributed.tensor import Partial, Replicate, Shard
from tests.distributed.library import ranks
from tests.distributed.two_libraries import assert_close, needs_torch

PROGRAM = Path(__file__).parent / "program_dtensor.py"


@pytest.fixture(scope="module")
def two() -> list[Any]:
    return ranks("rushlight", PROGRAM, 2)


def test_parts_and_the_whole(two: list[Any]) -> None:
    whole = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
    assert [rank["rows"][6] for rank in two] == [whole[:3], whole[3:]]
    assert [rank["columns"][6] for rank in two] == [
        [[a] for a, _ in whole],
        [[b] for _, b in whole],
    ]
    assert all(rank["rows"][7] == rank["columns"][7] == whole for rank in two)
    assert [rank["short"][6] for rank in two] == [[0.0], []]  # one element for two processes


def test_what_nobody_has_alone(two: list[Any]) -> None:
    assert two[0]["partial"][7] == [[3.0, 3.0]] * 5
    assert [len(rank["partial to rows"][6]) for rank in two] == [3, 2]
    assert two[1]["sum"] == 45.0 and two[1]["mean"] == 4.5
    assert two[0]["norm inf"] == 9.0


@needs_torch
@pytest.mark.parametrize("n", [2, 4])
def test_as_pytorch_does(n: int, two: list[Any]) -> None:
    ours = two if n == 2 else ranks("rushlight", PROGRAM, n)
    assert_close(ours, ranks("torch", PROGRAM, n), 1e-6)


def test_placements() -> None:
    assert Shard(0) == Shard(0) != Shard(1)
    assert hash(Shard(1)) == hash(Shard(1))
    assert [repr(p) for p in (Shard(1), Replicate(), Partial())] == [
        "Shard(dim=1)", "Replicate()", "Partial(sum)",
    ]  # fmt: skip
    assert Partial("avg").is_partial("avg") and not Partial().is_partial("avg")
    parts = [Shard.local_shard_size_and_offset(7, 3, rank) for rank in range(3)]
    assert parts == [(3, 0), (3, 3), (1, 6)]
