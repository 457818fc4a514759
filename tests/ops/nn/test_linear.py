"""`linear` and `bilinear`: shapes, nodes, gradients, errors."""

from __future__ import annotations

import rushlight as torch
from tests.ops.matmul.helpers import F, names


def test_linear() -> None:
    linear = F["linear"]
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    b = torch.tensor([10.0, 20.0, 30.0], requires_grad=True)
    x = torch.tensor([[1.0, 1.0]])
    y = linear(x, w, b)
    assert y.tolist() == [[13.0, 27.0, 41.0]] and names(y) == "Addmm"
    assert names(linear(x, w)) == "Mm"
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0]] * 3 and b.grad.tolist() == [1.0, 1.0, 1.0]
    assert linear(x[0], w, b).tolist() == [13.0, 27.0, 41.0]
    assert linear(torch.ones(4, 5, 2), w, b).shape == (4, 5, 3)
    assert linear(torch.ones(4, 2, 5).transpose(1, 2), w, b).shape == (4, 5, 3)
    assert linear(torch.ones(0, 2), w, b).shape == (0, 3)
    y = F["bilinear"](torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]]), torch.ones(1, 2, 1))
    assert y.tolist() == [[9.0]]


def test_bilinear_rounds_twice_in_low_precision() -> None:
    """First input1 @ weight, then the whole, as PyTorch's two products do."""
    b = torch.tensor([[1.3]], dtype=torch.bfloat16)
    w = torch.ones(1, 2, 1, dtype=torch.bfloat16)
    found = [
        F["bilinear"](torch.tensor([[1.0, k / 512]], dtype=torch.bfloat16), b, w).item()
        for k in (2, 5, 6, 7, 8)
    ]
    assert found == [1.296875, 1.3046875, 1.3203125, 1.3203125, 1.3203125]
