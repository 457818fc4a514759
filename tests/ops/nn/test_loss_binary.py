"""Binary cross entropy: values and gradients by hand, stability, errors."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from tests.ops.nn.loss_helpers import F, double, leaf, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_binary_cross_entropy() -> None:
    x = leaf(0.5, 0.25)
    y = F.binary_cross_entropy(x, double(1.0, 0.0), reduction="none")
    assert same(y, [math.log(2), -math.log(0.75)])
    y.sum().backward()
    assert same(x.grad, [-2.0, 1 / 0.75])
    sure = F.binary_cross_entropy(double(0.0, 1.0, 0.0), double(1.0, 0.0, 0.0), reduction="none")
    assert same(sure, [100, 100, 0])  # logarithms stop at -100
    assert same(
        F.binary_cross_entropy(double(0.5, 0.5), double(1.0, 1.0), double(1.0, 3.0)),
        [2 * math.log(2)],
    )
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(double(1.5), double(1.0))
    with pytest.raises(
        ValueError, match=r"Using a target size \(torch.Size\(\[1\]\)\) that is diff"
    ):
        F.binary_cross_entropy(double(0.5, 0.5), double(1.0))
    with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
        F.binary_cross_entropy(double(0.5), torch.ones(1))


def test_binary_cross_entropy_with_logits() -> None:
    fn = F.binary_cross_entropy_with_logits
    x = leaf(0.0, 1000.0, -1000.0)
    y = fn(x, double(1.0, 0.0, 1.0), reduction="none")
    assert same(y, [math.log(2), 1000, 1000])  # no overflow
    assert type(y.grad_fn).__name__ == "BinaryCrossEntropyWithLogitsBackward0"
    y.sum().backward()
    assert same(x.grad, [-0.5, 1, -1])
    x = leaf(0.0, 0.0)
    y = fn(x, double(1.0, 0.0), pos_weight=double(3.0), weight=double(2.0, 1.0), reduction="none")
    assert same(y, [6 * math.log(2), math.log(2)])
    y.sum().backward()
    assert same(x.grad, [-3, 0.5])
    with pytest.raises(
        ValueError, match=r"Target size \(torch.Size\(\[1\]\)\) must be the same as"
    ):
        fn(x, double(1.0))
