"""`as_strided`, `narrow`, `diagonal`, `unfold`: regions of memory, writes through them, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.unfold(0, 3, 1)", RuntimeError, "maximum size for tensor at dimension 0 is 2 but"),
        ("x.diagonal(0, 1, 1)", RuntimeError, "diagonal dimensions cannot be identical 1, 1"),
        ("x.as_strided((9,), (9,))", RuntimeError, r"setStorage: sizes \[9\], strides \[9\], sto"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})


def test_narrow_select_diagonal_and_unfold() -> None:
    x = leaf(3, 4)
    assert grad_of(x.narrow(1, -3, 2), x) == [[0, 1, 2, 0], [0, 3, 4, 0], [0, 5, 6, 0]]
    assert grad_of(x.select(0, -1), x) == [[0] * 4, [0] * 4, [1, 2, 3, 4]]
    assert grad_of(x.diagonal(1), x) == [[0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 3]]
    assert grad_of(x.diagonal(9), x) == [[0] * 4] * 3
    v = leaf(4)
    assert v.unfold(0, 2, 1).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert grad_of(v.unfold(0, 2, 1), v) == [1, 2 + 3, 4 + 5, 6]
    assert grad_of(v.unfold(0, 3, 1), v) == [1, 2 + 4, 3 + 5, 6]
    assert torch.tensor(7.0).unfold(0, 1, 1).tolist() == [7]


def test_as_strided() -> None:
    x = leaf(6)
    y = x.as_strided((2, 2), (1, 2), 1)
    assert y.tolist() == [[1, 3], [2, 4]]
    assert y.storage_offset() == 1
    assert grad_of(y, x) == [0, 1, 3, 2, 4, 0]
    assert grad_of(x.as_strided((3,), (0,)), x) == [6, 0, 0, 0, 0, 0]
    z = count(2, 3).t()
    z.as_strided((2,), (1,), 4).zero_()
    assert z.tolist() == [[0, 3], [1, 0], [2, 0]]


def test_write_through_as_strided() -> None:
    x = leaf(2, 2)
    y = x * 1
    y.as_strided((2,), (2,), 1).mul_(3)
    assert y.tolist() == [[0, 3], [2, 9]]
    assert grad_of(y, x) == [[1, 6], [3, 12]]
