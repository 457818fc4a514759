"""Remainders, extremes and other functions of two tensors: edges, ties, nodes, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import NAN, leaf, same, slopes

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda i, h: i // 2, torch.int64),
        (lambda i, h: i % 2.5, torch.float32),
    ],
)
def test_dtype_of_the_result(expression: Any, dtype: Any) -> None:
    made = expression(torch.tensor([1, 2]), torch.tensor([1.5, 2.0], dtype=torch.float16))
    assert made.dtype is dtype


def test_extremes_of_nan() -> None:
    a, b = torch.tensor([NAN, 1.0]), torch.tensor([1.0, NAN])
    assert torch.maximum(a, b).isnan().tolist() == [True, True]
    assert torch.fmax(a, b).tolist() == [1, 1]


def test_ties_share_the_gradient() -> None:
    a, b = slopes(torch.maximum, [1.0, 1.0, NAN], [2.0, 1.0, 1.0])
    same(a, [0, 0.5, 1])
    same(b, [1, 0.5, 1])
    a, b = slopes(torch.fmin, [1.0, NAN], [1.0, 1.0])
    same(a, [1, 0])
    same(b, [0, 1])


@pytest.mark.parametrize("f", [lambda x: x // 2, lambda x: 2 % x, lambda x: torch.heaviside(x, x)])
def test_what_pytorch_leaves_without_a_derivative(f: Any) -> None:
    y = f(leaf([1.5]))
    assert repr(y).endswith("grad_fn=<NotImplemented>)")
    with pytest.raises(RuntimeError, match="is not implemented"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x, y: x % 2, "RemainderBackward0"),
        (lambda x, y: x % y, "RemainderBackward1"),
    ],
)
def test_node_names(f: Any, name: str) -> None:
    assert f(leaf([0.5]), leaf([0.25])).grad_fn.name() == name


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i, b: i // 0, RuntimeError, "ZeroDivisionError"),
        (lambda x, i, b: torch.fmod(i, 0), RuntimeError, "ZeroDivisionError"),
        (lambda x, i, b: torch.gcd(x, x), NotImplementedError, '"gcd_cpu" not implemented'),
        (lambda x, i, b: torch.maximum(x, torch.ones(3)), RuntimeError, "The size of tensor a"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]), torch.tensor([True, False]))
