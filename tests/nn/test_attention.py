"""Attention and the Transformer give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from rushlight.arrays import attention as words
from rushlight.nn.functional import scaled_dot_product_attention
from tests.harness import plain_tests, stored
from tests.nn.cases_attention import close, curves, exact

globals().update(plain_tests("nn/attention", exact, close, curves))


@pytest.mark.parametrize("name", sorted(curves))
def test_curves_follow_what_is_stored(name: str) -> None:
    got = curves.run(rushlight, name)
    assert len(got) == 50 and got[-1] < got[0]
    assert got == pytest.approx(stored("nn/attention")[name], rel=1e-4)


# --- blocks ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 7, 40, 100])
@pytest.mark.parametrize("masked", [False, True])
def test_blocks_change_nothing(monkeypatch: Any, size: int, masked: bool) -> None:
    """Cut into blocks of any size, attention and its gradients are the same."""

    def run() -> list[Any]:
        rushlight.manual_seed(0)
        xs = [rushlight.randn(2, 3, 5, 4, dtype=rushlight.float64) for _ in range(3)]
        for x in xs:
            x.requires_grad_()
        mask = rushlight.randn(2, 1, 5, 5, dtype=rushlight.float64) if masked else None
        y = scaled_dot_product_attention(*xs, attn_mask=mask, is_causal=not masked)
        return [y, *rushlight.autograd.grad((y * y).sum(), xs)]

    whole = run()
    monkeypatch.setattr(words, "_BLOCK", size)
    for a, b in zip(run(), whole, strict=True):
        rushlight.testing.assert_close(a, b)


def test_no_weights_are_kept_for_backward() -> None:
    """What the fused op saves grows with the length of the sequence, not with its square."""
    x = rushlight.randn(1, 1, 64, 4, requires_grad=True)
    node = scaled_dot_product_attention(x, x, x).grad_fn
    sizes = [v.size for v in node._kept_values if v is not None]
    assert max(sizes) == 64 * 4


def test_second_derivatives_which_pytorch_lacks() -> None:
    x = rushlight.randn(1, 1, 3, 2, dtype=rushlight.float64, requires_grad=True)
    seen = rushlight.ones(3, 3, dtype=rushlight.bool).tril()
    for more in ({}, {"is_causal": True}, {"attn_mask": seen}):

        def attend(x: Any, more: dict[str, Any] = more) -> Any:
            return scaled_dot_product_attention(x, x * 2, x + 1, **more)

        assert rushlight.autograd.gradgradcheck(attend, (x,))
