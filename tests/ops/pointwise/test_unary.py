"""Functions of one tensor: dtypes, edges, masked derivatives, nodes, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.pointwise.helpers import INF, NAN, leaf, same, slopes

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# --- values and dtypes ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda i, h: torch.exp(i), torch.float32),
        (lambda i, h: torch.exp(h), torch.float16),
        (lambda i, h: torch.floor(i), torch.int64),
        (lambda i, h: torch.atan2(i, i), torch.float32),
    ],
)
def test_dtype_of_the_result(expression: Any, dtype: Any) -> None:
    made = expression(torch.tensor([1, 2]), torch.tensor([1.5, 2.0], dtype=torch.float16))
    assert made.dtype is dtype


def test_bfloat16_is_computed_in_float32_and_rounded_once() -> None:
    x = torch.tensor([1.5, -2.5], dtype=torch.bfloat16)
    assert torch.exp(x).tolist() == [4.46875, 0.08203125]


def test_zero_d_empty_and_transposed() -> None:
    assert torch.exp(torch.tensor(0.0)).shape == ()
    assert torch.maximum(torch.ones(0, 1), torch.ones(3)).shape == (0, 3)
    x = torch.arange(6.0).reshape(2, 3).t()
    same(torch.square(x), [[0, 9], [1, 16], [4, 25]])


def test_rounding() -> None:
    x = torch.tensor([-2.5, -0.5, 0.5, 1.5, 2.5])
    same(torch.round(x), [-2, -0.0, 0, 2, 2])
    same(torch.trunc(x), [-2, -0.0, 0, 1, 2])
    same(torch.frac(x), [-0.5, -0.5, 0.5, 0.5, 0.5])
    same(torch.round(torch.tensor([1234.567]), decimals=-2), [1200])


def test_sign_of_nan_is_zero() -> None:
    same(torch.sign(torch.tensor([NAN, -0.0, -INF])), [0, 0, -1])
    same(torch.sgn(torch.tensor([3 + 4j, 0j])), [0.6 + 0.8j, 0])
    assert torch.signbit(torch.tensor([-0.0, 0.0])).tolist() == [True, False]


def test_a_step_function_has_gradient_zero_even_under_infinity() -> None:
    x = leaf([0.5])
    (1 / torch.floor(x)).sum().backward()
    same(x.grad, [0])


def test_masked_derivatives() -> None:
    a, b = slopes(torch.xlogy, [0.0, 2.0], [0.0, 1.0])
    same(a, [0, 0])
    same(b, [NAN, 2])
    a, b = slopes(torch.atan2, [0.0], [0.0])
    same(a, [0])
    same(b, [0])
    same(slopes(torch.sinc, [0.0])[0], [0])
    same(slopes(torch.abs, [0.0, -2.0])[0], [0, -1])
    same(slopes(torch.logit, [2.0, 0.5])[0], [NAN, 4])
    same(slopes(lambda x: torch.logit(x, 0.1), [0.05, 0.5])[0], [0, 4])


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x, y: torch.log1p(x), "Log1PBackward0"),
    ],
)
def test_node_names(f: Any, name: str) -> None:
    assert f(leaf([0.5]), leaf([0.25])).grad_fn.name() == name


# --- errors ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i, b: torch.exp(2), TypeError, r"exp\(\): argument 'input' \(position 1\)"),
        (
            lambda x, i, b: torch.abs(b),
            NotImplementedError,
            "\"abs_cpu\" not implemented for 'Bool'",
        ),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(2), torch.tensor([1, 2]), torch.tensor([True, False]))
