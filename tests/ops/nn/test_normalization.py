"""`layer_norm` and `batch_norm`: values, gradients, running statistics, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.nn.helpers import F, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_layer_norm() -> None:
    x = torch.tensor([[1.0, 3.0], [5.0, 9.0]], requires_grad=True)
    w, b = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([10.0, 20.0])
    y = F.layer_norm(x, (2,), w, b, eps=0.0)
    assert y.tolist() == [[8.0, 23.0], [8.0, 23.0]]
    assert type(y.grad_fn).__name__ == "NativeLayerNormBackward0"
    y.sum().backward()
    assert w.grad.tolist() == [-2.0, 2.0]
    assert same(x.grad, [0, 0, 0, 0])  # two numbers are always sent to -1 and 1
    _, mean, rstd = torch.native_layer_norm(x, (2,), w, b, 0.0)
    assert mean.tolist() == [[2.0], [7.0]] and rstd.tolist() == [[1.0], [0.5]]
    assert F.layer_norm(torch.ones(0, 2), (2,)).shape == (0, 2)


def test_layer_norm_twice_differentiable() -> None:
    x = torch.tensor([[0.0, 1.0, 3.0]], dtype=torch.double, requires_grad=True)

    def slope(t: Any) -> Any:
        y = (F.layer_norm(t, (3,)) ** 3).sum()
        return torch.autograd.grad(y, t, create_graph=True)[0]

    (h,) = torch.autograd.grad(slope(x)[0, 0], x)
    step = 1e-6
    for j in range(3):
        up, down = (
            torch.tensor(
                [[v + s * (i == j) for i, v in enumerate((0.0, 1.0, 3.0))]],
                dtype=torch.double,
                requires_grad=True,
            )
            for s in (step, -step)
        )
        numeric = (slope(up)[0, 0].item() - slope(down)[0, 0].item()) / (2 * step)
        assert h[0, j].item() == pytest.approx(numeric, rel=1e-5)


def test_layer_norm_errors() -> None:
    x = torch.ones(2, 3)
    for shape, text in [
        ((2,), r"Given normalized_shape=\[2\], expected input with shape \[\*, 2\], but got input"),
        ((), "Expected normalized_shape to be at least 1-dimensional"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            F.layer_norm(x, shape)
    with pytest.raises(
        RuntimeError, match="Expected weight to be of same shape as normalized_shape"
    ):
        F.layer_norm(x, (3,), torch.ones(2))
    with pytest.raises(NotImplementedError, match="LayerNormKernelImpl"):
        F.layer_norm(x.to(torch.long), (3,))


def test_batch_norm() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    y = F.batch_norm(x, mean, var, training=True, momentum=0.5, eps=1e-30)
    assert y.tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert mean.tolist() == [1.0, 10.0]  # half way to [2, 20]
    assert same(var, [1.5, 100.5])  # half way to the unbiased [2, 200]
    y = F.batch_norm(x, torch.tensor([1.0, 10.0]), torch.tensor([4.0, 100.0]), eps=0.0)
    assert y.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    image = F.batch_norm(torch.ones(2, 3, 4, 5), None, None, training=True)
    assert image.shape == (2, 3, 4, 5) and image.abs().sum().item() == 0.0


def test_batch_norm_errors() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        F.batch_norm(x, None, None)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        F.batch_norm(x, torch.ones(2), torch.ones(3))
    with pytest.raises(
        ValueError, match=r"Expected more than 1 value per channel when training, got"
    ):
        F.batch_norm(x[:1], None, None, training=True)
    with pytest.raises(ValueError, match="batch_norm eps must be positive during training"):
        F.batch_norm(x, None, None, training=True, eps=0.0)
    with pytest.raises(ValueError, match="batch_norm eps must be non-negative"):
        F.batch_norm(x, torch.ones(3), torch.ones(3), eps=-1.0)
