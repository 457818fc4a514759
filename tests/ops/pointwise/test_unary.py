"""Element-wise functions: edges that the laws do not draw, with values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch

INF, NAN = math.inf, math.nan
# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def leaf(values: Any, dtype: Any = torch.float64) -> Any:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6, atol=1e-12)


def slopes(f: Any, *values: Any) -> list[Any]:
    """Gradients of the sum of f at the values."""
    xs = [leaf(v) for v in values]
    return list(torch.autograd.grad(f(*xs).sum(), xs))


# --- values and dtypes ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda i, h: torch.exp(i), torch.float32),
        (lambda i, h: torch.exp(h), torch.float16),
        (lambda i, h: i**2, torch.int64),
        (lambda i, h: i**2.0, torch.float32),
        (lambda i, h: 2**i, torch.int64),
        (lambda i, h: h * 2.5, torch.float16),
        (lambda i, h: h + i, torch.float16),
        (lambda i, h: i / 2, torch.float32),
        (lambda i, h: i // 2, torch.int64),
        (lambda i, h: i % 2.5, torch.float32),
        (lambda i, h: torch.clamp(i, 0.5), torch.float32),
        (lambda i, h: torch.clamp(i, 0, 1), torch.int64),
        (lambda i, h: torch.float_power(i, 2), torch.float64),
        (lambda i, h: i * 1j, torch.complex64),
        (lambda i, h: torch.square(i > 0), torch.int64),
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


def test_division_rounds_as_asked() -> None:
    x = torch.tensor([7, -7, 7, -7])
    y = torch.tensor([2, 2, -2, -2])
    assert torch.div(x, y, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert torch.div(x, y, rounding_mode="floor").tolist() == [3, -4, -4, 3]
    assert (x % y).tolist() == [1, 1, -1, -1]
    assert torch.fmod(x, y).tolist() == [1, -1, 1, -1]
    assert (-7 // y).tolist() == [-4, -4, 3, 3]


def test_integer_powers() -> None:
    assert torch.pow(torch.tensor([1, -1, -1, 2]), torch.tensor([-1, -1, -2, -1])).tolist() == [
        1, -1, 1, 0,
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
        torch.tensor([2]) ** -1


def test_nan_to_num_uses_the_limits_of_the_dtype() -> None:
    x = torch.tensor([NAN, INF, -INF], dtype=torch.float16)
    assert torch.nan_to_num(x).tolist() == [0, 65504, -65504]
    assert torch.nan_to_num(x, 1.0, 2.0, 3.0).tolist() == [1, 2, 3]


def test_frexp() -> None:
    pair = torch.frexp(torch.tensor([5.0, -0.75, 0.0]))
    assert pair.mantissa.tolist() == [0.625, -0.75, 0]
    assert pair.exponent.tolist() == [3, 0, 0]
    assert pair.exponent.dtype is torch.int32


def test_extremes_of_nan() -> None:
    a, b = torch.tensor([NAN, 1.0]), torch.tensor([1.0, NAN])
    assert torch.maximum(a, b).isnan().tolist() == [True, True]
    assert torch.fmax(a, b).tolist() == [1, 1]


# --- gradients ------------------------------------------------------------------------------------
def test_ties_share_the_gradient() -> None:
    a, b = slopes(torch.maximum, [1.0, 1.0, NAN], [2.0, 1.0, 1.0])
    same(a, [0, 0.5, 1])
    same(b, [1, 0.5, 1])
    a, b = slopes(torch.fmin, [1.0, NAN], [1.0, 1.0])
    same(a, [1, 0])
    same(b, [0, 1])


def test_clamp_passes_the_gradient_at_its_bounds() -> None:
    (g,) = slopes(lambda x: torch.clamp(x, 0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0])
    same(g, [0, 1, 1, 1, 0])
    x, low, high = slopes(
        torch.clamp, [0.0, 1.5, 3.0, 1.5], [1.0, 1.0, 1.0, 2.0], [2.0] * 3 + [1.0]
    )
    same(x, [0, 1, 0, 0])
    same(low, [1, 0, 0, 0])
    same(high, [0, 0, 1, 1])


def test_pow_at_zero_and_below() -> None:
    a, b = slopes(torch.pow, [0.0, 0.0, -1.0, 2.0], [0.0, 1.0, 2.0, 0.0])
    same(a, [0, 1, -2, 0])
    same(b, [0, 0, NAN, math.log(2)])
    (g,) = slopes(lambda x: x**0, [0.0, 1.0])
    same(g, [0, 0])
    (g,) = slopes(lambda x: 0**x, [0.0, 1.0])
    same(g, [0, 0])
    (g,) = slopes(lambda x: x**0.5, [0.0])
    same(g, [INF])


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


def test_gradients_of_broadcast_operands_are_summed() -> None:
    a, b = leaf([[1.0], [2.0]]), leaf([3.0, 4.0, 5.0])
    (a**b).sum().backward()
    assert a.grad.shape == (2, 1)
    assert b.grad.shape == (3,)
    same(a.grad[0], [12])


def test_second_derivatives() -> None:
    x = leaf([2.0])
    (g,) = torch.autograd.grad(x**3, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    same(h, [12])


@pytest.mark.parametrize("f", [lambda x: x // 2, lambda x: 2 % x, lambda x: torch.heaviside(x, x)])
def test_what_pytorch_leaves_without_a_derivative(f: Any) -> None:
    y = f(leaf([1.5]))
    assert repr(y).endswith("grad_fn=<NotImplemented>)")
    with pytest.raises(RuntimeError, match="is not implemented"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x, y: x**2, "PowBackward0"),
        (lambda x, y: x**y, "PowBackward1"),
        (lambda x, y: 2**x, "PowBackward2"),
        (lambda x, y: x % 2, "RemainderBackward0"),
        (lambda x, y: x % y, "RemainderBackward1"),
        (lambda x, y: torch.clamp(x, 0), "ClampBackward1"),
        (lambda x, y: torch.clamp(x, y), "ClampBackward0"),
        (lambda x, y: torch.clamp_min(x, 0), "ClampMinBackward0"),
        (lambda x, y: torch.lerp(x, y, 0.5), "LerpBackward0"),
        (lambda x, y: torch.lerp(x, y, y), "LerpBackward1"),
        (lambda x, y: torch.div(x, y, rounding_mode="floor"), "DivBackward2"),
        (lambda x, y: torch.rsub(x, 1), "RsubBackward1"),
        (lambda x, y: torch.log1p(x), "Log1PBackward0"),
        (lambda x, y: torch.square(x), "PowBackward0"),
    ],
)
def test_node_names(f: Any, name: str) -> None:
    assert f(leaf([0.5]), leaf([0.25])).grad_fn.name() == name


# --- complex numbers ------------------------------------------------------------------------------
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


# --- operators ------------------------------------------------------------------------------------
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


# --- errors ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i, b: torch.exp(2), TypeError, r"exp\(\): argument 'input' \(position 1\)"),
        (lambda x, i, b: torch.add(x, "a"), TypeError, r"add\(\): argument 'other' \(position 2\)"),
        (lambda x, i, b: torch.pow(2, 3), TypeError, r"pow\(\) received an invalid combination"),
        (lambda x, i, b: torch.clamp(x), RuntimeError, "torch.clamp: At least one of"),
        (lambda x, i, b: i // 0, RuntimeError, "ZeroDivisionError"),
        (lambda x, i, b: torch.fmod(i, 0), RuntimeError, "ZeroDivisionError"),
        (lambda x, i, b: -b, RuntimeError, "Negation, the `-` operator, on a bool tensor"),
        (lambda x, i, b: b - b, RuntimeError, "Subtraction, the `-` operator, with two bool"),
        (
            lambda x, i, b: torch.abs(b),
            NotImplementedError,
            "\"abs_cpu\" not implemented for 'Bool'",
        ),
        (lambda x, i, b: torch.gcd(x, x), NotImplementedError, '"gcd_cpu" not implemented'),
        (lambda x, i, b: torch.imag(x), RuntimeError, "imag is not implemented for tensors with"),
        (lambda x, i, b: torch.add(i, 1, alpha=1.5), RuntimeError, "For integral input tensors"),
        (lambda x, i, b: torch.lerp(x, x, i), RuntimeError, "expected dtype float for `weight`"),
        (lambda x, i, b: torch.maximum(x, torch.ones(3)), RuntimeError, "The size of tensor a"),
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
