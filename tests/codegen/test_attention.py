"""Attention in C: against the formula, for shapes that fill no vector, layouts and hidden keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight.arrays import attention, kernels

needs_kernels = pytest.mark.skipif(not kernels.table, reason="the package is not compiled")
pytestmark = [needs_kernels, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

# leading axes, queries, keys, width of keys, width of values
SHAPES = [
    ((2, 3), 64, 64, 32, 32), ((3,), 1, 1, 16, 16), ((1, 2), 70, 70, 16, 48), ((2,), 5, 37, 32, 16),
    ((), 130, 20, 16, 16), ((2,), 33, 300, 16, 16),
]  # fmt: skip
ROOM = 2e-5, 1e-13  # that rounding takes, in float and in double


def draw(shape: tuple[int, ...], dtype: Any, seed: int, apart: bool = False) -> Any:
    """Numbers; `apart`, with other numbers between the rows, as the parts of one product have."""
    rng = np.random.default_rng(seed)
    if not apart:
        return rng.standard_normal(shape).astype(dtype)
    return rng.standard_normal((*shape[:-1], 3 * shape[-1])).astype(dtype)[..., : shape[-1]]


def formula(q: Any, k: Any, v: Any, bias: Any, scale: float, causal: bool) -> Any:
    """The result, the sums and the weights, in double."""
    s = q.astype(float) @ k.astype(float).swapaxes(-1, -2) * scale
    if bias is not None:
        s = s + bias
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    return (e / total) @ v.astype(float), np.log(total) + top, e / total


def gradients(q: Any, k: Any, v: Any, p: Any, g: Any, gs: Any, scale: float) -> Any:
    dp = g.astype(float) @ v.astype(float).swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True) + gs) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g


def compare(found: Any, wanted: Any, dtype: Any) -> None:
    room = ROOM[dtype == np.float64]
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == dtype and a.shape == b.shape
        assert np.abs(a - b).max() <= room * max(np.abs(b).max(), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lead, rows, keys, d, e", SHAPES)
@pytest.mark.parametrize("scale", [0.3, -0.5])
def test_heads(
    lead: tuple[int, ...], rows: int, keys: int, d: int, e: int, causal: bool, dtype: Any,
    scale: float,
) -> None:  # fmt: skip
    q, k = draw((*lead, rows, d), dtype, 0, True), draw((*lead, keys, d), dtype, 1, True)
    v, g = draw((*lead, keys, e), dtype, 2), draw((*lead, rows, e), dtype, 3, True)
    gs = draw((*lead, rows, 1), dtype, 4)
    out, sums = np.empty((*lead, rows, e), dtype), np.empty((*lead, rows, 1), dtype)
    assert kernels.attention_forward(q, k, v, out, sums, scale, causal)
    y, logs, p = formula(q, k, v, None, scale, causal)
    compare((out, sums), (y, logs), dtype)
    gq, gk, gv = np.empty_like(q), np.full_like(k, np.nan), np.full_like(v, np.nan)
    assert kernels.attention_backward(q, k, v, g, gq, gk, gv, sums, gs, scale, causal)
    compare((gq, gk, gv), gradients(q, k, v, p, g, gs, scale), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_rows(dtype: Any, causal: bool, masked: bool) -> None:
    """What is no head for C (a width that fills no vector, a mask) goes row by row."""
    q, k, v = (draw((2, 9, 5), dtype, i) for i in range(3))
    g, gs = draw((2, 9, 5), dtype, 3), draw((2, 9, 1), dtype, 4)
    bias = draw((9, 9), dtype, 5) if masked else None
    assert kernels.attention_forward(q, k, v, q.copy(), gs.copy(), 0.3, causal) is None
    out, sums = attention.attend(q, k, v, bias, 0.3, causal)
    y, logs, p = formula(q, k, v, bias, 0.3, causal)
    compare((out, sums), (y, logs), dtype)
    found = attention.attend_back(g, gs, q, k, v, bias, out, sums, 0.3, causal)
    compare(found, gradients(q, k, v, p, g, gs, 0.3), dtype)


def test_a_query_that_sees_nothing_gives_zero() -> None:
    q, k, v = (draw((4, 16), np.float32, i) for i in range(3))
    seen = np.ones((4, 4), bool)
    seen[2] = False
    out, sums = attention.attend(q, k, v, seen, 0.3, False)
    assert (out[2] == 0).all() and sums[2] == 0
    found = attention.attend_back(v, np.zeros_like(sums), q, k, v, seen, out, sums, 0.3, False)
    assert (found[0][2] == 0).all() and np.isfinite(found[1]).all()


def test_nan_stays_in_its_row_and_hidden_keys_do_not_count() -> None:
    q, k, v = (draw((40, 16), np.float32, i) for i in range(3))
    q[3, 0] = np.nan
    k[20:] = np.inf
    out, sums = attention.attend(q, k, v, None, 0.3, True)
    assert np.isnan(out[3]).all() and np.isnan(sums[3])
    assert np.isfinite(out[[0, 1, 2, *range(4, 20)]]).all()


def test_the_gradient_of_a_sum() -> None:
    """One number everywhere, which lies in no line."""
    q, k, v = (draw((2, 20, 16), np.float32, i) for i in range(3))
    out, sums = attention.attend(q, k, v, None, 0.3, True)
    g = np.broadcast_to(np.float32(1), out.shape)
    zero = np.broadcast_to(np.float32(0), sums.shape)
    found = attention.attend_back(g, zero, q, k, v, None, out, sums, 0.3, True)
    p = formula(q, k, v, None, 0.3, True)[2]
    compare(found, gradients(q, k, v, p, np.ones_like(out), 0, 0.3), np.float32)


def test_threads_change_nothing() -> None:
    q, k, v = (draw((16, 100, 16), np.float32, i) for i in range(3))
    before = kernels.use_threads(1)
    one = attention.attend(q, k, v, None, 0.3, True)
    kernels.use_threads(3)
    several = attention.attend(q, k, v, None, 0.3, True)
    kernels.use_threads(before)
    assert all(np.array_equal(a, b) for a, b in zip(one, several, strict=True))


@pytest.mark.parametrize("call", [
    lambda x, s: kernels.attention_forward(x, x, x, x.astype(np.float64), s, 0.3, False),
    lambda x, s: kernels.attention_forward(x, x, x[:1], x.copy(), s, 0.3, False),
    lambda x, s: kernels.attention_forward(x, x, x, x.copy(), s.astype(np.float64), 0.3, False),
    lambda x, s: kernels.attention_forward(x.T, x.T, x.T, x.T.copy(), s, 0.3, False),
    lambda x, s: kernels.attention_forward([1], x, x, x, s, 0.3, False),
    lambda x, s: kernels.attention_forward(x, x, x, x[:8].copy(), s, 0.3, False),
    lambda x, s: kernels.attention_forward(x, x, x, x.copy(), s[:3], 0.3, False),
    lambda x, s: kernels.attention_backward(x, x, x, x, x, x[:8], x, s, s, 1.0, 0),
    lambda x, s: kernels.attention_backward(x, x, x, x, x, x, x, s, s[:3], 1.0, 0),
    lambda x, s: kernels.attention_weights(x[:, ::2], s, 1.0, 0, False, False),
    lambda x, s: kernels.attention_weights(x, s[:2], 1.0, 0, False, False),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call: Any) -> None:
    x = draw((16, 16), np.float32, 0)
    assert call(x, np.empty((16, 1), np.float32)) is None
