"""Sums, differences, products, quotients: dtypes, operators, in-place forms, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import leaf, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda i, h: h * 2.5, torch.float16),
        (lambda i, h: h + i, torch.float16),
        (lambda i, h: i / 2, torch.float32),
        (lambda i, h: i * 1j, torch.complex64),
    ],
)
def test_dtype_of_the_result(expression: Any, dtype: Any) -> None:
    made = expression(torch.tensor([1, 2]), torch.tensor([1.5, 2.0], dtype=torch.float16))
    assert made.dtype is dtype


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_a_truth_is_divided(dtype: Any) -> None:
    made = True / torch.tensor([1, 1], dtype=dtype)
    assert made.tolist() == [1.0, 1.0]
    assert made.dtype is (dtype if dtype.is_floating_point else torch.float32)


def test_division_rounds_as_asked() -> None:
    x = torch.tensor([7, -7, 7, -7])
    y = torch.tensor([2, 2, -2, -2])
    assert torch.div(x, y, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert torch.div(x, y, rounding_mode="floor").tolist() == [3, -4, -4, 3]
    assert (x % y).tolist() == [1, 1, -1, -1]
    assert torch.fmod(x, y).tolist() == [1, -1, 1, -1]
    assert (-7 // y).tolist() == [-4, -4, 3, 3]


def test_gradients_of_broadcast_operands_are_summed() -> None:
    a, b = leaf([[1.0], [2.0]]), leaf([3.0, 4.0, 5.0])
    (a**b).sum().backward()
    assert a.grad.shape == (2, 1)
    assert b.grad.shape == (3,)
    same(a.grad[0], [12])


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x, y: torch.div(x, y, rounding_mode="floor"), "DivBackward2"),
        (lambda x, y: torch.rsub(x, 1), "RsubBackward1"),
    ],
)
def test_node_names(f: Any, name: str) -> None:
    assert f(leaf([0.5]), leaf([0.25])).grad_fn.name() == name


def test_operators_turn_strangers_away() -> None:
    x = torch.ones(2)
    for name in ("__pow__", "__mod__", "__floordiv__", "__iadd__", "__rpow__"):
        assert getattr(x, name)("a") is NotImplemented
    with pytest.raises(TypeError, match="unsupported operand type"):
        x ** "a"
    with pytest.raises(TypeError, match="unsupported operand type"):
        x + "a"

    class Stranger:
        def __radd__(self, other: object) -> str:
            return "mine"

        __rsub__ = __rmul__ = __rtruediv__ = __rmatmul__ = __rpow__ = __radd__

    s = Stranger()
    assert [x + s, x - s, x * s, x / s, x @ s, x**s] == ["mine"] * 6


def test_operators_in_place() -> None:
    x = y = torch.tensor([5.0, -5.0])
    x += 1
    x -= 1
    x *= 2
    x /= 2
    assert x.tolist() == [5, -5]
    x %= 3
    assert x.tolist() == [2, 1]
    x **= 2
    assert x.tolist() == [4, 1]
    x //= 3
    assert x.tolist() == [1, 0]
    assert x is y


def test_in_place_keeps_the_dtype() -> None:
    i = torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        i.mul_(1.5)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        i.clamp_(0.5)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        i.pow_(2.0)
    assert i.pow_(2).tolist() == [1, 4]


def test_in_place_gradient() -> None:
    x = leaf([2.0])
    y = x * 1
    y.pow_(2).exp_()
    y.sum().backward()
    same(x.grad, [4 * math.exp(4)])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i, b: torch.add(x, "a"), TypeError, r"add\(\): argument 'other' \(position 2\)"),
        (lambda x, i, b: -b, RuntimeError, "Negation, the `-` operator, on a bool tensor"),
        (lambda x, i, b: b - b, RuntimeError, "Subtraction, the `-` operator, with two bool"),
        (lambda x, i, b: torch.add(i, 1, alpha=1.5), RuntimeError, "For integral input tensors"),
        (
            lambda x, i, b: torch.div(x, x, rounding_mode="up"),
            RuntimeError,
            "div expected rounding",
        ),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]), torch.tensor([True, False]))
