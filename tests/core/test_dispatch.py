"""Element-wise ops of int64s, which go a short way of their own, do what the long way does."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import rushlight as torch
from rushlight.core import elementwise

BINARY = [
    operator.add, operator.sub, operator.mul, operator.eq, operator.ne, operator.lt, operator.le,
    operator.gt, operator.ge, operator.and_, operator.or_, operator.xor, torch.rsub,
]  # fmt: skip
TOP = 2**63 - 1


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize(
    "others", [(3, -1), (torch.tensor(3), torch.tensor([[1], [-TOP]]), torch.tensor([[TOP, 2]]))]
)
def test_int64s(op: Any, others: tuple[Any, ...]) -> None:
    base = torch.tensor([[1, 2], [-TOP, TOP]])
    for a in (base, base.t(), base[0, 0], base.reshape(2, 1, 2).transpose(0, 2)):
        for b in others:
            short = op(a, b)
            with torch.no_grad():  # in a mode, ops go the long way
                long = op(a, b)
            assert short.dtype is long.dtype
            assert short.stride() == long.stride()
            assert torch.equal(short, long)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_bools(op: Any) -> None:
    a, b = torch.tensor([[True], [False]]), torch.tensor([True, False])
    with torch.no_grad():
        long = op(a, b)
    assert op(a, b).dtype is torch.bool
    assert torch.equal(op(a, b), long)
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with two bool tensors"):
        a - b


def test_what_int64s_do_not_hold_goes_the_long_way() -> None:
    a = torch.tensor([1])
    assert (a + 0.5).tolist() == [1.5]
    assert (a + True).tolist() == [2]
    assert (a / 2).tolist() == [0.5]
    assert (a + 2**63).tolist() == [1 - 2**63]
    with pytest.raises(OverflowError, match="Overflow when unpacking long long"):
        a + 2**64
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.arange(2) + torch.arange(3)


def test_the_short_way_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def long(*_: Any) -> Any:
        raise AssertionError("promotion was asked")

    monkeypatch.setattr(elementwise, "compute_promoted", long)
    assert (torch.tensor(2) + 3).item() == 5
    low = torch.arange(3) < torch.tensor(1)
    assert low.tolist() == [True, False, False]
    assert (low | low.flip(0) & low).tolist() == [True, False, False]
