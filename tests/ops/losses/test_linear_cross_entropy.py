"""`linear_cross_entropy`: low precision by pieces, and errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.nn.functional import linear_cross_entropy


def test_by_pieces_low_precision_is_rounded_once() -> None:
    x = torch.tensor([-1.03125, 0.1572265625, -1.28125], dtype=torch.bfloat16, requires_grad=True)
    w = (torch.arange(12.0).reshape(4, 3) * 0.7).sin().to(torch.bfloat16)
    bias = torch.tensor([0.3, -0.6, 0.2, 1.1], dtype=torch.bfloat16)
    counts = torch.tensor([0.5, 0.7, 0.2, 0.9], dtype=torch.bfloat16)

    def loss(options: Any) -> Any:
        return linear_cross_entropy(
            x, w, torch.tensor(2), linear_bias=bias, weight=counts, reduction="none",
            options=options,
        )  # fmt: skip

    assert loss(None).item() == 0.052001953125
    pieces = loss("by pieces")
    assert pieces.item() == 0.05224609375
    assert pieces.dtype is torch.bfloat16
    (g,) = torch.autograd.grad(pieces, x)
    assert g.dtype is torch.bfloat16


ONES = torch.ones
WRONG = {
    "expected input with dimensionality 1 or 2, got 3": (ONES(2, 2, 3), ONES(2, 3), {}),
    "expected linear_weight with dimensionality at least 2, got 1": (ONES(2, 3), ONES(3), {}),
    "expected equal input and linear_weight last dimensions (in_features), got 3 and 4, "
    "respectively": (ONES(2, 3), ONES(2, 4), {}),
    "K-dimensional loss defined by linear_weight shape (2, 4, 3) requires batched input, (N, 3), "
    "got unbatched input with shape (3,)": (ONES(3), ONES(2, 4, 3), {}),
    "expected linear_bias shape (2,), got (1,)": (
        ONES(2, 3),
        ONES(2, 3),
        {"linear_bias": ONES(1)},
    ),
    "ignore_index cannot be specified when target contains probabilities": (
        ONES(2, 3),
        ONES(2, 3),
        {"ignore_index": 0},
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_does_not_fit_is_refused(text: str) -> None:
    x, w, options = WRONG[text]
    with pytest.raises(RuntimeError) as caught:
        linear_cross_entropy(x, w, ONES(2, 2), **options)
    assert str(caught.value) == text
