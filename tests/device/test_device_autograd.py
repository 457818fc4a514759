"""Autograd's further parts on the device: forward mode, functional, gradcheck, checkpointing."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad
from rushlight.utils.checkpoint import checkpoint


def test_forward_mode() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda")
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(2, device="cuda"))
        tangent = forward_ad.unpack_dual(dual * dual).tangent
    assert tangent.device.type == "cuda" and tangent.cpu().tolist() == [2, 4]


def test_hessian() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda")
    h = torch.autograd.functional.hessian(lambda x: (x**3).sum(), x)
    assert h.device.type == "cuda" and h.cpu().tolist() == [[6, 0], [0, 12]]


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck(fast: bool) -> None:
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, device="cuda", requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x.sin() * x, (x,), fast_mode=fast)
    assert torch.autograd.gradgradcheck(lambda x: x.sin() * x, (x,), fast_mode=fast)


def test_checkpoint() -> None:
    w = torch.tensor([2.0], device="cuda", requires_grad=True)
    y = checkpoint(lambda x: (x * w).exp(), torch.ones(1, device="cuda"), use_reentrant=False)
    y.sum().backward()
    assert abs(w.grad.item() - 7.389056) < 1e-5


def test_a_gradient_from_another_device() -> None:
    x = torch.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0"):
        (x * 2).backward(torch.ones(2))
