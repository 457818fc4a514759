"""`pad`: every mode, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.shape.pad import pad
from tests.ops.shape.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("pad(x, (1,))", RuntimeError, "Padding length must be divisible by 2"),
        ("pad(x, (1, 1), 'bad')", NotImplementedError, "Unrecognised padding mode bad"),
        ("pad(x, (3, 0), 'reflect')", RuntimeError, "Padding size should be less than the corre"),
        ("pad(x, (4, 0), 'circular')", RuntimeError, "Padding value causes wrapping around more"),
        ("pad(x[0], (1, 1), 'reflect')", NotImplementedError, "is not supported for 1D input"),
        ("pad(x, (1, 1), 'reflect', 1.0)", RuntimeError, "doesn't take in value argument"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3), "torch": torch, "pad": pad})


def test_constant_padding() -> None:
    x = leaf(2, 2)
    y = pad(x, (1, 0, 0, 1), value=9.0)
    assert y.tolist() == [[9, 0, 1], [9, 2, 3], [9, 9, 9]]
    assert grad_of(y, x) == [[2, 3], [5, 6]]
    assert pad(x, (-1, 1)).tolist() == [[1, 0], [3, 0]]
    assert grad_of(pad(x, (-1, 1)), x) == [[0, 1], [0, 3]]
    assert pad(torch.tensor([1, 2]), (0, 1)).dtype is torch.int64
    assert pad(torch.zeros(2, 0), (1, 1), value=2).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    ("mode", "values", "grad"),
    [
        ("reflect", [2, 1, 0, 1, 2, 1], [3, 2 + 4 + 6, 1 + 5]),
        ("replicate", [0, 0, 0, 1, 2, 2], [1 + 2 + 3, 4, 5 + 6]),
        ("circular", [1, 2, 0, 1, 2, 0], [3 + 6, 1 + 4, 2 + 5]),
    ],
)
def test_padding_by_itself(mode: str, values: list[float], grad: list[float]) -> None:
    x = leaf(1, 3)
    y = pad(x, (2, 1), mode)
    assert y.tolist() == [values]
    assert grad_of(y, x) == [grad]


def test_padding_two_dimensions() -> None:
    y = pad(count(1, 2, 2), (1, 0, 0, 1), "reflect")
    assert y.tolist() == [[[1, 0, 1], [3, 2, 3], [1, 0, 1]]]
    y = pad(count(1, 2, 2), (1, 0, 0, 1), "replicate")
    assert y.tolist() == [[[0, 0, 1], [2, 2, 3], [2, 2, 3]]]
