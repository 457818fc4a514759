"""Linear algebra, short-time Fourier transforms, renorm, and methods about sparse tensors.

The derivatives of every op are tested by the laws; here are values that one can check by hand,
edges, errors, and what the laws cannot reach: complex singular vectors, whose phases are free.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch

DOUBLE = torch.float64
KINDS = (torch.float64, torch.complex128)


def matrix(*rows: list[float], dtype: Any = DOUBLE, grad: bool = False) -> Any:
    return torch.tensor(list(rows), dtype=dtype, requires_grad=grad)


def drawn(*shape: int, dtype: Any = DOUBLE, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.is_complex:
        x = x + 1j * rng.standard_normal(shape)
    return torch.tensor(x, dtype=dtype)


def same(a: Any, b: Any, tol: float = 1e-10) -> None:
    b = b.detach().numpy() if isinstance(b, torch.Tensor) else np.asarray(b)
    np.testing.assert_allclose(a.detach().numpy(), b, rtol=tol, atol=tol)


def slope_is_right(f: Callable[[Any], Any], x: Any, hermitian: bool = False) -> None:
    """The gradient of a real number against differences, in a random direction."""
    x = x.detach().clone().requires_grad_()
    (g,) = torch.autograd.grad(f(x), x)
    t = drawn(*x.shape, dtype=x.dtype, seed=9)
    if hermitian:
        t = (t + t.mH) / 2
    h = 1e-6
    with torch.no_grad():
        expected = (f(x + h * t) - f(x - h * t)) / (2 * h)
    found = (g.conj() * t).sum()
    found = found.real if found.is_complex() else found
    assert abs(found.item() - expected.item()) < 1e-6 * (1 + abs(expected.item()))


# --- systems and determinants ---------------------------------------------------------------------
def test_inverse() -> None:
    x = matrix([2.0, 1.0], [0.0, 4.0], grad=True)
    y = torch.linalg.inv(x)
    same(y, [[0.5, -0.125], [0.0, 0.25]])
    assert y.grad_fn.name() == "LinalgInvExBackward0"
    y.sum().backward()
    same(x.grad, -(y.sum(0)[:, None] * y.sum(1)))  # -inv(x)ᵀ @ ones @ inv(x)ᵀ
    assert torch.inverse(torch.ones(0, 3, 3)).shape == (0, 3, 3)
    same(x.inverse(), y)


def test_singular_matrices_are_refused_by_name() -> None:
    zero = torch.zeros(2, 2)
    batch = torch.stack([torch.eye(2), zero])
    error = torch.linalg.LinAlgError
    assert issubclass(error, RuntimeError) and error.__name__ == "_LinAlgError"
    with pytest.raises(error, match=r"^linalg.inv: The diagonal element 1 is zero, the inversion"):
        torch.linalg.inv(zero)
    with pytest.raises(error, match=r"^linalg.inv: \(Batch element 1\): The diagonal element 1 is"):
        torch.inverse(batch)
    with pytest.raises(error, match="^torch.linalg.solve: The solver failed because the input"):
        torch.linalg.solve(zero, torch.ones(2))
    inverse, info = torch.linalg.inv_ex(batch)
    assert info.tolist() == [0, 1] and info.dtype is torch.int32
    same(inverse[0], np.eye(2))
    with pytest.raises(RuntimeError, match=r"^torch.linalg.lu_factor: U\[1,1\] is zero and using"):
        torch.linalg.lu_factor(zero)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.linalg.inv(torch.ones(2)), "linalg.inv: The input tensor A must have at"),
        (lambda: torch.det(torch.ones(2, 3)), "linalg.det: A must be batches of square matrices, "
         "but they are 2 by 3 matrices"),
        (lambda: torch.linalg.inv(torch.ones(2, 2, dtype=torch.int64)),
         "linalg.inv: Expected a floating point or complex tensor as input. Got Long"),
        (lambda: torch.linalg.inv(torch.ones(2, 2).half()),
         "linalg.inv: Low precision dtypes not supported. Got Half"),
        (lambda: torch.linalg.solve(torch.eye(2), torch.ones(3)),
         "linalg.solve: Incompatible shapes of A and B for the equation AX = B"),
        (lambda: torch.linalg.eigh(torch.eye(2), UPLO="X"),
         "Expected UPLO argument to be 'L' or 'U', but got X"),
        (lambda: torch.linalg.qr(torch.eye(2), mode="x"), "qr received unrecognized mode 'x' but"),
        (lambda: torch.linalg.matrix_norm(torch.eye(2), 3),
         "linalg.matrix_norm: Order 3 not supported."),
        (lambda: torch.linalg.cond(torch.eye(2), 3), "linalg.cond got an invalid norm type: 3"),
        (lambda: torch.norm(torch.ones(2, 2, 2), "nuc"),
         "linalg.matrix_norm: dim must be a 2-tuple. Got 0 1 2"),
        (lambda: torch.linalg.eig(torch.full((2, 2), math.nan)),
         "torch.linalg.eig: input tensor should not contain infs or NaNs."),
        (lambda: torch.linalg.svd(torch.full((2, 2), math.nan)),
         "linalg.svd: The algorithm failed to converge because the input matrix contained"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("dtype", KINDS)
def test_solutions(dtype: Any) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    b = drawn(3, 2, dtype=dtype, seed=1)
    same(a @ torch.linalg.solve(a, b), b.expand(2, 3, 2))
    vector = drawn(2, 3, dtype=dtype, seed=2)  # as many dimensions as A has, less one: vectors
    same((a @ torch.linalg.solve(a, vector)[..., None])[..., 0], vector)
    right = drawn(2, 2, 3, dtype=dtype, seed=3)
    same(torch.linalg.solve(a, right, left=False) @ a, right)
    same(a.triu() @ torch.linalg.solve_triangular(a, b, upper=True), b.expand(2, 3, 2))
    unit = a.tril(-1) + torch.eye(3, dtype=dtype)
    found = torch.linalg.solve_triangular(a, right, upper=False, left=False, unitriangular=True)
    same(found @ unit, right)
    factors = torch.linalg.lu_factor(a)
    for left, adjoint in ((True, False), (True, True), (False, False), (False, True)):
        m = a.mH if adjoint else a
        c = b.expand(2, 3, 2) if left else right
        x = torch.linalg.lu_solve(*factors, c, left=left, adjoint=adjoint)
        same(m @ x if left else x @ m, c)


def test_determinants() -> None:
    x = matrix([2.0, 1.0], [3.0, 4.0], grad=True)
    assert torch.det(x).item() == pytest.approx(5)
    sign, log = torch.linalg.slogdet(matrix([0.0, 2.0], [3.0, 0.0]))
    assert sign.item() == -1 and log.item() == pytest.approx(math.log(6))
    assert math.isnan(torch.logdet(matrix([-1.0])).item())
    assert torch.logdet(matrix([0.0])).item() == -math.inf
    assert torch.det(torch.ones(0, 0)).item() == 1
    (g,) = torch.autograd.grad(torch.logdet(x), x)
    same(g, [[0.8, -0.6], [-0.2, 0.4]])


def test_the_determinant_of_a_matrix_without_inverse_has_a_gradient() -> None:
    x = matrix([1.0, 2.0], [2.0, 4.0], grad=True)
    (g,) = torch.autograd.grad(torch.det(x), x)
    same(g, [[4.0, -2.0], [-2.0, 1.0]])
    zero = torch.zeros(3, 3, dtype=DOUBLE, requires_grad=True)
    (g,) = torch.autograd.grad(torch.det(zero), zero)
    same(g, np.zeros((3, 3)))


# --- factors --------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", KINDS)
def test_cholesky(dtype: Any) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    a = a @ a.mH + torch.eye(3, dtype=dtype)
    low = torch.linalg.cholesky(a)
    same(low @ low.mH, a)
    same(low, low.tril())
    same(torch.linalg.cholesky(a, upper=True), low.mH)
    same(torch.linalg.cholesky(a.tril()), low)  # the other triangle is not read
    b = drawn(3, 2, dtype=dtype, seed=1)
    same(a @ torch.cholesky_solve(b.expand(2, 3, 2), low), b.expand(2, 3, 2))
    same(a @ torch.cholesky_inverse(low.mH.clone(), upper=True), torch.eye(3).expand(2, 3, 3))
    weight = drawn(3, 3, seed=5)
    loss = lambda x: (torch.linalg.cholesky(x).abs() * weight).tril(-1).sum()
    slope_is_right(loss, a, hermitian=True)


def test_cholesky_needs_a_positive_matrix() -> None:
    text = (
        r"^linalg.cholesky: The factorization could not be completed because the input is not "
        r"positive-definite \(the leading minor of order 2 is not positive-definite\).$"
    )
    with pytest.raises(torch.linalg.LinAlgError, match=text):
        torch.linalg.cholesky(matrix([1.0, 0.0], [0.0, -1.0]))
    with pytest.raises(torch.linalg.LinAlgError, match="leading minor of order 1"):
        torch.linalg.cholesky(torch.full((2, 2), math.nan))
    batch = torch.stack([torch.eye(2), -torch.eye(2)])
    found, info = torch.linalg.cholesky_ex(batch)
    assert info.tolist() == [0, 1]
    same(found[0], np.eye(2))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 0), (0, 2), (2, 3, 3)])
def test_products_of_factors_give_the_matrix_back(dtype: Any, shape: tuple[int, ...]) -> None:
    a = drawn(*shape, dtype=dtype)
    m, n = shape[-2:]
    k = min(m, n)
    for mode, width in (("reduced", k), ("complete", m)):
        q, r = torch.linalg.qr(a, mode=mode)
        assert q.shape == (*shape[:-2], m, width) and r.shape == (*shape[:-2], width, n)
        same(q @ r, a)
        same(r, r.triu())
        same(q.mH @ q, torch.eye(width, dtype=dtype).expand(*shape[:-2], width, width))
    p, low, high = torch.linalg.lu(a)
    same(p @ low @ high, a)
    same(low, low.tril())
    for mine, other in zip(torch.lu_unpack(*torch.linalg.lu_factor(a)), (p, low, high)):
        same(mine, other)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    same((u * s[..., None, :].to(dtype)) @ vh, a)
    u, s, vh = torch.linalg.svd(a)
    assert u.shape[-1] == m and vh.shape[-2] == n and s.dtype is DOUBLE
    same(torch.linalg.svdvals(a), s)
    y = torch.linalg.pinv(a)
    assert y.shape == (*shape[:-2], n, m)
    same(a @ y @ a, a)


def test_qr_of_the_upper_triangle_alone() -> None:
    x = matrix([3.0], [4.0], grad=True)
    q, r = torch.linalg.qr(x, mode="r")
    assert q.shape == (0,) and abs(r.item()) == pytest.approx(5)
    with pytest.raises(RuntimeError, match="^The derivative of linalg.qr depends on Q"):
        r.sum().backward()
    with pytest.raises(RuntimeError, match="^The QR decomposition is not differentiable when"):
        torch.linalg.qr(x, mode="complete").R.sum().backward()


@pytest.mark.parametrize("dtype", KINDS)
def test_reflectors(dtype: Any) -> None:
    a = drawn(4, 2, dtype=dtype)
    reflectors, tau = torch.geqrf(a)
    q, r = torch.linalg.qr(a)
    same(torch.orgqr(reflectors, tau), q)
    same(reflectors[:2].triu(), r)
    whole = torch.linalg.qr(a, mode="complete").Q
    x = drawn(4, 3, dtype=dtype, seed=1)
    same(torch.ormqr(reflectors, tau, x), whole @ x)
    same(torch.ormqr(reflectors, tau, x, transpose=True), whole.mH @ x)
    same(torch.ormqr(reflectors, tau, x.mT, left=False), x.mT @ whole)
    a.requires_grad_()
    with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not implemented"):
        torch.geqrf(a)[0].abs().sum().backward()


# --- eigenvalues and singular values --------------------------------------------------------------
@pytest.mark.parametrize("dtype", KINDS)
def test_eigenvalues(dtype: Any) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    values, vectors = torch.linalg.eig(a)
    assert values.dtype is torch.complex128
    wide = a.to(torch.complex128)
    same(wide @ vectors, vectors * values[:, None, :])
    same(torch.linalg.eigvals(a), values)
    h = a + a.mH
    values, vectors = torch.linalg.eigh(h)
    assert values.dtype is DOUBLE and (values.diff() > 0).all()
    same(h @ vectors, vectors * values[:, None, :].to(dtype))
    same(torch.linalg.eigvalsh(h, UPLO="U"), values)
    same(torch.linalg.eigvalsh(h.triu(), UPLO="U"), values)
    slope_is_right(lambda x: (torch.linalg.eigh(x).eigenvectors.abs() ** 3).sum(), h, True)
    slope_is_right(lambda x: (torch.linalg.eig(x).eigenvectors.abs() ** 3).sum(), a)
    slope_is_right(lambda x: torch.linalg.eigvals(x).abs().sum(), a)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_singular_vectors_up_to_a_phase(shape: tuple[int, int]) -> None:
    weight = drawn(*shape, seed=5)

    def loss(x: Any) -> Any:
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        joint = (u[:, :1] @ vh[:1]).abs() * weight  # each phase meets its conjugate
        return joint.sum() + (u.abs() ** 3).sum() + (vh.abs() ** 3).sum() + s.prod()

    slope_is_right(loss, drawn(*shape, dtype=torch.complex128))


def test_equal_singular_values() -> None:
    x = torch.eye(2, dtype=DOUBLE, requires_grad=True)
    torch.linalg.matrix_norm(x, "nuc").backward()
    same(x.grad, np.eye(2))
    h = torch.eye(2, dtype=DOUBLE, requires_grad=True)
    torch.linalg.eigvalsh(h).sum().backward()
    same(h.grad, np.eye(2))


def test_names_of_results() -> None:
    x = torch.eye(2)
    assert torch.svd(x).V.shape == (2, 2)
    assert torch.linalg.eigh(x).eigenvalues.tolist() == [1, 1]
    assert repr(torch.linalg.slogdet(x)).startswith("torch.return_types.linalg_slogdet(\nsign=")
    u, _, v = torch.svd(torch.ones(2, 3), compute_uv=False)
    assert u.tolist() == np.zeros((2, 2)).tolist() and v.shape == (3, 3)
    q, r = torch.empty(0), torch.empty(0)
    torch.linalg.qr(x, out=(q, r))
    assert q.shape == r.shape == (2, 2)


def test_pseudo_inverse_and_rank() -> None:
    x = matrix([1.0, 2.0], [2.0, 4.0])
    same(torch.linalg.pinv(x), np.array([[1, 2], [2, 4]]) / 25)
    same(torch.pinverse(x), np.array([[1, 2], [2, 4]]) / 25)
    same(torch.linalg.pinv(x, hermitian=True), np.array([[1, 2], [2, 4]]) / 25)
    assert torch.linalg.matrix_rank(x).item() == 1
    d = torch.diag(torch.tensor([4.0, 1.0, 0.1]))
    assert torch.linalg.matrix_rank(d).item() == 3
    assert torch.linalg.matrix_rank(d, atol=0.5).item() == 2
    assert torch.linalg.matrix_rank(d, rtol=0.5).item() == 1
    assert torch.linalg.matrix_rank(d, hermitian=True, atol=torch.tensor(2.0)).item() == 1
    same(torch.linalg.pinv(d, atol=0.5), np.diag([0.25, 1, 0]), 1e-6)
    assert torch.linalg.matrix_rank(torch.ones(3, 0, 2)).tolist() == [0, 0, 0]


def test_least_squares() -> None:
    a = matrix([1.0, 0.0], [1.0, 1.0], [1.0, 2.0])
    b = matrix([1.0], [2.0], [2.0])
    found = torch.linalg.lstsq(a, b, driver="gelsd")
    same(found.solution, [[7 / 6], [0.5]])
    same(found.residuals, [1 / 6])
    assert found.rank.item() == 2 and found.singular_values.shape == (2,)
    usual = torch.linalg.lstsq(a, b[:, 0])
    same(usual.solution, [7 / 6, 0.5])
    assert usual.residuals.shape == usual.singular_values.shape == (0,)


# --- norms and powers -----------------------------------------------------------------------------
def test_matrix_norms() -> None:
    x = matrix([0.0, -2.0], [3.0, 1.0])
    for ord, expected in {
        "fro": math.sqrt(14), 1: 3, -1: 3, math.inf: 4, -math.inf: 2,
    }.items():  # fmt: skip
        assert torch.linalg.matrix_norm(x, ord).item() == pytest.approx(expected)
        assert torch.linalg.norm(x, ord).item() == pytest.approx(expected)
    s = torch.linalg.svdvals(x)
    for ord, expected in {"nuc": s.sum(), 2: s[0], -2: s[1]}.items():
        same(torch.linalg.matrix_norm(x, ord), expected)
    same(torch.norm(x, "nuc"), s.sum())
    same(x.norm("nuc", dim=(0, 1), keepdim=True), s.sum()[None, None])
    same(torch.nuclear_norm(x), s.sum())
    batch = drawn(2, 3, 4)
    same(torch.linalg.matrix_norm(batch, 1, dim=(0, 2)), batch.abs().sum(0).amax(-1))
    kept = torch.linalg.matrix_norm(batch, 2, dim=(0, 2), keepdim=True)
    assert kept.shape == (1, 3, 1)
    assert torch.linalg.matrix_norm(torch.ones(0, 2), 1).item() == 0
    assert torch.linalg.norm(batch).item() == pytest.approx(float(np.linalg.norm(batch.numpy())))


def test_condition() -> None:
    x = matrix([4.0, 0.0], [0.0, 2.0])
    assert torch.linalg.cond(x).item() == pytest.approx(2)
    assert torch.linalg.cond(x, -2).item() == pytest.approx(0.5)
    assert torch.linalg.cond(x, 1).item() == pytest.approx(2)
    assert torch.linalg.cond(x, "fro").item() == pytest.approx(math.sqrt(20) * math.sqrt(5) / 4)
    assert torch.linalg.cond(x * 0, 1).item() == math.inf
    assert math.isnan(torch.linalg.cond(x * 0).item())


def test_powers() -> None:
    x = matrix([1.0, 1.0], [0.0, 1.0], grad=True)
    for n in (-3, -1, 0, 1, 2, 3, 7):
        same(torch.matrix_power(x, n), [[1, n], [0, 1]])
        same(x.matrix_power(n), torch.linalg.matrix_power(x, n))
    (g,) = torch.autograd.grad(torch.matrix_power(x, 2).sum(), x)
    same(g, [[3, 2], [4, 3]])
    with pytest.raises(TypeError, match="argument 'n'"):
        torch.matrix_power(x, 2.0)


def test_renorm() -> None:
    x = matrix([3.0, 4.0], [0.3, 0.4], grad=True)
    y = torch.renorm(x, 2, 0, 1)
    same(y, [[0.6, 0.8], [0.3, 0.4]], 1e-6)
    (g,) = torch.autograd.grad(y[:, 0].sum(), x)
    same(g, [[0.128, -0.096], [1.0, 0.0]], 1e-6)
    z = x.detach().clone()
    assert z.renorm_(2, 0, 1) is z
    same(z, y)
    same(torch.renorm(x, 1, 1, 100), x)
    with pytest.raises(RuntimeError, match="^renorm: non-positive-norm not supported"):
        torch.renorm(x, 0, 0, 1)
    with pytest.raises(RuntimeError, match="^renorm: input needs at least 2 dimensions, got 1"):
        torch.renorm(x[0], 2, 0, 1)


# --- the short-time Fourier transform -------------------------------------------------------------
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


# --- sparse names, and names that are gone --------------------------------------------------------
def test_a_strided_tensor_answers_about_sparsity() -> None:
    x = torch.ones(2, 3)
    assert (x.sparse_dim(), x.dense_dim()) == (0, 2)
    assert x.to_dense() is x
    assert x.to_dense(torch.float64).dtype is torch.float64
    for name, what in {
        "coalesce": "sparse coordinate", "is_coalesced": "sparse coordinate",
        "indices": "sparse coordinate", "values": "sparse",
    }.items():  # fmt: skip
        text = f"^{name} expected {what} tensor layout but got Strided$"
        with pytest.raises(RuntimeError, match=text):
            getattr(x, name)()
    for name in ("_indices", "_values", "_nnz", "_dimI", "_dimV"):
        with pytest.raises(NotImplementedError, match=f"^Could not run 'aten::{name}' with"):
            getattr(x, name)()
    with pytest.raises(RuntimeError, match="can only be called on sparse tensors"):
        x.smm(x)
    with pytest.raises(NotImplementedError, match="rushlight has no sparse layout"):
        x.to_sparse()
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used"):
        x.requires_grad_().sparse_resize_((2, 2), 1, 1)


def test_functions_that_are_gone_say_so() -> None:
    x = torch.eye(2)
    for call in (x.symeig, x.eig, lambda: torch.solve(x, x), lambda: torch.lstsq(x, x)):
        with pytest.raises(RuntimeError, match="^This function was deprecated since version 1.9"):
            call()
    with pytest.raises(RuntimeError, match=r"^reinforce\(\) was removed."):
        x.reinforce(1)
    with pytest.raises(RuntimeError, match="^unknown parameter type"):
        x.record_stream(None)


def test_older_forms_warn() -> None:
    x = matrix([4.0, 0.0], [0.0, 9.0], grad=True)
    for call, new in (
        (lambda: torch.cholesky(x), "cholesky"), (lambda: torch.qr(x), "qr"),
        (lambda: torch.lu(x), "lu_factor"), (lambda: torch.triangular_solve(x, x), "solve_triang"),
    ):  # fmt: skip
        with pytest.warns(UserWarning, match=f"is deprecated in favor of torch.linalg.{new}"):
            call()
    with warnings.catch_warnings(action="ignore"):
        y = torch.cholesky(x)
        assert y.grad_fn.name() == "CholeskyBackward0"
        same(y, np.diag([2, 3]))
