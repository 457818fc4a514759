"""`embedding` and `one_hot`: values, gradients, errors."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.nn.helpers import F, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_embedding() -> None:
    w = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    y = F.embedding(torch.tensor([[2, 0], [2, 1]]), w, padding_idx=-2)
    assert y.tolist() == [[[4.0, 5.0], [0.0, 1.0]], [[4.0, 5.0], [2.0, 3.0]]]
    assert type(y.grad_fn).__name__ == "EmbeddingBackward0"
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]  # row 1 is padding
    w.grad = None
    F.embedding(torch.tensor([2, 2, 0]), w, scale_grad_by_freq=True).sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert F.embedding(torch.tensor([], dtype=torch.long), w).shape == (0, 2)
    long = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    F.embedding(torch.tensor([0, 0, 1]), long, max_norm=1.0)
    assert same(long, [0.6, 0.8, 0.3, 0.4], 1e-5)
    for bad in (3, -1):
        with pytest.raises(IndexError, match="index out of range in self"):
            F.embedding(torch.tensor([bad]), w)
    with pytest.raises(RuntimeError, match="Expected tensor for argument #1 'indices' to have one"):
        F.embedding(torch.tensor([1.0]), w)


def test_one_hot() -> None:
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(torch.tensor(1), 3).tolist() == [0, 1, 0]
    assert F.one_hot(torch.tensor([], dtype=torch.long), 3).shape == (0, 3)
    for call, text in [
        (lambda: F.one_hot(torch.tensor([2]), 2), "Class values must be smaller than num_classes"),
        (lambda: F.one_hot(torch.tensor([-1])), "Class values must be non-negative"),
        (lambda: F.one_hot(torch.tensor([1.0])), "only applicable to index tensor of type Long"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()
