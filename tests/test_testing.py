"""`torch.testing`: what it lets through, and what it says of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close, make_tensor

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (torch.ones(2), torch.ones(2), {}),
        (torch.ones(2), torch.ones(2) + 1e-6, {}),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), {"check_dtype": False}),
        (torch.ones(2, requires_grad=True), torch.ones(2), {}),
        (torch.tensor(NAN), torch.tensor(NAN), {"equal_nan": True}),
        (torch.tensor([INF]), torch.tensor([INF]), {}),
        (torch.ones(0), torch.ones(0), {}),
        (np.ones(2), np.ones(2), {}),
        (1.0, 1.0 + 1e-9, {}),
        (None, None, {}),
        ([1, torch.ones(2)], [1, torch.ones(2)], {}),
        ({"a": (1, 2.0)}, {"a": (1, 2.0)}, {}),
        (torch.ones(2), torch.full((2,), 1.05), {"rtol": 0, "atol": 0.1}),
        (torch.ones(1, dtype=torch.bfloat16), torch.tensor([1.01], dtype=torch.bfloat16), {}),
    ],
)
def test_close(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (
            torch.ones(2, 2),
            torch.tensor([[1.0, 2.0], [3.0, 1.0]]),
            "Tensor-likes are not close!\n\nMismatched elements: 2 / 4 (50.0%)\n"
            "Greatest absolute difference: 2.0 at index (1, 0) (up to 1e-05 allowed)\n"
            "Greatest relative difference: 0.6666666865348816 at index (1, 0) (up to 1.3e-06 "
            "allowed)",
        ),
        (
            torch.tensor([1, 2]),
            torch.tensor([1, 3]),
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"
            "Greatest absolute difference: 1 at index (1,)\n"
            "Greatest relative difference: 0.3333333432674408 at index (1,)",
        ),
        (
            1.0,
            2.0,
            "Scalars are not close!\n\nExpected 2.0 but got 1.0.\n"
            "Absolute difference: 1.0 (up to 1e-07 allowed)\n"
            "Relative difference: 0.5 (up to 1e-07 allowed)",
        ),
        (
            torch.ones(2),
            torch.ones(3),
            "The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([3]).",
        ),
        (
            torch.ones(2),
            torch.ones(2, dtype=torch.float64),
            "The values for attribute 'dtype' do not match: torch.float32 != torch.float64.",
        ),
        (True, False, "Booleans mismatch: True is not False"),
        (None, 1, "None mismatch: None is not 1"),
        ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
        (torch.tensor(NAN), torch.tensor(NAN), "Scalars are not close!"),
    ],
)
def test_not_close(actual: Any, expected: Any, text: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert str(caught.value).startswith(text), str(caught.value)


def test_where_in_a_container() -> None:
    with pytest.raises(AssertionError, match=r"The failure occurred for item \[1\]\['a'\]"):
        assert_close([1, {"a": 2}], [1, {"a": 3}])


def test_messages_and_arguments() -> None:
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^see: Scalars"):
        assert_close(1, 2, msg=lambda text: f"see: {text}")
    with pytest.raises(ValueError, match="but got no atol"):
        assert_close(1, 2, rtol=0.1)
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close(torch.ones(2), [1, 1])
    with pytest.raises(AssertionError, match=r"stride\(\)"):
        assert_close(torch.ones(2, 3).t(), torch.ones(3, 2), check_stride=True)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "complex64"]
)
def test_make_tensor(dtype: str) -> None:
    kind = getattr(torch, dtype)
    made = make_tensor(2, 3, dtype=kind, device="cpu")
    assert made.shape == (2, 3) and made.dtype is kind
    apart = make_tensor((4, 3), dtype=kind, device="cpu", noncontiguous=True)
    assert not apart.is_contiguous()


def test_make_tensor_range() -> None:
    made = make_tensor(100, dtype=torch.float64, device="cpu", low=2, high=3, requires_grad=True)
    assert made.requires_grad and bool(((made >= 2) & (made < 3)).all())
    ints = make_tensor(100, dtype=torch.int64, device="cpu", low=-1, high=2, exclude_zero=True)
    assert not bool((ints == 0).any())
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(2, dtype=torch.int64, device="cpu", low=5, high=2)
    with pytest.raises(ValueError, match="`requires_grad=True` is not supported"):
        make_tensor(2, dtype=torch.int64, device="cpu", requires_grad=True)
