"""Sparse tensors from their parts: what is wrong with the parts is told as PyTorch tells it."""

from __future__ import annotations

import pytest

import rushlight as torch


@pytest.mark.parametrize("name", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_dimensions_of_parts(name: str) -> None:
    fn, block = getattr(torch, f"{name}_tensor"), 2 * ("_b" in name)
    start = "values must have dimensionality > sum of batch and block dimensionalities"
    for batch, (outer, inner) in enumerate((([0, 1], [0]), ([[0, 1]], [[0]]))):
        for n in range(batch + block + 1):
            with pytest.raises(RuntimeError) as caught:
                fn(outer, inner, torch.ones((1,) * n))
            assert str(caught.value).startswith(f"{start} (={batch} + {block}) but got {n}")
    with pytest.raises(
        RuntimeError, match=r"^c\w+_indices must have dimensionality >= 1 but got 0"
    ):
        fn(0, [0], [[[1.0]]])
    with pytest.raises(RuntimeError, match="dimensionalities must be equal but got 1 and 0"):
        fn([0, 1], 0, [[[1.0]]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "bool"])
def test_sampled_products_are_of_full_precision(dtype: str) -> None:
    x = torch.eye(2).to(getattr(torch, dtype))
    with pytest.raises(
        RuntimeError, match="Expected self to be a floating-point or complex tensor"
    ):
        torch.sparse.sampled_addmm(x.to_sparse_csr(), x, x)
