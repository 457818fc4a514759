"""`addmm` and its family: values, gradients, in-place forms."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.matmul.helpers import NAN, names


def test_addmm_family() -> None:
    m = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    one = torch.ones(2)
    assert torch.addmm(one, m, m).tolist() == [[8.0, 11.0], [16.0, 23.0]]
    assert torch.addmm(one, m, m, beta=10, alpha=0.5).tolist() == [[13.5, 15.0], [17.5, 21.0]]
    assert torch.addmm(torch.full((2, 2), NAN), m, m, beta=0).tolist() == (m @ m).tolist()
    assert torch.addmv(one, m, one, alpha=2).tolist() == [7.0, 15.0]
    assert torch.addr(torch.zeros(2, 2), one, torch.tensor([1.0, 2.0])).tolist() == [[1.0, 2.0]] * 2
    batch = torch.stack([m, m])
    assert torch.addbmm(torch.zeros(2, 2), batch, batch).tolist() == (2 * (m @ m)).tolist()
    assert torch.baddbmm(one, batch, batch)[1].tolist() == (m @ m + 1).tolist()
    ints = torch.ones(2, 2, dtype=torch.int64)
    assert torch.addmm(ints, ints, ints, alpha=0.5).tolist() == [[1, 1], [1, 1]]  # 0.5 becomes 0
    assert torch.addr(ints > 0, ints[0] > 0, ints[0] > 0).dtype is torch.bool


def test_in_place_forms() -> None:
    x = torch.zeros(2, 2)
    m = torch.ones(2, 2, requires_grad=True)
    assert x.addmm_(m, m) is x
    assert x.tolist() == [[2.0, 2.0], [2.0, 2.0]] and names(x) == "Addmm"
    x.sum().backward()
    assert m.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    with pytest.raises(RuntimeError, match=r"Bad in-place call: input tensor size \[2\] and"):
        torch.ones(2).addmm_(torch.ones(2, 2), torch.ones(2, 2))
    assert torch.zeros(2).addmv_(torch.ones(2, 3), torch.ones(3)).tolist() == [3.0, 3.0]
    assert torch.zeros(1, 2).addr_(torch.ones(1), torch.ones(2)).tolist() == [[1.0, 1.0]]
