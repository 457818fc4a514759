"""Comparisons, closeness and `where`: edges, promotion, errors."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import INF, NAN

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
        (lambda x, i: x < x * 1j, NotImplementedError, '"lt_cpu" not implemented for'),
        (lambda x, i: torch.where(i, x, x), RuntimeError, "where expected condition to be a bool"),
        (lambda x, i: torch.where(x > 0, x, torch.ones(3)), RuntimeError, "The size of tensor a"),
        (lambda x, i: torch.isclose(x, i), RuntimeError, "Float did not match Long"),
        (lambda x, i: torch.equal(x, 1), TypeError, r"equal\(\): argument 'other' \(position 2\)"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]))
