"""`einsum`: equations, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.matmul.helpers import count


def test_einsum() -> None:
    m, v = count(2, 3), torch.tensor([1.0, 1.0, 2.0])
    e = torch.einsum
    assert e("ij,j->i", m, v).tolist() == (m @ v).tolist()
    assert e("ij,jk", m, m.t()).tolist() == (m @ m.t()).tolist()
    assert e("ij->ji", m).tolist() == m.t().tolist()
    assert e("ij->", m).item() == 21.0
    assert e("ii", torch.eye(3)).item() == 3.0
    square = count(2, 2)
    assert e("ii->i", square).tolist() == [1.0, 4.0]
    assert e("ij,ij,ij->i", m, m, m).tolist() == [36.0, 405.0]
    assert e("...ij,...jk->...ik", count(4, 2, 3), m.t()).shape == (4, 2, 2)
    assert e("...ij->ij...", count(4, 2, 3)).shape == (2, 3, 4)
    assert e(" i j , j -> i ", m, v).tolist() == (m @ v).tolist()
    assert (
        e("bA,Ab", count(2, 3), count(3, 2)).item() == e("ij,ji", count(2, 3), count(3, 2)).item()
    )
    assert e(m, [0, 1], v, [1], [0]).tolist() == (m @ v).tolist()
    assert e(m, [0, ...], [..., 0]).shape == (3, 2)
    assert e("ij,jk->ik", torch.ones(2, 0), torch.ones(0, 4)).tolist() == [[0.0] * 4] * 2
    assert e("i,i->i", torch.tensor([1, 2]), torch.tensor([3, 4])).tolist() == [3, 8]
    assert e("ij,i->j", m, torch.ones(1)).tolist() == [5.0, 7.0, 9.0]  # size 1 broadcasts


def test_einsum_gradient() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    torch.einsum("ii,jk->", x, x).backward()  # trace times sum of all
    assert x.grad.tolist() == [[15.0, 5.0], [5.0, 15.0]]


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", [(2, 3)], "fewer operands were provided than specified"),
        ("ij->ji", [(2, 3), (2, 3)], "more operands were provided than specified"),
        ("ij->iz", [(2, 3)], "output subscript z does not appear in the equation"),
        ("ij->ii", [(2, 3)], "output subscript i appears more than once"),
        ("ijk->i", [(2, 3)], r"number of subscripts in the equation \(3\) does not match"),
        ("ij,ij->ij", [(2, 3), (3, 3)], "subscript i has size 3 for operand 1 which does not"),
        (
            "ii->i",
            [(2, 3)],
            "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
        ),
        ("i1->i", [(2, 3)], "invalid subscript given at index 1 in the equation string"),
        ("i.j->i", [(2, 3)], r"found '\.' for operand 0 that is not part of any ellipsis"),
        ("...i...->i", [(2, 3)], r"found '\.' for operand 0 for which an ellipsis was already"),
    ],
)
def test_einsum_errors(equation: str, shapes: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=r"einsum\(\): .*" + text):
        torch.einsum(equation, *[torch.ones(s) for s in shapes])


@pytest.mark.parametrize("equation", [np.ones(3), None, 7])
def test_einsum_wants_a_string(equation: Any) -> None:
    name = "numpy.ndarray" if isinstance(equation, np.ndarray) else type(equation).__name__
    with pytest.raises(TypeError) as caught:
        torch.einsum(equation, torch.ones(3))
    assert str(caught.value) == (
        f"einsum(): argument 'equation' (position 1) must be str, not {name}"
    )
