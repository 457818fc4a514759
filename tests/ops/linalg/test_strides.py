"""How results of linear algebra lie in memory: as PyTorch's do, whatever the order of the input.

It matters to whoever writes through a view: `reshape` of a matrix in columns is a copy.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import pytest

import rushlight as torch
from attack.linalg import CALLS

SHAPES: Final = {
    "S": [(2, 3, 3)], "A": [(2, 4, 2), (2, 2, 4)], "T": [(2, 4, 2)], "W": [(3, 3)],
}  # fmt: skip
VIEWS: Final = ("linalg.diagonal(a)",)  # they lie as their input does
KINDS: Final = {code: kind for kind, codes in CALLS.items() for code in codes if code not in VIEWS}

# PyTorch 2.13's strides of each result, for each of those shapes; sizes of 1 left out, "." for
# a result of no other dimension, "-" for an empty one
STRIDES: Final = {
    "linalg.cholesky(a)": ["9,1,3"],
    "linalg.cholesky(a, upper=True)": ["9,1,3"],
    "linalg.cholesky_ex(a)": ["9,1,3 1"],
    "cholesky(a)": ["9,1,3"],
    "cholesky_inverse(a)": ["9,1,3"],
    "cholesky_inverse(a, upper=True)": ["9,1,3"],
    "cholesky_solve(b, a)": ["6,1,3"],
    "cholesky_solve(b, a, upper=True)": ["6,1,3"],
    "linalg.inv(a)": ["9,1,3"],
    "linalg.inv_ex(a)": ["9,1,3 1"],
    "inverse(a)": ["9,1,3"],
    "linalg.solve(a, b)": ["6,1,3"],
    "linalg.solve(a, b.mT, left=False)": ["6,3,1"],
    "linalg.solve(a, b[..., 0])": ["1,2"],
    "linalg.solve_ex(a, b)": ["6,1,3 1"],
    "linalg.solve_triangular(a, b, upper=True)": ["6,1,3"],
    "linalg.solve_triangular(a, b, upper=False, unitriangular=True)": ["6,1,3"],
    "linalg.solve_triangular(a, b.mT, upper=False, left=False)": ["6,1,2"],
    "triangular_solve(b, a)": ["6,1,3 9,1,3"],
    "triangular_solve(b, a, transpose=True)": ["6,1,3 9,1,3"],
    "linalg.det(a)": ["1"],
    "det(a)": ["1"],
    "linalg.slogdet(a)": ["1 1"],
    "slogdet(a)": ["1 1"],
    "logdet(a)": ["1"],
    "linalg.eig(a)": ["3,1 9,1,3"],
    "linalg.eigvals(a)": ["3,1"],
    "linalg.eigh(a)": ["3,1 9,1,3"],
    "linalg.eigh(a, UPLO='U')": ["3,1 9,1,3"],
    "linalg.eigvalsh(a)": ["3,1"],
    "linalg.lu_solve(*torch.linalg.lu_factor(a), b)": ["6,1,3"],
    "linalg.lu_solve(*torch.linalg.lu_factor(a), b.mT, left=False)": ["6,3,1"],
    "linalg.lu_solve(*torch.linalg.lu_factor(a), b, adjoint=True)": ["6,1,3"],
    "lu_solve(b, *torch.linalg.lu_factor(a))": ["6,1,3"],
    "linalg.pinv(a, hermitian=True)": ["9,3,1"],
    "linalg.cond(a, 'fro')": ["1"],
    "linalg.cond(a, 'nuc')": ["1"],
    "linalg.cond(a, 1)": ["1"],
    "linalg.cond(a, -float('inf'))": ["1"],
    "linalg.matrix_rank(a, hermitian=True)": ["1"],
    "linalg.matrix_exp(a)": ["9,3,1"],
    "linalg.ldl_factor(a)": ["9,1,3 3,1"],
    "linalg.ldl_factor_ex(a)": ["9,1,3 3,1 1"],
    "linalg.ldl_solve(*torch.linalg.ldl_factor_ex(a)[:2], b)": ["6,1,3"],
    "linalg.vander(a)": ["27,9,3,1"],
    "linalg.vecdot(a, a)": ["3,1"],
    "linalg.matmul(a, b)": ["6,2,1"],
    "linalg.matrix_power(a, 0)": ["9,3,1"],
    "linalg.matrix_power(a, 1)": ["9,3,1"],
    "linalg.matrix_power(a, 3)": ["9,3,1"],
    "linalg.matrix_power(a, -2)": ["9,3,1"],
    "matrix_power(a, -1)": ["9,1,3"],
    "linalg.svd(a)": ["16,1,4 2,1 4,1,2", "4,1,2 2,1 16,1,4"],
    "linalg.svd(a, full_matrices=False)": ["8,1,4 2,1 4,1,2", "4,1,2 2,1 8,1,2"],
    "linalg.svdvals(a)": ["2,1", "2,1"],
    "svd(a)": ["8,1,4 2,1 4,2,1", "4,1,2 2,1 8,2,1"],
    "svd(a, some=False)": ["16,1,4 2,1 4,2,1", "4,1,2 2,1 16,4,1"],
    "svd(a, compute_uv=False)": ["16,4,1 2,1 4,1,2", "4,2,1 2,1 16,1,4"],
    "linalg.qr(a)": ["8,1,4 4,1,2", "4,1,2 8,1,2"],
    "linalg.qr(a, mode='complete')": ["16,1,4 8,1,4", "4,1,2 8,1,2"],
    "linalg.qr(a, mode='r')": ["- 4,1,2", "- 8,1,2"],
    "qr(a)": ["8,1,4 4,1,2", "4,1,2 8,1,2"],
    "geqrf(a)": ["8,1,4 2,1", "8,1,2 2,1"],
    "linalg.lu(a)": ["16,4,1 8,2,1 4,2,1", "4,2,1 4,2,1 8,4,1"],
    "linalg.lu_factor(a)": ["8,1,4 2,1", "8,1,2 2,1"],
    "linalg.lu_factor_ex(a)": ["8,1,4 2,1 1", "8,1,2 2,1 1"],
    "lu(a)": ["8,1,4 2,1", "8,1,2 2,1"],
    "lu_unpack(*torch.linalg.lu_factor(a))": ["16,4,1 8,2,1 4,2,1", "4,2,1 4,2,1 8,4,1"],
    "linalg.pinv(a)": ["8,4,1", "8,2,1"],
    "pinverse(a)": ["8,4,1", "8,2,1"],
    "linalg.lstsq(a, b)": ["8,1,4 - 1 -", "8,1,4 - 1 -"],
    "linalg.lstsq(a, b, driver='gels')": ["8,1,4 2,1 - -", "8,1,4 - - -"],
    "linalg.lstsq(a, b, driver='gelsd')": ["8,1,4 2,1 1 2,1", "8,1,4 - 1 2,1"],
    "linalg.lstsq(a, b, driver='gelss')": ["8,1,4 2,1 1 2,1", "8,1,4 - 1 2,1"],
    "linalg.matrix_norm(a)": ["1", "1"],
    "linalg.matrix_norm(a, 2)": ["1", "1"],
    "linalg.matrix_norm(a, -2, keepdim=True)": ["1", "1"],
    "linalg.matrix_norm(a, 'nuc', dim=(-1, -2))": ["1", "1"],
    "linalg.matrix_norm(a, 1)": ["1", "1"],
    "linalg.matrix_norm(a, -float('inf'))": ["1", "1"],
    "linalg.norm(a, 2, dim=(-2, -1))": ["1", "1"],
    "linalg.vector_norm(a, 2)": [".", "."],
    "norm(a, 'nuc', dim=(-2, -1))": ["1", "1"],
    "nuclear_norm(a, dim=(-2, -1))": ["1", "1"],
    "linalg.cond(a)": ["1", "1"],
    "linalg.cond(a, -2)": ["1", "1"],
    "linalg.matrix_rank(a)": ["1", "1"],
    "linalg.householder_product(a, a[..., 0, :])": ["8,1,4"],
    "orgqr(a, a[..., 0, :])": ["8,1,4"],
    "ormqr(a, a[..., 0, :], b)": ["8,1,4"],
    "ormqr(a, a[..., 0, :], b.mT, left=False)": ["8,1,2"],
    "linalg.multi_dot([a, a, a])": ["3,1"],
    "chain_matmul(a, a)": ["3,1"],
    "linalg.tensorinv(a, ind=1)": ["1,3"],
    "linalg.tensorsolve(a, b[:, 0])": ["1"],
    "linalg.cross(a[:3, :3], a[:3, :3].mT)": ["3,1"],
}  # fmt: skip


def drawn(shape: tuple[int, ...]) -> Any:
    """A positive matrix if it is square."""
    x = np.random.default_rng(0).standard_normal(shape)
    if shape[-1] == shape[-2]:
        x = (x + x.swapaxes(-1, -2)) * 0.2 + np.diag(np.arange(3.0, 3 + shape[-1]))
    return x


def layouts(x: Any) -> dict[str, Any]:
    """The same numbers in other orders, and with gaps."""
    wide = np.zeros((*x.shape[:-2], 2 * x.shape[-2], x.shape[-1] + 1))
    wide[..., ::2, :-1] = x
    found = {
        "rows": torch.tensor(x),
        "columns": torch.tensor(np.ascontiguousarray(x.swapaxes(-1, -2))).mT,
        "cut": torch.tensor(wide)[..., ::2, :-1],
    }
    if x.ndim > 2:
        last = np.ascontiguousarray(np.moveaxis(x, 0, -1))
        found["batch last"] = torch.tensor(last).movedim(-1, 0)
        found["expanded"] = torch.tensor(x[0]).expand(*x.shape)
    return found


def told(y: Any) -> str:
    if y.numel() == 0:
        return "-"
    return ",".join(str(s) for n, s in zip(y.shape, y.stride()) if n != 1) or "."


@pytest.mark.parametrize("code", STRIDES)
def test_strides(code: str) -> None:
    for shape, wanted in zip(SHAPES[KINDS[code]], STRIDES[code], strict=True):
        b = torch.tensor(np.random.default_rng(1).standard_normal((*shape[:-1], 2)))
        for name, a in layouts(drawn(shape)).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some are deprecated
                ys = eval("torch." + code, {"torch": torch, "a": a, "b": b})
            ys = [ys] if isinstance(ys, torch.Tensor) else ys
            assert " ".join(told(y) for y in ys) == wanted, (name, shape)


def test_every_call_has_its_strides() -> None:
    assert set(STRIDES) == set(KINDS)


@pytest.mark.parametrize("code", VIEWS)
def test_views_lie_as_their_input_does(code: str) -> None:
    for a in layouts(drawn((2, 3, 3))).values():
        y = eval("torch." + code, {"torch": torch, "a": a})
        batch, rows, columns = a.stride()
        assert y.data_ptr() == a.data_ptr() and y.stride() == (batch, rows + columns)


def test_complex_and_unbatched() -> None:
    x = torch.tensor(drawn((3, 3)), dtype=torch.complex64)
    assert torch.linalg.inv(x).stride() == (1, 3)
    assert torch.linalg.cholesky(x.conj(), upper=True).stride() == (1, 3)
    assert torch.cholesky_inverse(x).stride() == (1, 3)
    assert [y.stride() for y in torch.linalg.eigh(x)] == [(1,), (1, 3)]
    assert [y.stride() for y in torch.svd(x)] == [(1, 3), (1,), (3, 1)]
    assert torch.linalg.lstsq(x[:2], x[:2, :1].expand(2, 2)).solution.stride() == (1, 3)


def test_a_write_through_reshape_does_not_reach_the_inverse() -> None:
    y = torch.linalg.inv(torch.eye(3) * 2)
    y.reshape(-1)[0] = 7
    assert y[0, 0].item() == 0.5
    y.mT.reshape(-1)[0] = 7  # in this order the same memory
    assert y[0, 0].item() == 7


def test_broadcast_vectors() -> None:
    a = torch.tensor(drawn((2, 3, 3)))
    assert torch.linalg.solve(a, torch.ones(3, dtype=a.dtype)).stride() == (1, 2)
    assert torch.linalg.solve(a[0], torch.ones(3, dtype=a.dtype)).stride() == (1,)
    b = torch.ones(2, 4, dtype=a.dtype)
    solution = torch.linalg.lstsq(torch.tensor(drawn((2, 4, 2))), b).solution
    assert (solution.shape, solution.stride()) == ((2, 2), (4, 1))


def test_products_of_vectors() -> None:
    x = torch.tensor(drawn((2, 3, 3))).mT
    assert torch.linalg.cross(x, x).stride() == (9, 3, 1)
    assert torch.linalg.cross(x, x, dim=1).stride() == (9, 3, 1)


def test_strides_live() -> None:
    theirs = pytest.importorskip("torch")
    for code, kind in KINDS.items():
        for shape in SHAPES[kind]:
            found = []
            for library in (torch, theirs):
                names = {
                    "torch": library,
                    "a": library.tensor(drawn(shape)),
                    "b": library.tensor(np.ones((*shape[:-1], 2))),
                }
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ys = eval("torch." + code, names)
                ys = [ys] if isinstance(ys, library.Tensor) else ys
                found.append([told(y) for y in ys])
            assert found[0] == found[1], (code, shape)
