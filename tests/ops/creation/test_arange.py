"""`arange`, `linspace`, `logspace`, `complex`, `polar`: values, dtypes, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from tests.helpers import raises


@pytest.mark.parametrize(
    ("args", "values", "dtype"),
    [
        ((5,), [0, 1, 2, 3, 4], torch.int64),
        ((2.0,), [0, 1], torch.float32),
        ((0, 5, 2), [0, 2, 4], torch.int64),
        ((5, 0, -2), [5, 3, 1], torch.int64),
        ((1, 2.5, 0.5), [1, 1.5, 2], torch.float32),
        ((torch.tensor(2),), [0, 1], torch.int64),
        ((3, 3), [], torch.int64),
        ((2**62, 2**62 + 2), [2**62, 2**62 + 1], torch.int64),
    ],
)
def test_arange(args: Any, values: list[Any], dtype: Any) -> None:
    made = torch.arange(*args)
    assert made.tolist() == values
    assert made.dtype is dtype


def test_arange_refuses() -> None:
    raises(
        RuntimeError, "upper bound and lower bound inconsistent with step sign", torch.arange, 5, 0
    )
    raises(RuntimeError, "step must be nonzero", torch.arange, 0, 5, 0)
    raises(RuntimeError, "unsupported range: 0 -> inf", torch.arange, 0, math.inf)
    raises(TypeError, "arange() received an invalid combination of arguments", torch.arange)
    raises(TypeError, "arange(): argument 'end' (position 1) must be Number", torch.arange, "a")
    raises(
        NotImplementedError, '"arange_cpu" not implemented for', torch.arange, 3, dtype=torch.bool
    )


def test_linspace_and_logspace() -> None:
    assert torch.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert torch.linspace(0, 10, 4, dtype=torch.int64).tolist() == [0, 3, 6, 10]
    assert torch.linspace(3, 9, 1).tolist() == [3]
    assert torch.linspace(0, 1, 0).shape == (0,)
    assert torch.linspace(0, 2j, 3).tolist() == [0, 1j, 2j]
    assert torch.logspace(0, 2, 3).tolist() == [1, 10, 100]
    assert torch.logspace(0, 2, 3, base=2, dtype=torch.int64).tolist() == [1, 2, 4]
    raises(RuntimeError, "number of steps must be non-negative", torch.linspace, 0, 1, -1)


def test_complex_and_polar() -> None:
    re = torch.tensor([1.0, 2.0], requires_grad=True)
    im = torch.tensor([[3.0]], requires_grad=True)
    z = torch.complex(re, im)
    assert z.tolist() == [[1 + 3j, 2 + 3j]]
    (z * (1 - 2j)).real.sum().backward()
    assert re.grad.tolist() == [1, 1]
    assert im.grad.tolist() == [[4]]
    r = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    angle = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    w = torch.polar(r, angle)
    assert w.item() == pytest.approx(2 * complex(math.cos(0.5), math.sin(0.5)))
    w.imag.sum().backward()
    assert r.grad.item() == pytest.approx(math.sin(0.5))
    assert angle.grad.item() == pytest.approx(2 * math.cos(0.5))
    raises(RuntimeError, "Expected both inputs to be Half, Float or Double tensors but got Long",
           torch.complex, torch.tensor([1]), torch.tensor([1]))  # fmt: skip
