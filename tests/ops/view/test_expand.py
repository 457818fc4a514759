"""`expand`: strides, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            "x.expand(3, 4)",
            RuntimeError,
            r"expand\(torch.FloatTensor\{\[2, 3, 4\]\}, size=\[3, 4\]",
        ),
        ("x.expand(5, 3, 4)", RuntimeError, r"The expanded size of the tensor \(5\) must match"),
        ("x.expand(-1, 2, 3, 4)", RuntimeError, "isn't allowed in a leading, non-existing dim"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})


def test_expand() -> None:
    x = leaf(2, 1)
    y = x.expand(3, -1, 2)
    assert y.stride() == (0, 1, 0)
    assert grad_of(y, x) == [[1 + 2 + 5 + 6 + 9 + 10], [3 + 4 + 7 + 8 + 11 + 12]]
    assert torch.tensor(5.0).expand(2, 0).shape == (2, 0)
    a, b = torch.broadcast_tensors(count(2, 1), count(3))
    assert a.tolist() == [[0, 0, 0], [1, 1, 1]] and b.tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        count(2, 1).expand(2, 3).add_(1)
