"""`torch.fft` gives what PyTorch's gives: stored, and live where it is installed."""

from __future__ import annotations

import math
import re

import pytest

import rushlight as torch
from tests.ops.expressions import check
from tests.ops.fft.cases_transforms import cases


@pytest.mark.parametrize("line", cases)
def test_is_as_in_pytorch(line: str) -> None:
    check(cases, "ops/fft/transforms", line, nodes=False)


def test_nodes_are_named_as_in_pytorch() -> None:
    x = torch.ones(4, requires_grad=True)
    assert type(torch.fft.rfft(x).grad_fn).__name__ == "FftR2CBackward0"
    assert type(torch.fft.fft(x + 0j).grad_fn).__name__ == "FftC2CBackward0"
    assert type(torch.fft.irfft(x + 0j).grad_fn).__name__ == "FftC2RBackward0"


def test_single_precision_stays_single() -> None:
    x = torch.ones(3, 4)
    assert torch.fft.fft(x).dtype is torch.complex64
    assert torch.fft.irfft(torch.fft.rfft(x)).dtype is torch.float32


def test_derivatives_of_any_order() -> None:
    x = torch.rand(2, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: torch.fft.irfftn(torch.fft.rfftn(x).sin()), x)
    z = torch.rand(3, 4, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(torch.fft.hfft2, z)
    assert torch.autograd.gradgradcheck(lambda z: torch.fft.fftn(z * z), z)


@pytest.mark.parametrize("name", ["fftn", "ifft2", "rfftn", "irfft2", "hfftn", "ihfft2"])
def test_sizes_and_axes_are_whole_numbers(name: str) -> None:
    fn, x = getattr(torch.fft, name), torch.ones(2, 3)
    for wrong, kind in (("a", "str"), (1.5, "float"), (True, "bool"), (x, "Tensor"), ({}, "dict")):
        for place, args in (("'s' (position 2)", (wrong,)), ("'dim' (position 3)", (None, wrong))):
            said = f"fft_{name}(): argument {place} must be tuple of ints, not {kind}"
            with pytest.raises(TypeError, match=re.escape(said)):
                fn(x, *args)
    said = "must be tuple of ints, but found element of type float at pos 1"
    with pytest.raises(TypeError, match=said):
        fn(x, [2, 1.5])
    assert torch.fft.fftn(x, [torch.tensor(2)]).tolist() == [[2, 0], [2, 0]]


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifted_axes_are_whole_numbers(name: str) -> None:
    said = rf"fft_{name}\(\): argument 'dim' \(position 2\) must be tuple of ints, not str"
    with pytest.raises(TypeError, match=said):
        getattr(torch.fft, name)(torch.ones(2), "a")


def test_frequencies_of_samples_at_no_distance() -> None:
    for fn, n in ((torch.fft.fftfreq, 4), (torch.fft.rfftfreq, 2)):
        for d, end in ((0.0, math.inf), (-0.0, -math.inf)):
            zero, one, *_ = fn(n, d).tolist()
            assert math.isnan(zero) and one == end
    assert math.isnan(torch.fft.rfftfreq(0).item()) and torch.fft.fftfreq(0).shape == (0,)
