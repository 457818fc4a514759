"""Derivatives of the ops between sparse and dense tensors, to second order, and what goes further
than PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

PLACES = [[0, 1, 1], [2, 0, 2]]


def coo(v: Any) -> Any:
    return torch.sparse_coo_tensor(PLACES, v, (2, 3))


def csr(v: Any) -> Any:
    return torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], v, (2, 3))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "to_dense": lambda v, w: coo(v).to_dense() * w.t()[:2],
    "mm": lambda v, w: coo(v) @ w,
    "sparse.mm": lambda v, w: torch.sparse.mm(coo(v), w),
    "addmm": lambda v, w: torch.sparse.addmm(w[:2], coo(v), w, beta=2.0, alpha=3.0),
    "values": lambda v, w: coo(v).coalesce().values() * v,
    "times": lambda v, w: (coo(v) * 2).to_dense(),
    "plus": lambda v, w: w.t()[:2] + coo(v),
    "mask": lambda v, w: w.t()[:2].sparse_mask(coo(v)).to_dense() * v.sum(),
    "transposed": lambda v, w: coo(v).t().to_dense() @ w[:2],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    torch.manual_seed(0)
    v = torch.randn(3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    f = FUNCTIONS[name]
    assert gradcheck(lambda v, w: f(v, w), (v, w), check_forward_ad=name != "plus")
    assert gradgradcheck(lambda v, w: f(v, w), (v, w))


def test_complex_products_have_conjugate_gradients() -> None:
    torch.manual_seed(0)
    v = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    w = torch.randn(3, 2, dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda v, w: torch.sparse.mm(coo(v), w), (v, w))


def test_gradients_of_the_values_of_a_csr_tensor() -> None:
    v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = torch.arange(6.0).reshape(3, 2).requires_grad_()
    torch.sparse.mm(csr(v), w).sum().backward()
    assert v.grad.tolist() == [9.0, 1.0, 9.0]
    assert w.grad.tolist() == [[2.0, 2.0], [0.0, 0.0], [4.0, 4.0]]
    softmax = torch.sparse.softmax(coo(v.detach().double().requires_grad_()), 1)
    assert softmax.coalesce().values().tolist() == pytest.approx([1.0, 0.2689414, 0.7310586])


def test_softmax_has_its_derivative() -> None:
    v = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    e = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64)
    for dim in (0, 1):
        for fn in (torch.sparse.softmax, torch.sparse.log_softmax):
            assert gradcheck(lambda v, fn=fn, dim=dim: fn(coo(v), dim).to_dense() * e, (v,))


def test_csr_tensors_subtract_divide_and_copy() -> None:
    import copy

    c = csr(torch.tensor([1.0, 2.0, 3.0]))
    assert (c - c).values().tolist() == [0.0, 0.0, 0.0]
    assert (c / 2).values().tolist() == [0.5, 1.0, 1.5]
    again = copy.deepcopy(c)
    again.mul_(2)
    assert c.values().tolist() == [1.0, 2.0, 3.0] and again.values().tolist() == [2.0, 4.0, 6.0]


def test_gradient_clipping_takes_sparse_gradients() -> None:
    table = torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1, 1])).sum().backward()
    total = torch.nn.utils.clip_grad_norm_(table.parameters(), 1.0)
    assert total.item() == pytest.approx(8**0.5)
    assert table.weight.grad.is_sparse
    assert table.weight.grad.to_dense().norm().item() == pytest.approx(1.0, rel=1e-5)


def test_what_has_no_meaning_says_so_in_the_words_of_the_op() -> None:
    s = torch.eye(2).to_sparse()
    for name in ("exp", "cos", "max", "cumsum"):
        with pytest.raises(
            NotImplementedError, match=f"'aten::{name}' with arguments from the 'Sp"
        ):
            getattr(s, name)(*([0] if name == "cumsum" else []))


def test_a_sparse_gradient_with_history() -> None:
    table = torch.ones(3, 2, requires_grad=True)
    rows = torch.nn.functional.embedding(torch.tensor([1, 2]), table, padding_idx=2, sparse=True)
    (g,) = torch.autograd.grad((rows**2).sum(), table, create_graph=True)
    assert g.is_sparse and g._indices().tolist() == [[1]]
    (second,) = torch.autograd.grad(g.to_dense().sum(), table)
    assert second.to_dense().tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]


def test_frequency_and_sparse_do_not_go_together() -> None:
    table = torch.ones(3, 2, requires_grad=True)
    embed = torch.nn.functional.embedding
    with pytest.raises(RuntimeError, match="^embedding_backward: scale_grad_by_freq not supported"):
        embed(torch.tensor([1]), table, scale_grad_by_freq=True, sparse=True)


def test_large_products_do_not_become_dense() -> None:
    n = 100_000
    s = torch.sparse_coo_tensor([[0, n - 1], [n - 1, 0]], [2.0, 3.0], (n, n), requires_grad=True)
    torch.sparse.mm(s, torch.ones(n, 1)).sum().backward()
    assert s.grad is not None and s.grad.is_sparse  # dense it would take 40 GB


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck_of_sparse_inputs(layout: Any, masked: bool) -> None:
    check = torch.sparse.as_sparse_gradcheck(gradcheck)
    x = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]], dtype=torch.float64)
    s = x.to_sparse(layout=layout).requires_grad_()
    w = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert check(lambda s, w: torch.sparse.mm(s, w), (s, w), masked=masked)
    assert check(lambda s: s * 2, (s,), masked=masked)
