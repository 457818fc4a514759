"""`nll_loss`, `cross_entropy`, `kl_div`: classes, ignored targets, weights, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from rushlight.arrays import kernels
from tests.ops.nn.loss_helpers import F, double, leaf, same

INF, NAN = math.inf, math.nan


# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_nll_loss() -> None:
    x = leaf([-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0])
    t = torch.tensor([2, 0])
    y = F.nll_loss(x, t, reduction="none")
    assert y.tolist() == [3.0, 4.0] and type(y.grad_fn).__name__ == "NllLossBackward0"
    y = F.nll_loss(x, t, weight=double(1.0, 1.0, 3.0))
    assert y.item() == (3 * 3 + 4) / 4
    y.backward()
    assert x.grad.tolist() == [[0.0, 0.0, -0.75], [-0.25, 0.0, 0.0]]
    assert F.nll_loss(x[0], torch.tensor(1)).item() == 2.0
    assert F.nll_loss(x, t.to(torch.uint8)).item() == 3.5


def test_ignored_targets() -> None:
    x = leaf([-1.0, -2.0], [INF, INF], [-4.0, -5.0])
    t = torch.tensor([0, -100, 1])
    assert F.nll_loss(x, t, reduction="none").tolist() == [1.0, 0.0, 5.0]
    y = F.nll_loss(x, t)
    assert y.item() == 3.0
    y.backward()
    assert x.grad.tolist() == [[-0.5, 0.0], [0.0, 0.0], [0.0, -0.5]]
    assert F.nll_loss(x, torch.tensor([0, 1, 1]), ignore_index=1, reduction="sum").item() == 1.0
    assert math.isnan(F.nll_loss(x, torch.tensor([-100, -100, -100])).item())


def test_a_class_at_each_position() -> None:
    x = torch.arange(12.0).reshape(1, 3, 4).requires_grad_()
    t = torch.tensor([[0, 1, 2, 0]])
    y = F.nll_loss(x, t, reduction="none")
    assert y.tolist() == [[-0.0, -5.0, -10.0, -3.0]]
    assert type(y.grad_fn).__name__ == "NllLoss2DBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [[[-1, 0, 0, -1], [0, -1, 0, 0], [0, 0, -1, 0]]]
    image = F.cross_entropy(torch.zeros(2, 3, 4, 5), torch.zeros(2, 4, 5, dtype=torch.long))
    assert image.item() == pytest.approx(math.log(3))


def test_cross_entropy() -> None:
    x = leaf([0.0, 0.0], [1000.0, 0.0])
    y = F.cross_entropy(x, torch.tensor([0, 1]), reduction="none")
    assert same(y, [math.log(2), 1000])
    y.sum().backward()
    assert same(x.grad, [-0.5, 0.5, 1, -1])
    soft = double([0.5, 0.5], [1.0, 0.0])
    assert same(F.cross_entropy(x, soft, reduction="none"), [math.log(2), 0])
    assert same(F.cross_entropy(x, soft), [math.log(2) / 2])
    zero = double([0.0, 0.0, 0.0, 0.0])
    assert same(F.cross_entropy(zero, torch.tensor([1]), label_smoothing=0.3), [math.log(4)])
    logits = double([2.0, 0.0])
    p = math.log(1 + math.exp(-2.0))
    smooth = F.cross_entropy(logits, torch.tensor([0]), label_smoothing=0.5)
    assert same(smooth, [0.75 * p + 0.25 * (p + 2)])
    hard = F.cross_entropy(logits, double([0.75, 0.25]))
    assert same(smooth, hard.reshape(-1).tolist())
    assert same(F.cross_entropy(double(0.0, 0.0), torch.tensor(0)), [math.log(2)])


def test_class_errors() -> None:
    x, t = torch.ones(2, 3), torch.tensor([0, 2])
    index: list[tuple[Any, str]] = [
        (torch.tensor([0, 3]), r"Target 3 is out of bounds\."),
        (torch.tensor([0, -1]), r"Target -1 is out of bounds\."),
    ]
    for target, text in index:
        for fn in (F.nll_loss, F.cross_entropy):
            with pytest.raises(IndexError, match=text):
                fn(x, target)
    with pytest.raises(
        ValueError, match=r"Expected input batch_size \(2\) to match target batch_siz"
    ):
        F.nll_loss(x, torch.tensor([0]))
    runtime: list[tuple[Any, str]] = [
        (
            lambda: F.nll_loss(x, torch.ones(2)),
            "expected target dtype to be Long or Byte, but got Fl",
        ),
        (
            lambda: F.nll_loss(x, t, torch.ones(2)),
            "weight tensor should be defined either for all 3",
        ),
        (
            lambda: F.cross_entropy(x, x.to(torch.long)),
            "Expected floating point type for target wit",
        ),
        (
            lambda: F.cross_entropy(x, t, label_smoothing=2.0),
            "label_smoothing must be between 0.0 a",
        ),
        (
            lambda: F.cross_entropy(x, torch.ones(2, 2)),
            "0D or 1D target tensor expected, multi-targ",
        ),
        (
            lambda: F.cross_entropy(x, x, ignore_index=1),
            "ignore_index is not supported for floating",
        ),
    ]
    for call, text in runtime:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_kl_div() -> None:
    log_q, p = double([0.5, 0.5]).log(), double([1.0, 0.0])
    assert same(F.kl_div(log_q, p, reduction="batchmean"), [math.log(2)])  # 0 log 0 is 0
    assert same(F.kl_div(log_q, p, reduction="sum"), [math.log(2)])
    assert same(F.kl_div(log_q, log_q, reduction="sum", log_target=True), [0])
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
        assert same(F.kl_div(log_q, p), [math.log(2) / 2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("ignored", [-100, 1])
@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_weights_of_classes(
    how: str, ignored: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(7, 4, dtype=dtype, requires_grad=True)
    t = torch.tensor([0, 3, 1, 1, 2, 0, 3])
    w = torch.tensor([0.5, 2.0, 1.5, 0.25], dtype=dtype)

    def run() -> tuple[Any, Any]:
        y = torch.nn.functional.nll_loss(x, t, w, ignore_index=ignored, reduction=how)
        return y, torch.autograd.grad(y.sum(), [x])[0]

    quick = run()
    for name in ("nll", "nll_back"):
        monkeypatch.setattr(kernels, name, lambda *_: None)
    for a, b in zip(quick, run(), strict=True):
        torch.testing.assert_close(a, b)
