"""`flex_attention` and its masks: as PyTorch's, and with derivatives, which PyTorch has on GPUs
alone."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    create_block_mask,
    flex_attention,
)
from tests.harness import plain_tests
from tests.nn.attention.cases_flex_attention import causal, close, exact

globals().update(plain_tests("nn/attention/flex_attention", exact, close))


def drawn(*shape: int) -> list[torch.Tensor]:
    torch.manual_seed(3)
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def test_derivatives_go_through_scores_and_what_they_capture() -> None:
    q, k, v = drawn(1, 2, 4, 3)
    bias = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)
    mask = create_block_mask(causal, None, None, 4, 4)

    def attend(q: object, k: object, v: object, bias: torch.Tensor) -> torch.Tensor:
        return flex_attention(
            q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h, i, j], block_mask=mask
        )

    inputs = (q, k, v, bias)
    assert torch.autograd.gradcheck(attend, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(attend, inputs)


def test_a_causal_mask_gives_what_scaled_dot_product_attention_gives() -> None:
    q, k, v = drawn(2, 2, 6, 4)
    mask = create_block_mask(causal, None, None, 6, 6)
    other = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    ours = flex_attention(q, k, v, block_mask=mask)
    assert torch.allclose(ours, other)
    for a, b in zip(
        torch.autograd.grad(ours.sum(), (q, k, v)), torch.autograd.grad(other.sum(), (q, k, v))
    ):
        assert torch.allclose(a, b)


def test_queries_that_see_nothing_get_zeros_and_no_gradient() -> None:
    q, k, v = drawn(1, 1, 3, 2)
    mask = create_block_mask(lambda b, h, i, j: i > 0, None, None, 3, 3)
    y = flex_attention(q, k, v, block_mask=mask)
    assert y[0, 0, 0].tolist() == [0, 0]
    (g,) = torch.autograd.grad(y.sum(), q)
    assert g[0, 0, 0].tolist() == [0, 0] and bool(g.isfinite().all())


def test_largest_scores_are_given() -> None:
    x = torch.tensor([[[[1.0, 0.0], [0.0, 2.0]]]])
    _, aux = flex_attention(x, x, x, scale=1.0, return_aux=AuxRequest(lse=True, max_scores=True))
    assert aux.max_scores.tolist() == [[[1.0, 4.0]]]
    assert torch.allclose(aux.lse, (x @ x.mT).logsumexp(-1))


def test_low_precision_is_computed_in_float32() -> None:
    q, k, v = (x.detach().bfloat16() for x in drawn(1, 1, 4, 4))
    y, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
    assert y.dtype is torch.bfloat16 and aux.lse.dtype is torch.float32


def test_return_lse_warns() -> None:
    q, k, v = drawn(1, 1, 2, 2)
    with pytest.warns(FutureWarning, match="^return_lse is deprecated"):
        flex_attention(q, k, v, return_lse=True)


def test_the_function_of_a_slice_is_none() -> None:
    mask = create_block_mask(causal, 2, 2, 4, 4)[0]
    assert isinstance(mask, BlockMask)
    q, k, v = drawn(1, 2, 4, 3)
    with pytest.raises(RuntimeError, match="^Cannot use mask_mod from a sliced BlockMask"):
        flex_attention(q, k, v, block_mask=mask)
