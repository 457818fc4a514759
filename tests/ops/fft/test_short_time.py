"""Short-time Fourier transforms: values, round trips, errors, warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight as torch
from tests.ops.linalg.helpers import DOUBLE, drawn, same


def test_stft_is_the_transform_of_each_piece() -> None:
    x = drawn(2, 12)
    window = torch.arange(1.0, 5.0, dtype=DOUBLE)
    y = torch.stft(x, 4, 2, window=window, center=False, return_complex=True)
    pieces = np.stack([x.numpy()[:, i : i + 4] for i in range(0, 9, 2)], 1) * window.numpy()
    same(y, np.fft.rfft(pieces).swapaxes(-1, -2))
    both = torch.stft(x, 4, 2, window=window, center=False, onesided=False, return_complex=True)
    same(both, np.fft.fft(pieces).swapaxes(-1, -2))
    with warnings.catch_warnings(action="ignore"):
        pairs = torch.stft(x, 4, 2, window=window, center=False, return_complex=False)
    same(torch.view_as_complex(pairs.contiguous()), y)


@pytest.mark.parametrize("normalized", [False, True])
def test_istft_undoes_stft(normalized: bool) -> None:
    x = drawn(20).requires_grad_()
    window = torch.tensor([0.2, 0.7, 1.0, 1.0, 0.7, 0.2], dtype=DOUBLE)
    y = torch.stft(x, 8, 2, 6, window, normalized=normalized, return_complex=True)
    back = torch.istft(y, 8, 2, 6, window, normalized=normalized)
    same(back, x)
    (g,) = torch.autograd.grad(back.square().sum() / 2, x)
    same(g, x)
    assert torch.istft(y, 8, 2, 6, window, normalized=normalized, length=17).shape == (17,)


def test_stft_errors_and_warnings() -> None:
    x = torch.ones(20)
    with pytest.raises(RuntimeError, match="^stft requires the return_complex parameter be given"):
        torch.stft(x, 8)
    with pytest.raises(RuntimeError, match="expected hop_length > 0, but got hop_length=-1"):
        torch.stft(x, 8, -1, return_complex=True)
    with pytest.warns(UserWarning, match="^A window was not provided"):
        assert x.stft(8, return_complex=True).shape == (5, 11)
    with pytest.raises(RuntimeError, match="^istft requires a complex-valued input tensor"):
        torch.istft(x, 8)
