"""`softmax`, `glu`, `cosine_similarity`, `normalize`: values, gradients, dtypes, errors."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.nn.helpers import INF, NAN, F, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_glu() -> None:
    assert F.glu(torch.tensor([[2.0], [0.0]]), 0).tolist() == [[1.0]]
    with pytest.raises(
        RuntimeError, match="Halving dimension must be even, but dimension 1 is size"
    ):
        F.glu(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="glu does not support scalars"):
        F.glu(torch.tensor(1.0))


def test_softmax() -> None:
    x = torch.tensor([[0.0, 0.0], [1000.0, 0.0]])
    assert torch.softmax(x, 1).tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert torch.log_softmax(x, 1)[1].tolist() == [0.0, -1000.0]
    assert x.softmax(0)[:, 1].tolist() == [0.5, 0.5]
    assert torch.softmax(torch.tensor(3.0), 0).item() == 1.0
    assert torch.softmax(torch.ones(2, 0), 1).shape == (2, 0)
    assert same(torch.softmax(torch.tensor([-INF, 0.0]), 0), [0, 1])
    assert same(torch.softmax(torch.tensor([-INF, -INF]), 0), [NAN, NAN])
    assert torch.softmax(torch.tensor([1, 1]), 0, dtype=torch.double).dtype is torch.double
    assert F.softmin(torch.tensor([0.0, 1000.0]), 0).tolist() == [1.0, 0.0]
    low = torch.softmax(torch.zeros(4, dtype=torch.float16), 0)
    assert low.dtype is torch.float16 and low.tolist() == [0.25] * 4


def test_softmax_gradient_by_hand() -> None:
    x = torch.zeros(2, dtype=torch.double, requires_grad=True)
    (g,) = torch.autograd.grad(torch.softmax(x, 0)[0], x, create_graph=True)
    assert g.tolist() == [0.25, -0.25]
    (h,) = torch.autograd.grad(g[0], x)  # p(1-p)(1-2p) is 0 at a half
    assert h.tolist() == [0.0, 0.0]
    x = torch.zeros(2, dtype=torch.double, requires_grad=True)
    torch.log_softmax(x, 0)[0].backward()
    assert x.grad.tolist() == [0.5, -0.5]


def test_softmax_errors() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(
        IndexError, match=r"Dimension out of range \(expected to be in range of \[-2"
    ):
        torch.softmax(x, 2)
    with pytest.raises(NotImplementedError, match="softmax_lastdim_kernel_impl"):
        torch.softmax(x.to(torch.long), 1)
    with pytest.warns(
        UserWarning, match="Implicit dimension choice for softmax has been deprecated"
    ):
        assert F.softmax(x).shape == (2, 3)


def test_gumbel_softmax() -> None:
    logits = torch.zeros(5, 3, requires_grad=True)
    hard = F.gumbel_softmax(logits, hard=True)
    assert sorted(set(hard.reshape(-1).tolist())) == [0.0, 1.0] and hard.sum().item() == 5.0
    hard[:, 0].sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_normalize_and_cosine_similarity() -> None:
    a, b = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])
    assert same(F.normalize(a), [0.6, 0.8])
    assert F.normalize(torch.zeros(1, 2)).tolist() == [[0.0, 0.0]]
    assert same(F.cosine_similarity(a, b), [0.96])
    assert F.cosine_similarity(torch.zeros(1, 2), b).tolist() == [0.0]
    assert same(F.pairwise_distance(a, torch.zeros(2)), [5.0], 1e-5)
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point"):
        F.cosine_similarity(torch.tensor([[1]]), torch.tensor([[1]]))


def test_the_gradient_of_log_softmax_sums_wide() -> None:
    """The sum of its gradients is more than float16 can hold."""
    w = torch.zeros(100_000, dtype=torch.float16, requires_grad=True)
    torch.log_softmax(w, 0).sum().backward()
    assert torch.isfinite(w.grad).all().item() and w.grad.abs().max().item() < 0.1
