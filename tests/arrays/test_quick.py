"""The short ways that gradients of plain arrays take lead where the long ones lead."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays.quick import products_of_others, sum_at, sum_at_several
from rushlight.arrays.vocabulary import SLOT

ALL = slice(None)
CASES: dict[str, tuple[tuple[int, ...], tuple[Any, ...], tuple[int, ...]]] = {
    "a vector": ((7,), (SLOT,), (5,)),
    "rows": ((7, 3), (SLOT,), (5,)),
    "rows by a matrix": ((7, 3), (SLOT,), (5, 2)),
    "many rows": ((70, 30), (SLOT,), (900,)),
    "blocks": ((4, 3, 2), (SLOT,), (9,)),
    "the last axis": ((3, 7), (..., SLOT), (5,)),
    "a middle axis": ((3, 7, 2), (..., SLOT, ALL), (5,)),
    "a single place": ((7, 3), (SLOT,), (1,)),
}


def long_way(g: Any, shape: tuple[int, ...], index: tuple[Any, ...], where: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    np.add.at(out, tuple(where if item is SLOT else item for item in index), g)
    return out


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("case", CASES)
def test_sums_by_place(case: str, dtype: str) -> None:
    shape, index, drawn = CASES[case]
    random = np.random.default_rng(1)
    axis = next(i for i in range(len(shape)) if shape[i] >= 7) if "axis" in case else 0
    where = random.integers(0, shape[axis], drawn)
    g = random.integers(-9, 9, (*shape[:axis], *drawn, *shape[axis + 1 :])).astype(dtype)
    y = sum_at(g, shape, index, where)
    assert y is not None and y.dtype == g.dtype and y.flags.c_contiguous
    np.testing.assert_array_equal(y, long_way(g, shape, index, where))
    turned = np.asfortranarray(g)
    np.testing.assert_array_equal(sum_at(turned, shape, index, where), y)


def test_sums_by_several_places() -> None:
    random = np.random.default_rng(2)
    i, j = random.integers(0, 4, (6, 2)), random.integers(0, 5, (6, 2))
    for shape in ((4, 5), (4, 5, 3)):
        g = random.integers(-9, 9, (6, 2, *shape[2:])).astype("f4")
        want = np.zeros(shape, "f4")
        np.add.at(want, (i, j), g)
        np.testing.assert_array_equal(sum_at_several(g, shape, (SLOT, SLOT), (i, j)), want)
        assert sum_at_several(g, shape, (SLOT, SLOT), (i - 5, j)) is None
        assert sum_at_several(g, shape, (SLOT, ALL, SLOT), (i, j)) is None
        assert sum_at_several(g, shape, (SLOT, SLOT), (i, j[:1])) is None
    x = torch.zeros(4, 5, requires_grad=True)
    y = x[torch.from_numpy(i), torch.from_numpy(j)]
    (found,) = torch.autograd.grad(y.sum(), x)
    want = np.zeros((4, 5), "f4")
    np.add.at(want, (i, j), 1)
    np.testing.assert_array_equal(found.numpy(), want)


def test_what_takes_the_long_way() -> None:
    g, where = np.ones((5, 3), "f4"), np.array([0, 1, 2, 3, 4])
    assert sum_at(g.astype("f2"), (7, 3), (SLOT,), where) is None
    assert sum_at(g, (7, 3), (SLOT,), where.astype("i4")) is None
    assert sum_at(g, (7, 3), (ALL, SLOT), where) is None
    assert sum_at(np.ones((1, 3), "f4"), (7, 3), (SLOT,), where) is None  # to be broadcast
    assert sum_at(np.ones(2000, "f4"), (7,), (SLOT,), np.zeros(2000, "i8")) is None  # too often
    assert sum_at(g[:0], (7, 3), (SLOT,), where[:0]) is None
    assert products_of_others(g.astype("f2")) is None and products_of_others(g[:0]) is None


def test_places_are_checked() -> None:
    g = np.ones((5, 3), "f4")
    for where in ([0, 1, 2, 3, 7], [0, 1, 2, 3, -8]):
        with pytest.raises(IndexError):
            sum_at(g, (7, 3), (SLOT,), np.array(where))
    assert sum_at(g, (7, 3), (SLOT,), np.array([-1] * 5)).tolist() == [[0.0] * 3] * 6 + [[5.0] * 3]
    far = np.array([0, 7, 1])
    assert sum_at(np.ones((2, 3), "f4"), (2, 7), (..., SLOT), far) is None
    big = np.ones((700, 40), "f4")
    assert sum_at(big, (9, 40), (SLOT,), np.full(700, 9)) is None
    assert sum_at(big, (9, 40), (SLOT,), np.full(700, -1)) is None


def test_rows_are_added_without_scipys_own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = importlib.import_module("scipy.sparse._sparsetools")
    monkeypatch.delattr(tools, "csc_matvecs")
    assert sum_at(np.ones((700, 40), "f4"), (9, 40), (SLOT,), np.zeros(700, "i8")) is None


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (3, 4), (2, 3, 1)])
def test_products_of_others(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)  # zeros among them
    y = products_of_others(x)
    assert y is not None and y.dtype == x.dtype
    for i in range(shape[-1]):
        np.testing.assert_allclose(y[..., i], np.delete(x, i, -1).prod(-1))
    y = products_of_others(x + 5)  # and without any
    for i in range(shape[-1]):
        np.testing.assert_allclose(y[..., i], np.delete(x + 5, i, -1).prod(-1), rtol=1e-6)
    odd = x + 5
    odd[..., 0] = np.inf
    with np.errstate(all="ignore"):  # in a rule, warnings of NumPy's are silent
        assert np.isfinite(products_of_others(odd)[..., 0]).all()


@pytest.mark.parametrize("n", [1024, 1500, 3000])
def test_products_of_many_others(n: int) -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, (2, n))
    want = x.prod(-1, keepdims=True) / x
    np.testing.assert_allclose(products_of_others(x), want, rtol=1e-11)
    np.testing.assert_allclose(products_of_others(np.asfortranarray(x)), want, rtol=1e-11)
    np.testing.assert_allclose(products_of_others(x.astype("f4")), want, rtol=1e-3)


def test_a_product_that_leaves_float32_has_its_gradient() -> None:
    x = torch.tensor([1e30, 1e30, 1e-30, 1e-30], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == pytest.approx([1e-30, 1e-30, 1e30, 1e30], rel=1e-6)


def test_gradients_through_indices() -> None:
    w = torch.arange(12.0).reshape(4, 3).requires_grad_()
    i = torch.tensor([1, 3, 1, -1])
    y = w[i]
    (g,) = torch.autograd.grad((y * y).sum(), w, create_graph=True)
    want = [[0.0] * 3, [12.0, 16.0, 20.0], [0.0] * 3, [36.0, 40.0, 44.0]]
    assert g.tolist() == want
    (h,) = torch.autograd.grad(g.sum(), w)
    assert h.tolist() == [[0.0] * 3, [4.0] * 3, [0.0] * 3, [4.0] * 3]
    (g,) = torch.autograd.grad(w.index_select(1, torch.tensor([2, 2, 0])).sum(), w)
    assert g.tolist() == [[1, 0, 2]] * 4
    (g,) = torch.autograd.grad(torch.nn.functional.embedding(i[:3], w).sum(), w)
    assert g.tolist() == [[0] * 3, [2] * 3, [0] * 3, [1] * 3]
