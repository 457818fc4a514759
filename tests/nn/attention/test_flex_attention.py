"""Attention whose scores and mask are functions of the places; expected numbers are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def first_only(b: Any, h: Any, q: Any, k: Any) -> Any:
    return b == 0


def inputs() -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    return torch.randn(2, 4, 6, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 8)


def test_scores_mask_and_shared_heads() -> None:
    q, k, v = inputs()
    mask = create_block_mask(
        lambda b, h, q, k: (q >= k) | (b == 1), 2, None, 6, 7, device="cpu", BLOCK_SIZE=4
    )
    out, lse = flex_attention(
        q, k, v, lambda s, b, h, i, j: s + (i - j) * 0.1 * (h + 1), mask, enable_gqa=True,
        return_lse=True,
    )  # fmt: skip
    assert out.sum().item() == pytest.approx(-14.6580, abs=1e-3)
    assert lse.sum().item() == pytest.approx(96.7603, abs=1e-3)
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1]]], [[[1, 1], [1, 1]]]]
    assert mask.shape == (2, 1, 6, 7) and mask.seq_lengths == (6, 7) and mask.BLOCK_SIZE == (4, 4)
    assert mask.sparsity() == 12.5


def test_it_is_plain_attention_where_nothing_is_changed() -> None:
    q, k, v = inputs()
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    q.requires_grad_()
    plain = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(flex_attention(q, k, v), plain)
    wanted = torch.autograd.grad(plain.sin().sum(), q)
    found = torch.autograd.grad(flex_attention(q, k, v).sin().sum(), q)
    torch.testing.assert_close(found, wanted)


def test_who_sees_nothing_gives_zeros() -> None:
    q, k, v = inputs()
    mask = create_block_mask(lambda b, h, q, k: q > 100, None, None, 6, 7)
    out, aux = flex_attention(
        q, k, v, block_mask=mask, enable_gqa=True, return_aux=AuxRequest(lse=True)
    )
    assert not out.any() and (aux.lse == -torch.inf).all() and aux.max_scores is None


def test_masks() -> None:
    assert create_mask(causal, 1, 1, 2, 2).tolist() == [[[[True, False], [True, True]]]]
    assert create_mask(and_masks(causal, first_only), 2, 1, 2, 2).sum() == 3
    assert create_mask(or_masks(causal, first_only), 2, 1, 2, 2).sum() == 7


def test_heads_must_fit() -> None:
    with pytest.raises(ValueError, match="Try setting enable_gqa=True for GQA"):
        flex_attention(*inputs())
