"""A strided tensor answers about sparsity."""

from __future__ import annotations

import pytest

import rushlight as torch


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
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used"):
        x.requires_grad_().sparse_resize_((2, 2), 1, 1)
