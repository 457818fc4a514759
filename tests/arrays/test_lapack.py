"""Linear algebra of NaN, infinities and the ends of the range: it ends, and says what PyTorch says.

LAPACK can loop for ever on an infinity, and no signal reaches it there. So what might is called in
a child process, which is killed if it does not answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from attack.linalg import ALIASES, CALLS, Worker

INF, NAN = math.inf, math.nan
DOUBLE = torch.float64
ERRORS = {"torch._C._LinAlgError", "builtins.RuntimeError"}
SPOILT = [(0, 0), (1, 0), (2, 2)]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    child = Worker("rushlight")
    yield child
    child.stop()


def good(n: int = 3) -> Any:
    """A positive matrix."""
    return np.eye(n) * np.arange(2.0, 2 + n) + 0.1


def spoilt(value: float, at: tuple[int, int] = (0, 0), n: int = 3) -> Any:
    x = good(n)
    x[at] = value
    return x


def call(worker: Worker, code: str, a: Any, dtype: str = "float64", grad: bool = False) -> Any:
    """What came of a call in the child, which it must come back from."""
    b = np.ones((*a.shape[:-1], 2))
    made = {"code": "torch." + code, "arrays": {"a": a, "b": b}, "views": {}, "dtype": dtype}
    found = worker.ask({**made, "backward": grad})
    assert found is not None, f"{code} did not return"
    return found


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-12)


# --- everything ends ------------------------------------------------------------------------------
def test_every_public_function_is_called() -> None:
    codes = [code for codes in CALLS.values() for code in codes]
    names = {code.split("(")[0] for code in codes}
    public = {"linalg." + n for n in torch.linalg.__all__ if n not in ("LinAlgError", "lu_solve")}
    assert public <= names
    assert set(ALIASES) <= names


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("value", [INF, -INF, NAN, 1e300, 1e-310])
def test_every_call_ends(worker: Worker, value: float, dtype: str) -> None:
    for at in SPOILT:
        if dtype == "complex64":
            value = {1e300: 1e38, 1e-310: 1e-45}.get(value, value)
        for kind, codes in CALLS.items():
            for code in codes:
                a = spoilt(value, at)
                a = a[:, :2] if kind == "T" and at[1] < 2 else a
                found = call(worker, code, a, dtype, True)
                assert found["error"] is None or (
                    found["error"][0] in ERRORS | {"builtins.NotImplementedError"}
                ), (code, found["error"])


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 2, 2), (1, 1), (1, 4), (4, 1)])
@pytest.mark.parametrize("value", [INF, NAN])
def test_shapes_with_little_in_them_end(
    worker: Worker, shape: tuple[int, ...], value: float
) -> None:
    for code in CALLS["A"]:
        found = call(worker, code, np.full(shape, value))
        assert found["error"] is None or found["error"][0].startswith(("builtins.", "torch."))


# --- singular values ------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [INF, -INF])
@pytest.mark.parametrize("at", SPOILT)
def test_infinite_matrices_have_no_singular_values(
    worker: Worker, value: float, at: tuple[int, int]
) -> None:
    a = spoilt(value, at)
    for code in ("linalg.svdvals(a)", "linalg.svd(a)[1]", "svd(a, compute_uv=False)[1]"):
        same(call(worker, code, a)["values"][0], [NAN] * 3)
    for norm in ("2", "-2", "'nuc'"):
        same(call(worker, f"linalg.matrix_norm(a, {norm})", a)["values"][0], NAN)
        same(call(worker, f"linalg.norm(a, {norm})", a)["values"][0], NAN)
    same(call(worker, "linalg.cond(a)", a)["values"][0], NAN)
    same(call(worker, "linalg.matrix_rank(a)", a)["values"][0], 0)
    same(call(worker, "linalg.pinv(a)", a)["values"][0], np.full((3, 3), NAN))
    solution, _, rank, _ = call(worker, "linalg.lstsq(a, b)", a)["values"]
    same(solution, np.full((3, 2), NAN))
    assert rank == 0


def test_the_other_members_of_a_batch_are_as_they_were(worker: Worker) -> None:
    batch = np.stack([good(), spoilt(INF), good()])
    (alone,) = call(worker, "linalg.svdvals(a)", good())["values"]
    (values,) = call(worker, "linalg.svdvals(a)", batch)["values"]
    same(values, [alone, [NAN] * 3, alone])
    (inverses,) = call(worker, "linalg.pinv(a)", batch)["values"]
    same(inverses[[0, 2]], np.linalg.inv(good())[None].repeat(2, 0))
    (ranks,) = call(worker, "linalg.matrix_rank(a)", batch)["values"]
    assert ranks.tolist() == [3, 0, 3]
    values, _ = call(worker, "linalg.eigh(a)", batch)["values"]
    same(values[[0, 2]], np.linalg.eigvalsh(good())[None].repeat(2, 0))
    same(values[1], [NAN] * 3)
    for code in ("linalg.inv(a)", "linalg.solve(a, b)", "linalg.det(a)", "linalg.slogdet(a)"):
        for x in (np.stack([spoilt(INF), good()]), np.stack([spoilt(NAN), good()])):
            for y, z in zip(call(worker, code, x)["values"], call(worker, code, good())["values"]):
                same(y[1], z)


def test_nan_is_refused_with_the_member_that_has_it() -> None:
    start = "The algorithm failed to converge because the input matrix"
    why = "contained non-finite values."
    bad = torch.tensor(np.stack([good(), good(), spoilt(NAN)]))
    for f in (torch.linalg.svd, torch.linalg.svdvals, torch.svd, torch.linalg.pinv,
              torch.linalg.cond, torch.linalg.matrix_rank):  # fmt: skip
        with pytest.raises(torch.linalg.LinAlgError) as caught:
            f(bad[2])
        assert str(caught.value) == f"linalg.svd: {start} {why}"
        with pytest.raises(torch.linalg.LinAlgError) as caught:
            f(bad)
        assert str(caught.value) == f"linalg.svd: (Batch element 2): {start} {why}"


def test_inside_vmap(worker: Worker) -> None:
    batch = np.stack([good(), spoilt(INF)])
    (values,) = call(worker, "func.vmap(torch.linalg.svdvals)(a)", batch)["values"]
    same(values, [np.linalg.svd(good())[1], [NAN] * 3])
    (inverse,) = call(worker, "func.vmap(torch.linalg.inv)(a)", batch)["values"]
    same(inverse[0], np.linalg.inv(good()))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_infinite_matrices_are_nan(worker: Worker, dtype: str) -> None:
    # complex vectors that are NaN have no phase that a loss could depend on
    for code in ("linalg.svdvals(a)", "linalg.matrix_norm(a, 'nuc')", "linalg.eigvalsh(a)"):
        found = call(worker, code, spoilt(INF), dtype, True)
        assert found["error"] is None and np.isnan(found["grads"][0]).all(), code
    (batch, _) = call(worker, "linalg.svdvals(a)", np.stack([good(), spoilt(INF)]), dtype, True)[
        "grads"
    ]
    assert np.isfinite(batch[0]).all() and np.isnan(batch[1]).all()


def test_gradients_of_huge_singular_values() -> None:
    x = torch.tensor(np.diag([3e200, 2e200]), requires_grad=True)
    torch.linalg.matrix_norm(x, 2).backward()
    same(x.grad, [[1, 0], [0, 0]])


# --- eigenvalues ----------------------------------------------------------------------------------
def test_hermitian_eigenvalues() -> None:
    text = (
        "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned "
        "or has too many repeated eigenvalues (error code: 2)."
    )
    for f in (torch.linalg.eigh, torch.linalg.eigvalsh):
        for bad in (spoilt(NAN), spoilt(NAN, (1, 0)), spoilt(INF, (2, 0))):
            with pytest.raises(torch.linalg.LinAlgError) as caught:
                f(torch.tensor(bad))
            assert str(caught.value) == text
    same(torch.linalg.eigvalsh(torch.tensor(spoilt(INF))), [NAN] * 3)
    same(torch.linalg.eigvalsh(torch.tensor(spoilt(NAN, (0, 0), 2))), [NAN] * 2)
    with pytest.raises(torch.linalg.LinAlgError, match=r"^linalg.eigh: \(Batch element 1\): The"):
        torch.linalg.pinv(torch.tensor(np.stack([good(), spoilt(NAN)])), hermitian=True)


def test_the_other_triangle_is_not_read() -> None:
    for value in (NAN, INF):
        above, below = torch.tensor(spoilt(value, (0, 2))), torch.tensor(spoilt(value, (2, 0)))
        wanted = np.linalg.eigvalsh(good())
        same(torch.linalg.eigh(above).eigenvalues, wanted)
        same(torch.linalg.eigh(below, UPLO="U").eigenvalues, wanted)
        same(torch.linalg.cholesky(above), np.linalg.cholesky(good()))
        same(torch.linalg.cholesky(below, upper=True), np.linalg.cholesky(good()).T)


def test_one_number_is_its_own_eigenvalue() -> None:
    values, vectors = torch.linalg.eigh(torch.tensor([[[INF]], [[NAN]], [[2.0]]]))
    same(values, [[INF], [NAN], [2]])
    same(vectors, np.ones((3, 1, 1)))


def test_general_eigenvalues() -> None:
    for value in (NAN, INF):
        x = torch.tensor(np.stack([spoilt(value), good()]))
        text = r"^torch.linalg.eig: input tensor should not contain infs or NaNs\."
        with pytest.raises(RuntimeError, match=text):
            torch.linalg.eig(x)
        values = torch.linalg.eigvals(x)
        assert values[0].isnan().all() and not values[1].isnan().any()
        with pytest.raises(RuntimeError, match=text):
            torch.linalg.eigvals(x.requires_grad_())
        with torch.no_grad():
            assert torch.linalg.eigvals(x)[0].isnan().all()


# --- elimination ----------------------------------------------------------------------------------
def test_a_nan_spoils_an_inverse() -> None:
    for at in SPOILT:
        x = torch.tensor(spoilt(NAN, at))
        same(torch.linalg.inv(x), np.full((3, 3), NAN))
        same(torch.linalg.solve(x, torch.ones(3, dtype=DOUBLE)), [NAN] * 3)
        assert torch.linalg.inv_ex(x).info.item() == 0


def test_factors_after_a_pivot_that_is_not_finite() -> None:
    both, pivots, info = torch.linalg.lu_factor_ex(torch.tensor(spoilt(NAN, (0, 0), 2)))
    same(both, [[NAN, 0.1], [NAN, NAN]])
    assert pivots.tolist() == [1, 2] and info.item() == 0
    both, pivots, _ = torch.linalg.lu_factor_ex(torch.tensor([[1.0, 2.0], [NAN, 4.0], [5.0, 6.0]]))
    assert pivots.tolist() == [3, 2]  # a NaN is passed over
    same(torch.linalg.lu_factor_ex(torch.full((2, 2), INF)).LU, [[INF, INF], [NAN, NAN]])
    assert torch.linalg.det(torch.tensor(spoilt(INF, (1, 0)))).isnan()
    sign, size = torch.linalg.slogdet(torch.tensor(spoilt(INF, (1, 0))))
    assert sign.item() == 0 and size.isnan()
    same(torch.linalg.det(torch.tensor([[INF, 0.0], [0.0, -1.0]])), -INF)


def test_cholesky() -> None:
    found, info = torch.linalg.cholesky_ex(torch.full((3, 3), INF))
    assert info.item() == 2
    same(found[:2, :2], [[INF, 0], [NAN, NAN]])
    found, info = torch.linalg.cholesky_ex(torch.tensor(np.stack([good(), spoilt(NAN, (1, 0))])))
    assert info.tolist() == [0, 2]
    same(found[0], np.linalg.cholesky(good()))
    with pytest.raises(torch.linalg.LinAlgError, match=r"^linalg.cholesky: \(Batch element 1\): "):
        torch.linalg.cholesky(torch.tensor(np.stack([good(), spoilt(NAN)])))
    tiny = torch.tensor(
        [[1e-42, 1.0, 1.0], [1.0, 2.0, 0.1], [1.0, 0.1, 3.0]], dtype=torch.complex64
    )
    assert torch.linalg.cholesky_ex(tiny).info.item() == 2


def test_the_inverse_from_a_factor_that_is_singular() -> None:
    text = r"^cholesky_inverse: The diagonal element 2 is zero, the inversion could not be"
    with pytest.raises(torch.linalg.LinAlgError, match=text):
        torch.cholesky_inverse(torch.diag(torch.tensor([1.0, 0.0, 0.0])))
    with pytest.raises(torch.linalg.LinAlgError, match=r"^cholesky_inverse: \(Batch element 1\)"):
        torch.cholesky_inverse(torch.stack([torch.eye(2), torch.zeros(2, 2)]))


@pytest.mark.parametrize("value", [1e-40, 3e38])
def test_singular_matrices_at_the_ends_of_the_range(value: float) -> None:
    x = torch.stack([torch.eye(2), torch.full((2, 2), value)])
    inverse, info = torch.linalg.inv_ex(x)
    assert info.tolist() == [0, 2]
    same(inverse[0], np.eye(2))
    with pytest.raises(torch.linalg.LinAlgError, match=r"^linalg.inv: \(Batch element 1\): The"):
        torch.linalg.inv(x)
    with pytest.raises(torch.linalg.LinAlgError, match="^torch.linalg.solve: The solver failed"):
        torch.linalg.solve(x[1], torch.ones(2))


# --- least squares --------------------------------------------------------------------------------
@pytest.mark.parametrize(("driver", "first"), [("gelsy", 4), ("gelsd", 4), ("gels", 5)])
def test_least_squares_refuses_nan(driver: str, first: int) -> None:
    a, b = torch.tensor(good()), torch.ones(3, 2, dtype=DOUBLE)
    for x, y, at in ((torch.tensor(spoilt(NAN)), b, first), (a, b * NAN, first + 2)):
        text = rf"^torch.linalg.lstsq: Argument {at} has illegal value"
        with pytest.raises(RuntimeError, match=text):
            torch.linalg.lstsq(x, y, driver=driver)
    same(torch.linalg.lstsq(a, b * INF, driver=driver).solution, np.full((3, 2), NAN))


def test_residuals_are_told_of_full_rank_alone() -> None:
    a = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    b = torch.ones(3, 1)
    assert torch.linalg.lstsq(a, b, driver="gelsd").residuals.shape == (0,)
    a = a + torch.diag(torch.ones(3))[:, :2]
    assert torch.linalg.lstsq(a, b, driver="gelsd").residuals.shape == (1,)


# --- products -------------------------------------------------------------------------------------
def test_the_order_of_three_products() -> None:
    x = torch.tensor([[-INF, 1.0], [2.0, 3.0]])
    same(torch.linalg.multi_dot([x, x, x]), (x @ x @ x).tolist())


# --- live -----------------------------------------------------------------------------------------
CHECKED: dict[str, Callable[[Any, Any], Any]] = {
    "svdvals": lambda t, x: t.linalg.svdvals(x),
    "matrix_norm": lambda t, x: t.linalg.matrix_norm(x, "nuc"),
    "cond": lambda t, x: t.linalg.cond(x),
    "matrix_rank": lambda t, x: t.linalg.matrix_rank(x),
    "inv": lambda t, x: t.linalg.inv(x),
    "det": lambda t, x: t.linalg.det(x),
    "slogdet": lambda t, x: t.linalg.slogdet(x)[1],
    "lu": lambda t, x: t.linalg.lu_factor(x)[0],
    "solve": lambda t, x: t.linalg.solve(x, x),
}


@pytest.mark.parametrize("name", CHECKED)
def test_as_pytorch_has_it(worker: Worker, name: str) -> None:
    theirs = pytest.importorskip("torch")
    ours_ends = call(worker, "linalg.svdvals(a)", spoilt(INF))  # or the calls below would not
    assert ours_ends["error"] is None
    for value in (NAN, INF, -INF, 1e300, 0.0):
        for at in SPOILT:
            for batch in (spoilt(value, at), np.stack([good(), spoilt(value, at)])):
                found: list[Any] = []
                for library in (torch, theirs):
                    try:
                        found.append(CHECKED[name](library, library.tensor(batch)).numpy())
                    except RuntimeError as error:
                        found.append((type(error).__name__, str(error)))
                assert isinstance(found[0], tuple) == isinstance(found[1], tuple)
                if isinstance(found[0], tuple):
                    assert found[0] == found[1]
                else:
                    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)


# --- dtypes that LAPACK does not know -------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: torch.linalg.svdvals(x.half()), "\"linalg_svd_cpu\" not implemented for 'Half'"),
        (lambda x: torch.linalg.cholesky(x.bfloat16()),
         "\"cholesky_cpu\" not implemented for 'BFloat16'"),
        (lambda x: torch.linalg.solve(x.half(), x.half()), "\"lu_cpu\" not implemented for 'Half'"),
        (lambda x: torch.det(x.half()), "\"lu_cpu\" not implemented for 'Half'"),
        (lambda x: torch.linalg.cross(x.bool(), x.bool()), "\"cross\" not implemented for 'Bool'"),
    ],
)  # fmt: skip
def test_refused_dtypes(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(NotImplementedError) as caught:
        call(torch.eye(3))
    assert str(caught.value) == text


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.bool])
def test_powers_of_low_precision_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match="^linalg.vander supports floating point, complex, and"):
        torch.linalg.vander(torch.ones(3, dtype=dtype))


# --- symmetric factors ----------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_what_comes_after_an_infinite_complex_pivot_is_nan(dtype: torch.dtype) -> None:
    a = torch.eye(3, dtype=dtype)
    a[0, 0] = complex(INF, 0)
    found = torch.linalg.ldl_factor_ex(torch.stack([torch.eye(3, dtype=dtype), a]))
    assert found.info.tolist() == [0, 2]
    assert found.LD[1].isnan().tolist() == [[False] * 3, [True, True, False], [True] * 3]
    assert torch.equal(found.LD[0], torch.eye(3, dtype=dtype))
    with pytest.raises(RuntimeError, match="^torch.linalg.ldl_factor: Unknown error code: 2"):
        torch.linalg.ldl_factor(a)
    a[1:, 1:], a[0, 0], a[2, 0] = torch.eye(2, dtype=dtype), 1, complex(INF, 0)  # a block of 2 x 2
    assert torch.linalg.ldl_factor_ex(a).info.item() == 3
    a[2, 0], a[2, 2] = 0, complex(INF, 0)  # nothing comes after
    assert torch.linalg.ldl_factor(a).LD.diagonal().isinf().tolist() == [False, False, True]


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_a_pivot_that_is_nan_is_told(dtype: torch.dtype, hermitian: bool) -> None:
    for i, j in ((0, 0), (2, 0), (1, 1), (2, 2)):
        a = torch.eye(3, dtype=dtype)
        a[i, j] = NAN
        found = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
        assert found.LD.diagonal().isnan().any() and found.info > 0


def test_norms_of_low_precision() -> None:
    text = "^linalg.matrix_norm: Low precision dtypes not supported. Got Half"
    with pytest.raises(RuntimeError, match=text):
        torch.linalg.matrix_norm(torch.eye(2).half(), 2)
    assert torch.linalg.matrix_norm(torch.eye(2).half(), 2, dtype=torch.float32).item() == 1


def test_infinite_complex_determinants_have_no_phase() -> None:
    a = torch.tensor([[complex(-math.inf, math.nan)]], dtype=torch.complex128)
    sign, log = torch.linalg.slogdet(a)
    assert torch.isnan(sign).item() and log.item() == math.inf
