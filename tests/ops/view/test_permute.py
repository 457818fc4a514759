"""`permute`, `transpose`, `movedim`, `.T`: shapes, strides, errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count


def test_permute_transpose_and_movedim() -> None:
    x = count(2, 3, 4)
    assert x.permute(2, 0, 1).stride() == (1, 12, 4)
    assert torch.permute(x, (-1, 0, 1)).shape == (4, 2, 3)
    assert x.transpose(0, -1).stride() == (1, 4, 12)
    assert x.mT.shape == (2, 4, 3)
    assert x.movedim((0, 1), (-1, 0)).shape == (3, 4, 2)
    assert x.swapaxes(0, 1).shape == x.swapdims(0, 1).shape == (3, 2, 4)
    m = count(2, 3)
    assert m.t().tolist() == m.T.tolist() == m.H.tolist() == [[0, 3], [1, 4], [2, 5]]
    z = torch.tensor([[1 + 2j]])
    assert z.mH.tolist() == [[1 - 2j]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.T.shape == (4, 3, 2)
        assert torch.tensor(1.0).T.shape == ()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.t()", RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
        ("x.permute(0, 0, 1)", RuntimeError, r"permute\(\): duplicate dims are not allowed."),
        ("x.permute(0, 1)", RuntimeError, "does not match the length of the desired ordering"),
        ("x.transpose(0, 3)", IndexError, r"Dimension out of range \(expected to be in range of"),
        ("x.movedim((0, 0), (1, 2))", RuntimeError, "movedim: repeated dim in `source`"),
        ("x[0, 0].mT", RuntimeError, "tensor.mT is only supported on matrices or batches"),
        ("x.H", RuntimeError, r"tensor.H is only supported on matrices \(2-D tensors\). Got 3-D"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})
