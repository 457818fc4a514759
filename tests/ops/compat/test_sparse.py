"""Methods about sparse tensors, and functions that are gone."""

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
