"""`matmul` and what is made of it: every rank, shapes, nodes, chains, strangers."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces
from tests.ops.matmul.helpers import NAN, names


# --- values ---------------------------------------------------------------------------------------
def test_every_rank() -> None:
    v, m = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (v @ v).item() == 5.0
    assert (v @ v).shape == ()
    assert (m @ v).tolist() == [5.0, 11.0]
    assert (v @ m).tolist() == [7.0, 10.0]
    assert (m @ m).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    batch = torch.stack([m, 2 * m])
    assert (batch @ v).tolist() == [[5.0, 11.0], [10.0, 22.0]]
    assert (v @ batch).tolist() == [[7.0, 10.0], [14.0, 20.0]]
    assert (batch @ m)[1].tolist() == [[14.0, 20.0], [30.0, 44.0]]
    assert (m @ batch)[1].tolist() == [[14.0, 20.0], [30.0, 44.0]]
    assert (batch @ batch)[1].tolist() == [[28.0, 40.0], [60.0, 88.0]]


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        ((3,), (5, 3, 2), (5, 2)),
        ((5, 2, 3), (1, 3, 4), (5, 2, 4)),
        ((6, 1, 2, 3), (5, 3, 4), (6, 5, 2, 4)),
        ((2, 3), (6, 5, 3, 4), (6, 5, 2, 4)),
        ((6, 5, 2, 3), (3,), (6, 5, 2)),
        ((0, 2, 3), (3, 4), (0, 2, 4)),
        ((2, 0), (0, 3), (2, 3)),
        ((0,), (0,), ()),
        ((4, 0, 3), (4, 3, 2), (4, 0, 2)),
    ],
)
def test_shapes(a: Any, b: Any, out: Any) -> None:
    y = torch.ones(a) @ torch.ones(b)
    assert y.shape == out
    assert all(value == a[-1] for value in y.reshape(-1).tolist())
    x, z = torch.ones(a, requires_grad=True), torch.ones(b, requires_grad=True)
    y = x @ z
    assert y.shape == out
    y.sum().backward()
    assert x.grad.shape == a and z.grad.shape == b


def test_nan_and_infinity_pass() -> None:
    m = torch.tensor([[NAN, 0.0], [1.0, 1.0]])
    y = m @ torch.ones(2, 2)
    assert math.isnan(y[0, 0].item()) and y[1].tolist() == [2.0, 2.0]


# --- nodes and gradients --------------------------------------------------------------------------
def test_matmul_is_made_of_its_parts() -> None:
    def path(a: Any, b: Any) -> str:
        return names(torch.ones(a, requires_grad=True) @ torch.ones(b, requires_grad=True))

    assert path((2, 3), (3, 2)) == "Mm"
    assert path((3,), (3,)) == "Dot"
    assert path((2, 3), (3,)) == "Mv"
    assert path((5, 2, 3), (3, 2)) == "UnsafeView Mm View"
    assert path((5, 2, 3), (3,)) == "UnsafeView Mv View"
    assert path((5, 2, 3), (5, 3, 4)) == "UnsafeView Bmm View Expand"
    assert path((2, 3), (5, 3, 4)) == "Clone Transpose UnsafeView Mm UnsafeView Clone Transpose"


def test_inner_outer_tensordot_and_chains() -> None:
    v, m = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.inner(m, v).tolist() == [5.0, 11.0]
    assert torch.inner(torch.tensor(2.0), v).tolist() == [2.0, 4.0]
    assert torch.outer(v, v).tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert torch.ger(v, torch.tensor([3])).dtype is torch.float32
    assert torch.tensordot(m, m, 2).item() == 30.0
    assert torch.tensordot(m, v, 0).shape == (2, 2, 2)
    assert torch.tensordot(m, m, ([0], [1])).tolist() == [[7.0, 15.0], [10.0, 22.0]]
    chain = namespaces["linalg"]["multi_dot"]
    assert chain([v, m, m, v]).item() == (v @ m @ m @ v).item()
    assert chain([m, m, m]).tolist() == (m @ m @ m).tolist()
    with pytest.warns(UserWarning, match=r"torch.chain_matmul is deprecated"):
        assert torch.chain_matmul(m, m).tolist() == (m @ m).tolist()


def test_other_types_are_refused() -> None:
    a = torch.ones(2, 2)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for @: 'Tensor' and 'int'"):
        a @ 3
    with pytest.raises(TypeError, match=r"for @: 'list' and 'Tensor'"):
        [1, 2] @ a
    with pytest.raises(TypeError, match=r"matmul\(\): argument 'other' \(position 2\) must be Ten"):
        torch.matmul(a, 3)
    b = a
    b @= a  # Python makes a new tensor
    assert b is not a and b.tolist() == [[2.0, 2.0], [2.0, 2.0]]
