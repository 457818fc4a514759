"""`qr`: derivatives, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from tests.ops.linalg.helpers import matrix


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.linalg.qr(torch.eye(2), mode="x"), "qr received unrecognized mode 'x' but"),
],
)  # fmt: skip
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_qr_of_the_upper_triangle_alone() -> None:
    x = matrix([3.0], [4.0], grad=True)
    q, r = torch.linalg.qr(x, mode="r")
    assert q.shape == (0,) and abs(r.item()) == pytest.approx(5)
    with pytest.raises(RuntimeError, match="^The derivative of linalg.qr depends on Q"):
        r.sum().backward()
    with pytest.raises(RuntimeError, match="^The QR decomposition is not differentiable when"):
        torch.linalg.qr(x, mode="complete").R.sum().backward()
