"""Primitives over windows: however the work is cut up, the numbers are the same."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest

from rushlight.arrays import windows
from rushlight.arrays.resizing import resizing_taps

RANDOM = np.random.default_rng(3)


def plain(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    """A convolution of images by its definition."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    kernel = w.shape[2:]
    outs = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], kernel)]
    y = np.zeros((x.shape[0], w.shape[0], *outs))
    size = x.shape[1] // groups
    each = w.shape[0] // groups
    for o, i, j in itertools.product(range(w.shape[0]), *map(range, kernel)):
        seen = x[:, o // each * size : (o // each + 1) * size, i * dilation :, j * dilation :]
        seen = seen[:, :, : outs[0] * stride : stride, : outs[1] * stride : stride]
        y[:, o] += (seen * w[o, :, i, j][:, None, None]).sum(1)[:, : outs[0], : outs[1]]
    return y


FORMS = [
    (stride, padding, dilation, groups)
    for stride in (1, 2) for padding in (0, 1, 2) for dilation in (1, 2) for groups in (1, 2, 4)
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lot", [1, 1 << 20])
def test_convolution_is_its_definition_in_lots_of_any_size(
    form: Any, lot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stride, padding, dilation, groups = form
    monkeypatch.setattr(windows, "_LOT", lot)
    monkeypatch.setattr(windows, "_WIDE", 1 if lot == 1 else 256)
    x = RANDOM.standard_normal((5, 4, 9, 8))
    w = RANDOM.standard_normal((8, 4 // groups, 3, 2))
    how = (stride, stride), (padding, padding), (dilation, dilation), groups
    y = windows.convolve(x, w, None, *how)
    want = plain(x, w, stride, padding, dilation, groups)
    np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-12)
    # the adjoints: <g, y> is linear in x and in w
    g = RANDOM.standard_normal(y.shape)
    total = (g * y).sum()
    gx = windows.convolve_input(g, w, None, (9, 8), *how)
    gw = windows.convolve_weight(g, x, (3, 2), *how)
    assert gx.shape == x.shape and gw.shape == w.shape
    np.testing.assert_allclose([(gx * x).sum(), (gw * w).sum()], [total, total], rtol=1e-10)


def test_both_ways_to_add_columns_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    g, w = RANDOM.standard_normal((3, 6, 7, 6)), RANDOM.standard_normal((6, 2, 3, 3))
    how = (1, 1), (1, 1), (1, 1), 2
    flat = windows.convolve_input(g, w, None, (7, 6), *how)
    monkeypatch.setattr(windows, "_WASTE", 0.0)
    np.testing.assert_allclose(
        windows.convolve_input(g, w, None, (7, 6), *how), flat, rtol=1e-12, atol=1e-12
    )


def test_the_memory_of_a_convolution_is_that_of_a_lot() -> None:
    """Not that of all columns, nine times the input."""
    x = np.ones((64, 16, 28, 28), np.float32)
    w = np.ones((16, 16, 3, 3), np.float32)
    how = (1, 1), (1, 1), (1, 1), 1
    for fn, args in (
        (windows.convolve, (x, w, None)), (windows.convolve_input, (x, w, None, (28, 28))),
        (windows.convolve_weight, (x, x, (3, 3))),
    ):  # fmt: skip
        tracemalloc.start()
        fn(*args, *how)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2.6 * x.nbytes  # the result and the padded input, and little more


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64, np.int64])
def test_dtypes_stay(dtype: Any) -> None:
    x, w = np.ones((2, 2, 4), dtype), np.ones((2, 2, 2), dtype)
    y = windows.convolve(x, w, None, (1,), (0,), (1,), 1)
    assert y.dtype == dtype and (y == 4).all()


def test_the_adjoint_of_taps_is_their_transpose() -> None:
    for mode, out in itertools.product(
        ("nearest", "exact", "linear", "cubic", "smooth linear", "smooth cubic"), (1, 3, 7, 20)
    ):
        taps = resizing_taps(mode, 7, out, None, False, True)
        turned = taps.turned
        assert turned.size == out and turned.turned is taps
        np.testing.assert_array_equal(taps.matrix(float).T, turned.matrix(float))
        np.testing.assert_allclose(taps.matrix(float).sum(1), 1, rtol=1e-12)


def test_many_taps_are_a_product() -> None:
    x = RANDOM.standard_normal((3, 40, 5))
    taps = windows.mean_taps(40, 3)
    want = np.stack([x[:, 0:14].mean(1), x[:, 13:27].mean(1), x[:, 26:40].mean(1)], 1)
    np.testing.assert_allclose(windows.resample(x, -2, taps), want, rtol=1e-12)
    np.testing.assert_allclose(
        windows.resample(x.swapaxes(1, 2), -1, taps), want.swapaxes(1, 2), rtol=1e-12
    )


def test_windows_of_more_taps_than_a_byte_counts() -> None:
    x = RANDOM.standard_normal((2, 20, 20))
    spans = (windows.Even(17, 1, 0, 1, 4),) * 2
    y = windows.window_max(x, spans)
    where = windows.window_argmax(x, y, spans)
    for p, i, j in itertools.product(range(2), range(4), range(4)):
        part = x[p, i : i + 17, j : j + 17]
        assert y[p, i, j] == part.max() and x[p].reshape(-1)[where[p, i, j]] == part.max()


def test_the_last_nan_of_a_window_is_its_largest() -> None:
    x = np.array([[np.nan, 1.0, np.nan, 2.0]])
    spans = (windows.Even(1, 1, 0, 1, 1), windows.Even(4, 4, 0, 1, 1))
    y = windows.window_max(x, spans)
    assert np.isnan(y).all() and windows.window_argmax(x, y, spans).tolist() == [[2]]
