"""Grids, outer products of sets, differences and cross products: values, errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces
from rushlight.ops.shape.pad import pad
from tests.ops.shape.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("torch.cross(x, x, 0)", RuntimeError, "inputs dimension 0 must have length 3. Got 2"),
        ("torch.diff(x[0, 0])", RuntimeError, "diff expects input to be at least one-dimension"),
        ("torch.combinations(x)", RuntimeError, r"Expect a 1D vector, but got shape \[2, 3\]"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3), "torch": torch, "pad": pad})


def test_meshgrid_and_cartesian_product() -> None:
    a, b = torch.tensor([1, 2]), torch.tensor([3, 4, 5])
    x, y = torch.meshgrid(a, b, indexing="ij")
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]] and y.tolist() == [[3, 4, 5], [3, 4, 5]]
    x, y = torch.meshgrid([a, b], indexing="xy")
    assert x.shape == (3, 2) and y.tolist() == [[3, 3], [4, 4], [5, 5]]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.meshgrid(a)
    assert "it will be required to pass the indexing" in str(seen[0].message)
    assert torch.cartesian_prod(a, a).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert torch.cartesian_prod(a) is a


def test_products_and_differences() -> None:
    x = leaf(2)
    assert torch.kron(x, torch.tensor([1.0, 10.0])).tolist() == [0, 0, 1, 10]
    assert grad_of(torch.kron(x, torch.tensor([1.0, 10.0])), x) == [1 + 20, 3 + 40]
    assert torch.kron(torch.eye(2), torch.tensor(3.0)).tolist() == [[3, 0], [0, 3]]
    e = leaf(3)
    c = torch.cross(e, torch.tensor([1.0, 0.0, 0.0]), dim=0)
    assert c.tolist() == [0, 2, -1]
    assert grad_of(c, e) == [0, -3, 2]
    linalg = namespaces["linalg"]["cross"]
    assert (
        linalg(torch.eye(3), torch.eye(3)[[1, 2, 0]]).tolist() == torch.eye(3)[[2, 0, 1]].tolist()
    )
    s = torch.tensor([1, 4, 9, 16])
    assert torch.diff(s, 2).tolist() == [2, 2]
    assert torch.diff(s, append=torch.tensor([0])).tolist() == [3, 5, 7, -16]
    assert torch.diff(torch.tensor([True, False])).tolist() == [True]
    assert torch.vander(torch.tensor([2.0, 3.0]), 3).tolist() == [[4, 2, 1], [9, 3, 1]]
