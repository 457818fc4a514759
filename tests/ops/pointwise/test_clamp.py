"""`clamp`, `lerp`, `nan_to_num`, `frexp`: edges, gradients at bounds, nodes, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import INF, NAN, leaf, same, slopes

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda i, h: torch.clamp(i, 0.5), torch.float32),
        (lambda i, h: torch.clamp(i, 0, 1), torch.int64),
    ],
)
def test_dtype_of_the_result(expression: Any, dtype: Any) -> None:
    made = expression(torch.tensor([1, 2]), torch.tensor([1.5, 2.0], dtype=torch.float16))
    assert made.dtype is dtype


def test_nan_to_num_uses_the_limits_of_the_dtype() -> None:
    x = torch.tensor([NAN, INF, -INF], dtype=torch.float16)
    assert torch.nan_to_num(x).tolist() == [0, 65504, -65504]
    assert torch.nan_to_num(x, 1.0, 2.0, 3.0).tolist() == [1, 2, 3]


def test_frexp() -> None:
    pair = torch.frexp(torch.tensor([5.0, -0.75, 0.0]))
    assert pair.mantissa.tolist() == [0.625, -0.75, 0]
    assert pair.exponent.tolist() == [3, 0, 0]
    assert pair.exponent.dtype is torch.int32


def test_clamp_passes_the_gradient_at_its_bounds() -> None:
    (g,) = slopes(lambda x: torch.clamp(x, 0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0])
    same(g, [0, 1, 1, 1, 0])
    x, low, high = slopes(
        torch.clamp, [0.0, 1.5, 3.0, 1.5], [1.0, 1.0, 1.0, 2.0], [2.0] * 3 + [1.0]
    )
    same(x, [0, 1, 0, 0])
    same(low, [1, 0, 0, 0])
    same(high, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x, y: torch.clamp(x, 0), "ClampBackward1"),
        (lambda x, y: torch.clamp(x, y), "ClampBackward0"),
        (lambda x, y: torch.clamp_min(x, 0), "ClampMinBackward0"),
        (lambda x, y: torch.lerp(x, y, 0.5), "LerpBackward0"),
        (lambda x, y: torch.lerp(x, y, y), "LerpBackward1"),
    ],
)
def test_node_names(f: Any, name: str) -> None:
    assert f(leaf([0.5]), leaf([0.25])).grad_fn.name() == name


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i, b: torch.clamp(x), RuntimeError, "torch.clamp: At least one of"),
        (lambda x, i, b: torch.lerp(x, x, i), RuntimeError, "expected dtype float for `weight`"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]), torch.tensor([True, False]))
