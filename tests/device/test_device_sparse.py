"""Sparse tensors on the device: the same expression on the CPU and on the GPU, compared."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch

EXPRESSIONS = """
x.to_sparse() | x.to_sparse(1) | x.to_sparse_csr() | x.to_sparse_csc() | x.to_sparse_bsr((1, 3))
x.to_sparse_bsc((2, 1)) | s.coalesce() | c.to_sparse() | s.to_sparse_csr() | s @ w | c @ w
torch.sparse.mm(s, w) | torch.sparse.mm(s, s.t()) | x + s | s + s | s * 2 | s * x | s * s | s.sin()
s.t() | s[1] | s.unsqueeze(0) | s.index_select(1, j) | torch.cat([s, s]) | torch.stack([s, s])
torch.sparse.sum(s) | torch.sparse.sum(s, 0) | torch.sparse.softmax(s, 1) | x.sparse_mask(s)
c.values()
torch.sparse.log_softmax(s, 0) | c * 2 | c.t() | s.norm() | s.clone().zero_() | s.clone().mul_(2)
torch.sparse.spdiags(x, torch.tensor([0, 1], device=d), (3, 3))
"""


def names(place: str) -> dict[str, Any]:
    x = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]], device=place)
    i = torch.tensor([[1, 0, 1], [2, 0, 2]], device=place)
    v = torch.tensor([0.25, 0.5, 0.375], device=place)
    return {
        "torch": torch, "x": x, "s": torch.sparse_coo_tensor(i, v, (2, 3)), "d": place,
        "c": x.to_sparse_csr(), "w": torch.arange(12.0, device=place).reshape(3, 4),
        "j": torch.tensor([2, 0, 2], device=place),
    }  # fmt: skip


TEXTS = [part.strip() for part in EXPRESSIONS.replace("\n", "|").split("|") if part.strip()]


@pytest.mark.parametrize("text", TEXTS)
def test_equals_the_cpu(text: str) -> None:
    here, there = (eval(text, names(place)) for place in ("cpu", "cuda"))
    assert there.device.type == "cuda" and there.layout is here.layout
    assert torch.allclose(there.to_dense().cpu(), here.to_dense())
    assert torch.equal(there.cpu().to_dense(), there.to_dense().cpu())


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_an_embedding_trains(name: str) -> None:
    found = []
    for place in ("cpu", "cuda"):
        table = torch.nn.Embedding(5, 2, sparse=True, device=place)
        with torch.no_grad():
            table.weight.copy_(torch.arange(10.0).reshape(5, 2) / 10)
        step = getattr(torch.optim, name)(table.parameters(), lr=0.1)
        for rows in ([1, 1, 3], [0, 1]):
            step.zero_grad()
            (table(torch.tensor(rows, device=place)) ** 2).sum().backward()
            step.step()
        assert table.weight.grad.is_sparse and table.weight.grad.device.type == place
        found.append(table.weight.detach().cpu())
    assert torch.allclose(*found)


def test_gradients_of_both_factors() -> None:
    s = torch.eye(3, device="cuda").to_sparse().requires_grad_()
    w = torch.arange(6.0, device="cuda").reshape(3, 2).requires_grad_()
    torch.sparse.mm(s, w).sum().backward()
    assert s.grad.is_sparse and s.grad.coalesce().values().tolist() == [1.0, 5.0, 9.0]
    assert w.grad.tolist() == [[1.0, 1.0]] * 3
