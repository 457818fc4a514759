"""`renorm`."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.linalg.helpers import matrix, same


def test_renorm() -> None:
    x = matrix([3.0, 4.0], [0.3, 0.4], grad=True)
    y = torch.renorm(x, 2, 0, 1)
    same(y, [[0.6, 0.8], [0.3, 0.4]], 1e-6)
    (g,) = torch.autograd.grad(y[:, 0].sum(), x)
    same(g, [[0.128, -0.096], [1.0, 0.0]], 1e-6)
    z = x.detach().clone()
    assert z.renorm_(2, 0, 1) is z
    same(z, y)
    same(torch.renorm(x, 1, 1, 100), x)
    with pytest.raises(RuntimeError, match="^renorm: non-positive-norm not supported"):
        torch.renorm(x, 0, 0, 1)
    with pytest.raises(RuntimeError, match="^renorm: input needs at least 2 dimensions, got 1"):
        torch.renorm(x[0], 2, 0, 1)
