"""`select` and `narrow`: errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.narrow(0, 1, 2)", RuntimeError, r"start \(1\) \+ length \(2\) exceeds dimension size"),
        ("x.select(0, 2)", IndexError, r"select\(\): index 2 out of range for tensor of size"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})
