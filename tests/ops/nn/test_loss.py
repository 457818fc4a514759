"""What all losses have in common: sizes, dtypes, old arguments."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from tests.ops.nn.loss_helpers import F, double

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_empty_and_scalar() -> None:
    empty = torch.ones(0)
    assert math.isnan(F.mse_loss(empty, empty).item())
    assert F.mse_loss(empty, empty, reduction="sum").item() == 0.0
    assert F.mse_loss(torch.tensor(3.0), torch.tensor(1.0)).item() == 4.0


def test_dtypes() -> None:
    assert F.mse_loss(torch.ones(2), double(1.0, 1.0)).dtype is torch.double
    low = F.mse_loss(torch.ones(1000, dtype=torch.float16), torch.zeros(1000, dtype=torch.float16))
    assert low.dtype is torch.float16 and low.item() == 1.0
    with pytest.raises(NotImplementedError, match="\"mse_cpu\" not implemented for 'Long'"):
        F.mse_loss(torch.tensor([1]), torch.tensor([1]))


# --- how they reduce ------------------------------------------------------------------------------
def test_old_arguments_warn() -> None:
    x, t = double(1.0, 3.0), double(0.0, 0.0)
    old: list[tuple[dict[str, bool], str]] = [
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True, "reduce": True}, "mean"),
    ]
    for arguments, name in old:
        with pytest.warns(UserWarning, match=f"please use reduction='{name}' instead"):
            y = F.mse_loss(x, t, **arguments)
        assert y.tolist() == F.mse_loss(x, t, reduction=name).tolist()
    with pytest.raises(ValueError, match="foo is not a valid value for reduction"):
        F.mse_loss(x, t, reduction="foo")


def test_sizes_that_differ_warn() -> None:
    with pytest.warns(
        UserWarning, match=r"Using a target size \(torch.Size\(\[2\]\)\) that is diff"
    ):
        y = F.mse_loss(torch.ones(3, 2), torch.zeros(2))
    assert y.item() == 1.0
