"""`relu` and its family: values and slopes at the edges."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.nn.helpers import INF, NAN, F, same, slopes

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_relu_at_its_edges() -> None:
    x = torch.tensor([NAN, INF, -INF, -1.0, 0.0, 2.0])
    assert same(F.relu(x), [NAN, INF, 0, 0, 0, 2])
    assert slopes(F.relu, [NAN, INF, -INF, -1.0, 0.0, 2.0]) == [1, 1, 0, 0, 0, 1]
    assert torch.relu(torch.tensor([-2, 3])).tolist() == [0, 3]
    assert F.relu(torch.tensor(-1.0)).item() == 0.0
    assert F.relu(torch.ones(0, 2)).shape == (0, 2)
    assert F.relu(torch.ones(2, 3).t()).shape == (3, 2)
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        torch.relu(torch.tensor([True]))
    with pytest.raises(
        TypeError, match=r"relu\(\): argument 'input' \(position 1\) must be Tensor"
    ):
        F.relu(3)


def test_infinite_gradients_are_stopped_not_spoiled() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    F.relu(x).backward(torch.tensor([INF, INF]))
    assert x.grad.tolist() == [0.0, INF]


@pytest.mark.parametrize(
    ("fn", "values", "results", "derivatives"),
    [
        (F.relu6, [-1, 0, 3, 6, 7], [0, 0, 3, 6, 6], [0, 0, 1, 0, 0]),
        (F.leaky_relu, [-1, 0, 2, NAN], [-0.01, 0, 2, NAN], [0.01, 0.01, 1, 0.01]),
        (lambda x: F.threshold(x, 1, -9), [-INF, 1, 2, NAN], [-9, -9, 2, NAN], [0, 0, 1, 1]),
        (F.rrelu, [-24, 24], [-5.5, 24], [11 / 48, 1]),
    ],
)
def test_activations(fn: Any, values: Any, results: Any, derivatives: Any) -> None:
    values = [float(value) for value in values]
    assert same(fn(torch.tensor(values, dtype=torch.double)), results)
    assert slopes(fn, values) == pytest.approx(derivatives, abs=1e-12)


def test_prelu() -> None:
    x = torch.tensor([[-1.0, -2.0], [3.0, -4.0]], requires_grad=True)
    w = torch.tensor([0.5, 0.25], requires_grad=True)
    y = F.prelu(x, w)
    assert y.tolist() == [[-0.5, -0.5], [3.0, -1.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.5, 0.25], [1.0, 0.25]] and w.grad.tolist() == [-1.0, -6.0]
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers and input channel size"):
        F.prelu(x, torch.ones(3))
