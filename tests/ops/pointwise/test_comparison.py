"""Comparisons, logic, bits and `where`: edges, promotion, errors."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest

import rushlight as torch

INF, NAN = math.inf, math.nan
# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_comparisons() -> None:
    x = torch.tensor([1.0, 2.0, NAN])
    assert (x == 2).tolist() == [False, True, False]
    assert (x != x).tolist() == [False, False, True]
    assert (x > 1.5).tolist() == [False, True, False]
    assert (x >= torch.tensor([1.0, 3.0, 1.0])).tolist() == [True, False, False]
    assert torch.gt(torch.tensor([2, 3]), 2.5).tolist() == [False, True]
    assert torch.tensor([1, 2]).lt_(2).tolist() == [1, 0]
    assert (torch.ones(2, 1) == torch.ones(3)).shape == (2, 3)
    assert (torch.ones(0) == 1).shape == (0,)
    assert not (torch.ones(1, requires_grad=True) > 0).requires_grad


def test_strangers_are_neither_equal_nor_ordered() -> None:
    x = torch.ones(2)
    assert (x == "a") is False
    assert (x == None) is False  # noqa: E711  # what is tested
    assert (x != "a") is True
    assert (x == [1, 1]) is False
    with pytest.raises(
        TypeError, match="'<' not supported between instances of 'Tensor' and 'str'"
    ):
        operator.lt(x, "a")
    assert len({x, x}) == 1


def test_close() -> None:
    a, b = torch.tensor([1.0, INF, NAN]), torch.tensor([1.0 + 1e-7, INF, NAN])
    assert torch.isclose(a, b).tolist() == [True, True, False]
    assert torch.isclose(a, b, equal_nan=True).tolist() == [True, True, True]
    assert torch.allclose(a[:2], b[:2])
    assert torch.isclose(torch.tensor([3]), torch.tensor([3])).tolist() == [True]
    assert torch.equal(torch.ones(2), torch.ones(2, dtype=torch.int64))
    assert not torch.equal(torch.ones(2), torch.ones(1, 2))


def test_questions_about_elements() -> None:
    x = torch.tensor([1.0, INF, -INF, NAN])
    assert torch.isnan(x).tolist() == [False, False, False, True]
    assert torch.isinf(x).tolist() == [False, True, True, False]
    assert x.isfinite().tolist() == [True, False, False, False]
    assert torch.isposinf(x).tolist() == [False, True, False, False]
    assert torch.isneginf(x).tolist() == [False, False, True, False]
    assert torch.isnan(torch.tensor([1, 2])).tolist() == [False, False]
    assert torch.isreal(torch.tensor([1 + 0j, 1j])).tolist() == [True, False]
    assert torch.is_nonzero(torch.tensor([2]))
    assert torch.isin(torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 4])).tolist() == [
        [False, True], [False, True],
    ]  # fmt: skip
    assert torch.isin(torch.tensor([1]), torch.tensor([])).tolist() == [False]
    assert torch.result_type(torch.tensor(1.0), torch.tensor([1])) is torch.float32


def test_logic_and_bits() -> None:
    x, y = torch.tensor([0.0, 2.0, NAN]), torch.tensor([1, 0, 1])
    assert torch.logical_and(x, y).tolist() == [False, False, True]
    assert torch.logical_xor(x, y).tolist() == [True, True, False]
    i = torch.tensor([6, -6])
    assert (i & 3).tolist() == [2, 2]
    assert (1 | i).tolist() == [7, -5]
    assert (i ^ i).tolist() == [0, 0]
    assert (~i).tolist() == [-7, 5]
    assert (~torch.tensor([True])).tolist() == [False]
    assert (i << 1).tolist() == [12, -12]
    assert (i >> 1).tolist() == [3, -3]
    assert (i << 70).tolist() == [0, 0]
    assert (i >> 70).tolist() == [0, -1]
    i &= 4
    assert i.tolist() == [4, 0]


def test_where_promotes_and_broadcasts() -> None:
    c = torch.tensor([True, False])
    assert torch.where(c, 1, 2).dtype is torch.int64
    assert torch.where(c, 1.0, 2).dtype is torch.float32
    assert torch.where(c, torch.tensor([1, 2]), 0.5).tolist() == [1.0, 0.5]
    half = torch.ones(2, dtype=torch.float16)
    assert torch.where(c, half, 2.5).dtype is torch.float16
    assert torch.where(c[:, None], torch.zeros(3), torch.ones(1)).shape == (2, 3)
    assert torch.where(torch.tensor([[0, 1], [1, 0]]))[1].tolist() == [1, 0]
    assert torch.tensor([1.0, 2.0]).where(c, 0).tolist() == [1, 0]


def test_where_keeps_what_was_not_chosen_out_of_the_gradient() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = torch.where(x > 0, x.sqrt(), torch.zeros_like(x))
    assert y.grad_fn.name() == "WhereBackward0"
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor(3.0, requires_grad=True)
    torch.where(torch.tensor([True, False]), a, b).mul(torch.tensor([INF, 2.0])).sum().backward()
    assert a.grad.tolist() == [INF, 0]
    assert b.grad.tolist() == 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: torch.eq(x, "a"), TypeError, r"eq\(\) received an invalid combination"),
        (lambda x, i: x & x, NotImplementedError, '"bitwise_and_cpu" not implemented for'),
        (lambda x, i: ~x, TypeError, "~ .operator.invert. is only implemented on integer"),
        (lambda x, i: x < x * 1j, NotImplementedError, '"lt_cpu" not implemented for'),
        (lambda x, i: torch.where(i, x, x), RuntimeError, "where expected condition to be a bool"),
        (lambda x, i: torch.where(x > 0, x, torch.ones(3)), RuntimeError, "The size of tensor a"),
        (lambda x, i: torch.isclose(x, i), RuntimeError, "Float did not match Long"),
        (lambda x, i: torch.is_nonzero(x), RuntimeError, "Boolean value of Tensor with more than"),
        (lambda x, i: torch.equal(x, 1), TypeError, r"equal\(\): argument 'other' \(position 2\)"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]))
