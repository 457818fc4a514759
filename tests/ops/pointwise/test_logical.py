"""Logic and bits: values, dtypes, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import NAN

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


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


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: x & x, NotImplementedError, '"bitwise_and_cpu" not implemented for'),
        (lambda x, i: ~x, TypeError, "~ .operator.invert. is only implemented on integer"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]))


def test_bits_of_complex_numbers_of_low_precision() -> None:
    with pytest.raises(NotImplementedError, match='^"bitwise_or_cpu" not implemented for \'Compl'):
        torch.tensor([1.0, 2.0], dtype=torch.float16) | 1j
