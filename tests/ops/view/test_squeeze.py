"""`squeeze` and `unsqueeze`: nodes, strides of size one, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.unsqueeze(4)", IndexError, r"expected to be in range of \[-4, 3\], but got 4"),
        ("x.squeeze((0, 0))", RuntimeError, "dim 0 appears multiple times in the list of dims"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})


def test_squeeze_has_three_nodes() -> None:
    x = leaf(1, 2, 1)
    names = [t.grad_fn.name() for t in (x.squeeze(), x.squeeze(0), x.squeeze((0, 2)))]
    assert names == ["SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2"]
    assert x.squeeze(1).shape == (1, 2, 1)
    assert x.squeeze((0, 1)).shape == (2, 1)
    assert torch.tensor(1.0).squeeze(0).shape == ()
    assert grad_of(x.squeeze(), x) == [[[1], [2]]]


def test_strides_of_size_one() -> None:
    x = count(2, 3, 4)
    assert x.unsqueeze(1).stride() == (12, 12, 4, 1)
    assert x.unsqueeze(-1).stride() == (12, 4, 1, 1)
    assert torch.zeros(2, 1, 3).stride() == (3, 3, 1)
    assert torch.zeros(3, 0).stride() == (1, 1)
    assert torch.zeros(0, 3).stride() == (3, 1)
    assert x[0:1].stride() == (12, 4, 1)
