"""`fully_shard` and `FullyShardedDataParallel`: results of whole tensors, memory of parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.distributed.library import ranks
from tests.distributed.two_libraries import assert_close, needs_torch

PROGRAM = Path(__file__).parent / "program_fsdp.py"


@pytest.fixture(scope="module")
def two() -> list[Any]:
    return ranks("rushlight", PROGRAM, 2)


def test_training_equals_that_of_whole_tensors(two: list[Any]) -> None:
    for rank in two:
        for name, (parts, whole) in rank["pairs"].items():
            assert_close(parts, whole, 1e-13, name)
    assert two[0]["pairs"] == two[1]["pairs"]


def test_each_process_has_some_rows(two: list[Any]) -> None:
    assert two[0]["local"][0] == [4, 5] and two[1]["local"][0] == [3, 5]
    assert two[0]["class"] == ["FSDPNet", True, "DTensor"]


def test_gradients(two: list[Any]) -> None:
    assert two[0]["unused"] and two[0]["put off"] and two[0]["frozen"][0]
    assert two[0]["grad"] == ["DTensor", [3, 7]]
    assert two[0]["dtypes"] == ["torch.float64"] * 3


def test_memory_is_given_back(two: list[Any]) -> None:
    # nothing is gathered between forward and backward: a parameter has one element, of its shape
    assert two[0]["memory"] == [0, 10, 0, 10]
    assert two[0]["written True"] and two[0]["written False"]


def test_the_module_around_a_module(two: list[Any]) -> None:
    first, second = (rank["wrapped"] for rank in two)
    assert_close(*first["pair"], 1e-13)
    assert first["rank 0 only"] == 10 and second["rank 0 only"] == 0
    assert first["parts"] == [4, 5] and second["parts"] == [3, 5]
    assert first["loaded"] == "<All keys matched successfully>" and first["equal"]
    assert first["summoned"] == [7, 5] and first["written back"] == [2.0] * 5
    assert first["names"][0] == "first.weight"


@needs_torch
def test_as_pytorch_does(two: list[Any]) -> None:
    alone = ("memory", "wrapped", "written")
    ours = [{k: v for k, v in rank.items() if not k.startswith(alone)} for rank in two]
    assert_close(ours, ranks("torch", PROGRAM, 2), 1e-9)
