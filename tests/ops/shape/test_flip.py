"""`flip`, `roll`, `rot90`: values, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.shape.pad import pad
from tests.ops.shape.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.flip(0, 0)", RuntimeError, "dim 0 appears multiple times in the list of dims"),
        ("x[0].fliplr()", RuntimeError, "Input must be >= 2-d."),
        ("x.roll((1, 2))", RuntimeError, "shifts and dimensions must align. shifts: 2, dims:0"),
        ("x[0].rot90()", RuntimeError, "expected total dims >= 2, but got total dims = 1"),
        ("x.rot90(1, (0, 0))", RuntimeError, "expected rotation dims to be different"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3), "torch": torch, "pad": pad})


def test_flip_roll_and_rot90() -> None:
    x = leaf(2, 3)
    assert x.flip(0, 1).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert grad_of(x.flip(-1), x) == [[3, 2, 1], [6, 5, 4]]
    assert x.roll(1).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert x.roll((1, 1), (0, 1)).tolist() == [[5, 3, 4], [2, 0, 1]]
    assert grad_of(x.roll(-1, 1), x) == [[3, 1, 2], [6, 4, 5]]
    assert x.rot90().tolist() == [[2, 5], [1, 4], [0, 3]]
    assert grad_of(x.rot90(), x) == [[5, 3, 1], [6, 4, 2]]
    assert x.rot90(-1).tolist() == [[3, 0], [4, 1], [5, 2]]
    assert torch.fliplr(count(1, 2)).tolist() == [[1, 0]]
    assert torch.flipud(count(2)).tolist() == [1, 0]
