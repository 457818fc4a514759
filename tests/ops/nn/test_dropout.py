"""`dropout`: what is kept, seeds, errors."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.nn.helpers import F

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_dropout() -> None:
    x = torch.ones(1000, requires_grad=True)
    assert F.dropout(x, training=False) is x and F.dropout(x, 0.0) is x
    y = F.dropout(x, 0.25)
    assert sorted(set(y.tolist())) == pytest.approx([0.0, 4 / 3])
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert F.dropout(x, 1.0).sum().item() == 0.0
    assert F.dropout(torch.ones(0)).shape == (0,)
    z = torch.ones(8)
    assert F.dropout(z, 0.5, inplace=True) is z and set(z.tolist()) <= {0.0, 2.0}
    rows = F.dropout1d(torch.ones(4, 50, 3), 0.5)
    assert {tuple(r) for r in rows.reshape(-1, 3).tolist()} == {(0.0,) * 3, (2.0,) * 3}
    with pytest.raises(
        ValueError, match="dropout probability has to be between 0 and 1, but got 2"
    ):
        F.dropout(x, 2)


def test_one_seed_one_mask() -> None:
    torch.manual_seed(7)
    first = F.dropout(torch.ones(50))
    torch.manual_seed(7)
    assert F.dropout(torch.ones(50)).tolist() == first.tolist()
