"""Norms, condition and powers of matrices: values, derivatives, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.linalg.helpers import drawn, matrix, same


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.linalg.matrix_norm(torch.eye(2), 3),
         "linalg.matrix_norm: Order 3 not supported."),
        (lambda: torch.linalg.cond(torch.eye(2), 3), "linalg.cond got an invalid norm type: 3"),
        (lambda: torch.norm(torch.ones(2, 2, 2), "nuc"),
         "linalg.matrix_norm: dim must be a 2-tuple. Got 0 1 2"),
],
)  # fmt: skip
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_matrix_norms() -> None:
    x = matrix([0.0, -2.0], [3.0, 1.0])
    for ord, expected in {
        "fro": math.sqrt(14), 1: 3, -1: 3, math.inf: 4, -math.inf: 2,
    }.items():  # fmt: skip
        assert torch.linalg.matrix_norm(x, ord).item() == pytest.approx(expected)
        assert torch.linalg.norm(x, ord).item() == pytest.approx(expected)
    s = torch.linalg.svdvals(x)
    for ord, expected in {"nuc": s.sum(), 2: s[0], -2: s[1]}.items():
        same(torch.linalg.matrix_norm(x, ord), expected)
    same(torch.norm(x, "nuc"), s.sum())
    same(x.norm("nuc", dim=(0, 1), keepdim=True), s.sum()[None, None])
    same(torch.nuclear_norm(x), s.sum())
    batch = drawn(2, 3, 4)
    same(torch.linalg.matrix_norm(batch, 1, dim=(0, 2)), batch.abs().sum(0).amax(-1))
    kept = torch.linalg.matrix_norm(batch, 2, dim=(0, 2), keepdim=True)
    assert kept.shape == (1, 3, 1)
    assert torch.linalg.matrix_norm(torch.ones(0, 2), 1).item() == 0
    assert torch.linalg.norm(batch).item() == pytest.approx(float(np.linalg.norm(batch.numpy())))


def test_condition() -> None:
    x = matrix([4.0, 0.0], [0.0, 2.0])
    assert torch.linalg.cond(x).item() == pytest.approx(2)
    assert torch.linalg.cond(x, -2).item() == pytest.approx(0.5)
    assert torch.linalg.cond(x, 1).item() == pytest.approx(2)
    assert torch.linalg.cond(x, "fro").item() == pytest.approx(math.sqrt(20) * math.sqrt(5) / 4)
    assert torch.linalg.cond(x * 0, 1).item() == math.inf
    assert math.isnan(torch.linalg.cond(x * 0).item())


def test_powers() -> None:
    x = matrix([1.0, 1.0], [0.0, 1.0], grad=True)
    for n in (-3, -1, 0, 1, 2, 3, 7):
        same(torch.matrix_power(x, n), [[1, n], [0, 1]])
        same(x.matrix_power(n), torch.linalg.matrix_power(x, n))
    (g,) = torch.autograd.grad(torch.matrix_power(x, 2).sum(), x)
    same(g, [[3, 2], [4, 3]])
    with pytest.raises(TypeError, match="argument 'n'"):
        torch.matrix_power(x, 2.0)
