"""Methods of PyTorch 1.0.1 that PyTorch has removed since do what they did, and warn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch


def called(name: str, successor: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A removed method's result; its warning names the successor, and the caller's own file."""
    with pytest.warns(DeprecationWarning, match=rf"Tensor\.{name} is deprecated") as seen:
        y = getattr(x, name)(*args, **kwargs)
    assert len(seen) == 1 and successor in str(seen[0].message)
    assert seen[0].filename == __file__
    return y


def drawn(*shape: int) -> Any:
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=torch.float64)


def close(a: Any, b: Any) -> bool:
    return torch.allclose(a, torch.as_tensor(b, dtype=a.dtype), rtol=1e-10, atol=1e-10)


def definite(n: int) -> Any:
    a = drawn(n, n)
    return a @ a.mT + torch.eye(n, dtype=torch.float64)


# --- linear equations -----------------------------------------------------------------------------
def test_gesv() -> None:
    a = torch.tensor([[6.80, -2.11], [-6.05, -3.30]], requires_grad=True)
    b = torch.tensor([[4.02, 6.19], [-1.56, 4.00]])
    x, lu = called("gesv", "torch.linalg.solve", b, a)
    assert torch.allclose(a @ x, b, atol=1e-5)
    assert torch.equal(lu, torch.linalg.lu_factor(a)[0])
    x.sum().backward()
    assert a.grad is not None
    batch, right = drawn(3, 2, 2), drawn(3, 2, 1)
    x, lu = called("gesv", "torch.linalg.solve", right, batch)
    assert close(batch @ x, right) and lu.shape == batch.shape


def test_gels() -> None:
    a = torch.tensor([[1.0, 1, 1], [2, 3, 4], [3, 5, 2], [4, 2, 5], [5, 4, 3]])
    b = torch.tensor([[-10.0, -3], [12, 14], [14, 12], [16, 16], [18, 16]])
    x, qr = called("gels", "torch.linalg.lstsq", b, a)
    want = [[2.0, 1.0], [1.0, 1.0], [1.0, 2.0]]
    assert torch.allclose(x[:3], torch.tensor(want), atol=1e-4)
    residual = (a @ x[:3] - b).norm(dim=0)
    assert x.shape == (5, 2) and torch.allclose(x[3:].norm(dim=0), residual, atol=1e-4)
    assert torch.allclose(
        x[3:].abs(), torch.tensor([[10.9635, 4.8501], [8.9332, 5.2418]]), atol=1e-3
    )
    assert torch.equal(qr, torch.geqrf(a)[0])
    wide, right = drawn(2, 4), drawn(2, 1)
    x, qr = called("gels", "torch.linalg.lstsq", right, wide)
    assert close(x, torch.linalg.pinv(wide) @ right) and qr.shape == wide.shape


def test_trtrs() -> None:
    a, b = drawn(3, 3), drawn(3, 2)
    for upper in (True, False):
        triangle = a.triu() if upper else a.tril()
        x, copied = called("trtrs", "torch.linalg.solve_triangular", b, triangle, upper)
        assert close(triangle @ x, b) and torch.equal(copied, triangle)
        assert copied.data_ptr() != triangle.data_ptr()
        x, _ = called("trtrs", "torch.linalg.solve_triangular", b, triangle, upper, transpose=True)
        assert close(triangle.mT @ x, b)
    unit = a.triu(1) + torch.eye(3, dtype=torch.float64)
    x, _ = called("trtrs", "torch.linalg.solve_triangular", b, a.triu(), unitriangular=True)
    assert close(unit @ x, b)


# --- LU -------------------------------------------------------------------------------------------
def test_btrifact_and_btrisolve() -> None:
    a, b = drawn(4, 3, 3), drawn(4, 3)
    lu, pivots = called("btrifact", "torch.linalg.lu_factor", a)
    assert pivots.dtype is torch.int32 and torch.equal(lu, torch.linalg.lu_factor(a)[0])
    x = called("btrisolve", "torch.linalg.lu_solve", b, lu, pivots)
    assert x.shape == b.shape and close((a @ x.unsqueeze(-1)).squeeze(-1), b)
    info = torch.ones(1, dtype=torch.int32)
    called("btrifact", "torch.linalg.lu_factor", a, info=info)
    assert info.tolist() == [0] * 4
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="3D tensor"):
        a[0].btrifact()


def test_btrifact_with_info() -> None:
    a = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    lu, pivots, info = called("btrifact_with_info", "torch.linalg.lu_factor_ex", a)
    assert info.tolist() == [0, 1] and pivots.shape == (2, 2) and torch.equal(lu[0], a[0])


# --- Cholesky -------------------------------------------------------------------------------------
def test_potrf_potri_potrs() -> None:
    a, b = definite(3), drawn(3, 2)
    for upper in (True, False):
        u = called("potrf", f"torch.linalg.cholesky(A, upper={upper})", a, upper)
        assert close(u.mT @ u if upper else u @ u.mT, a)
        inverse = called("potri", "torch.cholesky_inverse", u, upper)
        assert close(inverse @ a, torch.eye(3))
        x = called("potrs", "torch.cholesky_solve", b, u, upper)
        assert close(a @ x, b)
    u = called("potrf", "torch.linalg.cholesky", a)  # upper unless told otherwise
    assert torch.equal(u, u.triu())


def test_pstrf() -> None:
    a = definite(4)
    for upper in (True, False):
        u, order = called("pstrf", "torch.linalg.cholesky", a, upper)
        assert order.dtype is torch.int32 and sorted(order.tolist()) == [0, 1, 2, 3]
        p = order.long()
        whole = u.mT @ u if upper else u @ u.mT
        assert close(whole, a[p][:, p])
        assert torch.equal(u, u.triu() if upper else u.tril())
        sizes = u.diagonal()
        assert sizes.tolist() == sorted(sizes.tolist(), reverse=True)
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="rank deficient"):
        torch.ones(2, 2).pstrf()


# --- Fourier transforms ---------------------------------------------------------------------------
def pairs(z: Any) -> Any:
    return torch.from_numpy(np.stack([z.real, z.imag], -1))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("normalized", [False, True])
def test_fft_and_ifft(count: int, normalized: bool) -> None:
    x = drawn(2, 3, 4, 5, 2)
    z = x.numpy()[..., 0] + 1j * x.numpy()[..., 1]
    axes, norm = tuple(range(-count, 0)), "ortho" if normalized else None
    y = called("fft", "torch.fft.fftn", x, count, normalized)
    assert close(y, pairs(np.fft.fftn(z, axes=axes, norm=norm)))
    y = called("ifft", "torch.fft.ifftn", x, count, normalized)
    assert close(y, pairs(np.fft.ifftn(z, axes=axes, norm=norm)))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("normalized", [False, True])
def test_rfft_and_irfft(count: int, normalized: bool) -> None:
    x = drawn(2, 3, 4, 5)
    axes, norm = tuple(range(-count, 0)), "ortho" if normalized else None
    half = called("rfft", "torch.fft.rfftn", x, count, normalized)
    assert close(half, pairs(np.fft.rfftn(x.numpy(), axes=axes, norm=norm)))
    full = called("rfft", "torch.fft.fftn", x, count, normalized, onesided=False)
    assert close(full, pairs(np.fft.fftn(x.numpy(), axes=axes, norm=norm)))
    back = called("irfft", "torch.fft.irfftn", full, count, normalized, onesided=False)
    assert close(back, x)
    sizes = x.shape[-count:]
    back = called("irfft", "torch.fft.irfftn", half, count, normalized, signal_sizes=sizes)
    assert close(back, x)
    even = called("irfft", "torch.fft.irfftn", half, count, normalized)
    assert even.shape[-1] == 4


def test_transforms_have_gradients_and_check_their_arguments() -> None:
    x = drawn(4).requires_grad_()
    y = called("rfft", "torch.fft.rfftn", x, 1)
    y.pow(2).sum().backward()
    # Parseval: the whole transform has n times the sum of squares
    full = torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)
    assert math.isclose((y.detach().pow(2).sum(-1) * full).sum().item(), 4 * x.pow(2).sum().item())
    assert x.grad.shape == x.shape
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="last dimension of"):
        torch.ones(3, 3).fft(1)
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="signal_ndim to be"):
        torch.ones(3, 3, 2).fft(4)
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="at least 2D"):
        torch.ones(3).rfft(2)
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="floating types"):
        torch.ones(3, 2, dtype=torch.long).ifft(1)
