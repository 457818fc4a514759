"""Questions about elements: `isnan`, `isinf`, `isreal` and their like."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import INF, NAN

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_questions_about_elements() -> None:
    x = torch.tensor([1.0, INF, -INF, NAN])
    assert torch.isnan(x).tolist() == [False, False, False, True]
    assert torch.isinf(x).tolist() == [False, True, True, False]
    assert x.isfinite().tolist() == [True, False, False, False]
    assert torch.isposinf(x).tolist() == [False, True, False, False]
    assert torch.isneginf(x).tolist() == [False, False, True, False]
    assert torch.isnan(torch.tensor([1, 2])).tolist() == [False, False]
    assert torch.isreal(torch.tensor([1 + 0j, 1j])).tolist() == [True, False]
    assert torch.is_nonzero(torch.tensor([2]))
    assert torch.isin(torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 4])).tolist() == [
        [False, True], [False, True],
    ]  # fmt: skip
    assert torch.isin(torch.tensor([1]), torch.tensor([])).tolist() == [False]
    assert torch.result_type(torch.tensor(1.0), torch.tensor([1])) is torch.float32


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: torch.is_nonzero(x), RuntimeError, "Boolean value of Tensor with more than"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]))
