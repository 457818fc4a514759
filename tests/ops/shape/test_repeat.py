"""`repeat` and `repeat_interleave`: values, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.shape.pad import pad
from tests.ops.shape.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.repeat(2)", RuntimeError, "Number of dimensions of repeat dims can not be smaller"),
        ("x.repeat(-1, 1)", RuntimeError, "Trying to create tensor with negative dimension -2"),
        ("x.repeat_interleave(-1)", RuntimeError, "Repeats must be non-negative"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3), "torch": torch, "pad": pad})


def test_repeat() -> None:
    x = leaf(2)
    y = x.repeat(2, 2)
    assert y.tolist() == [[0, 1, 0, 1]] * 2
    assert grad_of(y, x) == [1 + 3 + 5 + 7, 2 + 4 + 6 + 8]
    assert x.repeat(0).shape == (0,)
    assert torch.tensor(3).repeat(2).tolist() == [3, 3]
    assert torch.tile(count(2, 2), (2,)).tolist() == [[0, 1, 0, 1], [2, 3, 2, 3]]


def test_repeat_interleave() -> None:
    x = leaf(2)
    assert x.repeat_interleave(2).tolist() == [0, 0, 1, 1]
    assert grad_of(x.repeat_interleave(2), x) == [3, 7]
    assert count(2, 2).repeat_interleave(2, 1).tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]
    assert torch.repeat_interleave(torch.tensor([2, 0, 1])).tolist() == [0, 0, 2]
