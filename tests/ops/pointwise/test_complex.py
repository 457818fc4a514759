"""Complex numbers: parts that are views, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import leaf, same

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_parts_are_views() -> None:
    z = torch.tensor([1 + 2j, 3 + 4j])
    z.real[0] = 9.0
    torch.view_as_real(z)[1, 1] = 8.0
    assert z.tolist() == [9 + 2j, 3 + 8j]
    pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    torch.view_as_complex(pairs)[0] = 7j
    assert pairs.tolist() == [[0, 7], [3, 4]]


def test_gradients_of_complex_functions() -> None:
    z = leaf([3 + 4j], torch.complex128)
    z.abs().sum().backward()
    same(z.grad, [0.6 + 0.8j])
    z = leaf([1j], torch.complex128)
    torch.angle(z).sum().backward()
    same(z.grad, [-1])
    z = leaf([1 + 2j], torch.complex128)
    (z * z.conj()).real.sum().backward()
    same(z.grad, [2 + 4j])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i, b: torch.imag(x), RuntimeError, "imag is not implemented for tensors with"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]), torch.tensor([True, False]))
