"""Values as data: small ones in full, large ones as a heat map and statistics."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rushlight as torch
from rushlight.viz.values import SIDE, describe


def told(value: Any) -> dict[str, Any]:
    found = describe(value)
    assert found is not None
    json.dumps(found, allow_nan=False)
    return found


def test_small_tensors_are_shown_in_full() -> None:
    found = told(torch.tensor([[1.0, -0.5], [0.0, 123456.0]]))
    assert found["values"] == [["1", "-0.5"], ["0", "1.235e+05"]]
    assert found["shape"] == [2, 2] and found["dtype"] == "float32"
    assert found["stats"]["zeros"] == "1 of 4"


def test_large_tensors_are_a_heat_map_with_statistics() -> None:
    found = told(torch.arange(10000.0).reshape(100, 100) - 5000)
    assert "values" not in found
    assert len(found["heat"]) == len(found["heat"][0]) == SIDE
    assert found["heat"][0][0] == -100
    assert found["stats"]["min"] == "-5000" and found["stats"]["mean"] == "-0.5"


def test_of_very_large_tensors_a_part_is_looked_at() -> None:
    found = told(torch.zeros(1500, 1500))
    assert found["note"] == "statistics of one in 3 of 2250000 elements"
    assert found["stats"]["zeros"] == "750000 of 750000"
    assert "heat" in found and "values" not in found


@pytest.mark.parametrize("shape", [(1000,), (65,), (3, 5, 7), (2, 1, 1, 50), (1, 4000), (4000, 1)])
def test_heat_maps_of_every_shape(shape: tuple[int, ...]) -> None:
    heat = told(torch.ones(shape))["heat"]
    assert 1 <= len(heat) <= SIDE and all(len(row) == len(heat[0]) for row in heat)
    assert 1 <= len(heat[0]) <= max(SIDE, 1)


def test_numbers_that_are_not_finite() -> None:
    found = told(torch.tensor([float("nan"), float("inf"), -float("inf"), 2.0]))
    assert found["values"] == ["nan", "inf", "-inf", "2"]
    assert found["heat"] == [[None, 101, -101, 100]]
    assert found["stats"]["NaN"] == "1 of 4" and found["stats"]["inf"] == "2 of 4"
    assert found["stats"]["max"] == "2"
    assert "min" not in told(torch.tensor([float("nan")]))["stats"]


def test_other_kinds() -> None:
    assert told(torch.tensor(3.0))["values"] == "3"
    assert told(torch.tensor([True, False]))["values"] == ["True", "False"]
    assert told(torch.tensor([1, -2]))["values"] == ["1", "-2"]
    assert told(torch.tensor([1 + 2j, -1j]))["values"] == ["1+2j", "-0-1j"]
    assert told(torch.ones(0, 3))["note"] == "empty"
    assert told(torch.ones(2, dtype=torch.bfloat16))["values"] == ["1", "1"]
    assert told(torch.ones(2, device="meta"))["note"] == "a meta tensor has no numbers"
    assert told(torch.eye(2).to_sparse())["layout"] == "sparse_coo"
    assert told(torch.eye(2).to_sparse_csr())["values"] == [["1", "0"], ["0", "1"]]
    assert told(torch.tensor([1j]).conj())["values"] == ["0-1j"]
    assert told(2.5) == {"number": "2.5"} and describe(None) is None
