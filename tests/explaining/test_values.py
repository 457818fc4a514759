"""Tensors in a few words."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from rushlight.explaining.values import nested, number, short, size_of

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("x", "text"),
    [(1.0, "1"), (0.1 + 0.2, "0.3"), (-1e-9, "-1e-09"), (123456.0, "1.235e+05"), (NAN, "nan"),
     (-INF, "-inf"), (True, "True"), (7, "7")],
)  # fmt: skip
def test_numbers(x: Any, text: str) -> None:
    assert number(x) == text


def test_nested_lists() -> None:
    assert nested([[1.0, 0.5], [NAN, 2 - 1j]]) == "[[1, 0.5], [nan, 2-1j]]"


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (None, "None"),
        (torch.tensor(2.5), "2.5"),
        (torch.tensor([1.0, 1.0]), "[1, 1]"),
        (torch.ones(3), "3, all 1"),
        (torch.zeros(0), "[]"),
        (torch.tensor([1, 2, 3]), "[1, 2, 3]"),
        (torch.arange(10), "10"),
        (torch.full((3, 3), 2.0), "3x3, norm 6"),
        (torch.full((8,), NAN), "8, norm nan, 8 NaN of 8"),
        (torch.tensor([INF, NAN, *[0.0] * 6]), "8, norm nan, 1 NaN, 1 infinite of 8"),
        (torch.full((8,), 3 + 4j), "8, norm 14.14"),
        (torch.ones(3, 4, device="meta"), "3x4, float32"),
        (torch.ones(2, 5).to_sparse(), "2x5, float32"),
    ],
)
def test_tensors(t: Any, text: str) -> None:
    assert short(t) == text


def test_integers_have_no_norm() -> None:
    assert size_of(torch.arange(3)) is None and size_of(torch.tensor([3.0, 4.0])) == 5.0
    assert size_of(torch.eye(2).to_sparse()) == pytest.approx(math.sqrt(2))
