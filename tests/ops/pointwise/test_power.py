"""Powers: dtypes, edges, derivatives, nodes, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import INF, NAN, leaf, same, slopes

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda i, h: i**2, torch.int64),
        (lambda i, h: i**2.0, torch.float32),
        (lambda i, h: 2**i, torch.int64),
        (lambda i, h: torch.float_power(i, 2), torch.float64),
        (lambda i, h: torch.square(i > 0), torch.int64),
    ],
)
def test_dtype_of_the_result(expression: Any, dtype: Any) -> None:
    made = expression(torch.tensor([1, 2]), torch.tensor([1.5, 2.0], dtype=torch.float16))
    assert made.dtype is dtype


def test_integer_powers() -> None:
    assert torch.pow(torch.tensor([1, -1, -1, 2]), torch.tensor([-1, -1, -2, -1])).tolist() == [
        1, -1, 1, 0,
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
        torch.tensor([2]) ** -1


def test_pow_at_zero_and_below() -> None:
    a, b = slopes(torch.pow, [0.0, 0.0, -1.0, 2.0], [0.0, 1.0, 2.0, 0.0])
    same(a, [0, 1, -2, 0])
    same(b, [0, 0, NAN, math.log(2)])
    (g,) = slopes(lambda x: x**0, [0.0, 1.0])
    same(g, [0, 0])
    (g,) = slopes(lambda x: 0**x, [0.0, 1.0])
    same(g, [0, 0])
    (g,) = slopes(lambda x: x**0.5, [0.0])
    same(g, [INF])


def test_second_derivatives() -> None:
    x = leaf([2.0])
    (g,) = torch.autograd.grad(x**3, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    same(h, [12])


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x, y: x**2, "PowBackward0"),
        (lambda x, y: x**y, "PowBackward1"),
        (lambda x, y: 2**x, "PowBackward2"),
        (lambda x, y: torch.square(x), "PowBackward0"),
    ],
)
def test_node_names(f: Any, name: str) -> None:
    assert f(leaf([0.5]), leaf([0.25])).grad_fn.name() == name


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i, b: torch.pow(2, 3), TypeError, r"pow\(\) received an invalid combination"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]), torch.tensor([True, False]))
