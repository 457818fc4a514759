"""Roots and powers: `sqrt`, `rsqrt`, `reciprocal`, `pow`, `square`, `float_power`, and `**`."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.elementwise import number_beside, number_in, operand, result_dtype
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, TensorBase
from rushlight.core.operators import table as operators
from rushlight.ops.apply import run_inplace
from rushlight.ops.checks import invalid, is_number, not_implemented, raw_dtype
from rushlight.ops.creation.fill import number_for
from rushlight.ops.numbers import Operand
from rushlight.ops.operands import attach_operator, integral, widen_small_ints, zeros
from rushlight.ops.pointwise.family import Numbered, OneOver, Pointwise, Smooth, row
from rushlight.ops.registry import function, functions, implements, op, shared_op
from rushlight.ops.sample_inputs import Draw, drawn

row(
    "sqrt", OneOver, "The square root.", v.sqrt, below=lambda y: 2 * y, saves=("result",),
    domain="positive", scalar="sqrt({0})", primitive="sqrt", at="[4., 9.]", gives="[2., 3.]",
)  # fmt: skip
row(
    "rsqrt", Smooth, "One over the square root.", lambda x: 1 / v.sqrt(x),
    lambda y: (-0.5 * (y * y * y),), domain="positive", scalar="(1.0 / sqrt({0}))",
    at="[4., 16.]", gives="[0.5000, 0.2500]",
)  # fmt: skip
operators.reciprocal = row(
    "reciprocal", Smooth, "One over each element.", lambda x: 1 / x, lambda y: (-(y * y),),
    scalar="(1.0 / {0})", primitive="reciprocal", at="[4., 0.5]", gives="[0.2500, 2.0000]",
)  # fmt: skip


@op
class PowNumber(Numbered):
    """input ** exponent, for a number."""

    name, node, params, saves = "pow_number", "PowBackward0", ("exponent",), ("self",)
    aten = "pow.Tensor_Scalar"

    def __init__(self, exponent: Any) -> None:
        super().__init__()
        self.exponent = exponent
        self.count(exponent)

    def check(self, common: Any) -> None:
        if common is dtypes.bool_ and isinstance(self.exponent, bool):
            raise not_implemented("pow", common)

    def forward(self, x: Any) -> Any:
        e = self.exponent
        if e == 3 and not integral(x):
            return x * x * x
        return self.lift_bools(x) ** e

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        if self.exponent == 0:
            return (zeros(g),)
        return (g * conj(self.partials(x)[0]),)

    def partials(self, x: Any) -> Any:
        e = self.exponent
        if e == 0:
            return (x * 0,)
        # `2 * x` is quicker, but a tensor must stay a power to be differentiated to any order
        return (2 * x if e == 2 and not isinstance(x, TensorBase) else e * x ** (e - 1),)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        for e in (0, 1, 2, 3, -1, 2.5, -0.5):
            yield PowNumber(e), draw.positive(2, 3)
        yield PowNumber(2), draw.real()
        yield PowNumber(2), draw.real(0, 2)
        for power in (0, 1, 2, 3, 2.5, 1.5 - 1j):
            yield PowNumber(power), draw.complex(2, 2)


def _power(a: Any, b: Any) -> Any:
    """a ** b, where negative powers of integers are rounded towards zero, as PyTorch does."""
    if not integral(a if hasattr(a, "dtype") else b):
        return v.power(a, b)
    odd = v.remainder(b, 2) != 0
    unit = v.where(a == 1, 1, v.where(a == -1, v.where(odd, -1, 1), 0))
    return v.where(b < 0, v.cast(unit, raw_dtype(b)), v.power(a, v.maximum(b, 0)))


@op
class Pow(Pointwise):
    """input ** exponent."""

    name, node = "pow", "PowBackward1"
    aten = "pow.Tensor_Tensor"
    inputs, saves = ("self", "exponent"), ("self", "exponent", "result")
    reads: ClassVar[dict[int, tuple[str, ...]]] = {
        0: ("self", "exponent"),
        1: ("self", "exponent", "result"),
    }
    refuses, kernel, domain = "b", "pow", "positive"
    complex_too = True
    scalar = "pow({0}, {1})"

    def forward(self, a: Any, b: Any) -> Any:
        return _power(a, b)

    def vjp(self, node: Node, g: Any, a: Any, b: Any, y: Any) -> Any:
        return (
            g * conj(self.by_base(a, b)) if node._needs_grad(0) else None,
            g * conj(self.by_exponent(a, b, y)) if node._needs_grad(1) else None,
        )

    def partials(self, a: Any, b: Any, y: Any) -> Any:
        return self.by_base(a, b), self.by_exponent(a, b, y)

    def by_base(self, a: Any, b: Any) -> Any:
        """No power has a slope where the exponent is 0."""
        return v.where(b == 0, 0, b * a ** (b - 1))

    def by_exponent(self, a: Any, b: Any, y: Any) -> Any:
        """0 ** b is flat for b >= 0."""
        if is_complex(y):
            a = v.cast(a, raw_dtype(y))  # negative numbers have complex logarithms
        return v.where(v.logical_and(a == 0, _at_least_zero(b)), 0, y * v.log(widen_small_ints(a)))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield POW, draw.positive(2, 3), draw.positive(2, 3)
        yield POW, draw.positive(), draw.real()
        yield POW, draw.positive(0, 2), draw.real(0, 2)
        yield POW, draw.positive(2, 3), draw.real(3)
        yield POW, draw.positive(1, 3), draw.real(2, 1)
        yield POW, draw.complex(2, 2), draw.complex(2, 2)
        yield POW, draw.complex(2, 2), draw.real(2)
        yield POW, draw.positive(2, 2), draw.complex(2)


@op
class PowOfNumber(Numbered):
    """base ** exponent, for a number as base."""

    name, node, params = "pow_of_number", "PowBackward2", ("base",)
    aten = "pow.Scalar"
    saved_names = "self=base"
    inputs, saves = ("exponent",), ("exponent", "result")
    lies = "rows"

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base = base
        self.count(base)

    def check(self, common: Any) -> None:
        if common is dtypes.bool_ and isinstance(self.base, bool):
            raise not_implemented("pow", common)

    def forward(self, b: Any) -> Any:
        if integral(b):
            b = self.lift_bools(b)
            return _power(v.constant(b, self.base, raw_dtype(b)), b)
        return self.base**b

    def partials(self, b: Any, y: Any) -> Any:
        base = self.base
        if base == 0:
            return (v.where(_at_least_zero(b), 0, y * -math.inf),)
        if isinstance(base, complex) or is_complex(b):
            return (y * cmath.log(base),)
        return (y * (math.log(base) if base > 0 else math.nan),)

    samples = drawn(
        real=[(2, (2, 3)), (2.5, ()), (0.5, (0, 2))],
        complex=[(2, (2, 2)), (-1.5, (2, 2)), (1.5 - 1j, ())],
    )


def _at_least_zero(b: Any) -> Any:
    """Where a number is real and not negative."""
    return v.logical_and(v.imag(b) == 0, v.real(b) >= 0) if is_complex(b) else b >= 0


# A complex number makes the power of a real tensor complex. These take the number as an operand,
# so that it counts in promotion and the gradient is made real again.
@op
class PowToComplex(Pow):
    """input ** exponent, for a real tensor and a complex number."""

    name, node = "pow_to_complex", "PowBackward0"
    aten = "pow.Tensor_Scalar"

    def by_base(self, a: Any, b: Any) -> Any:
        return shared_op(PowNumber, b).partials(a)[0]

    def partials(self, a: Any, b: Any, y: Any) -> Any:
        return self.by_base(a, b), None

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield POW_TO_COMPLEX, draw.real(2, 3), 1.5 - 1j
        yield POW_TO_COMPLEX, draw.real(), 2j
        yield POW_TO_COMPLEX, draw.real(0, 2), 0j


@op
class PowOfComplex(Pow):
    """base ** exponent, for a complex number and a real tensor."""

    name, node = "pow_of_complex", "PowBackward2"
    aten = "pow.Scalar"

    def by_exponent(self, a: Any, b: Any, y: Any) -> Any:
        return shared_op(PowOfNumber, a).partials(b, y)[0]

    def partials(self, a: Any, b: Any, y: Any) -> Any:
        return None, self.by_exponent(a, b, y)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield POW_OF_COMPLEX, 1.5 - 1j, draw.real(2, 3)
        yield POW_OF_COMPLEX, 2j, draw.real()
        yield POW_OF_COMPLEX, 2j, draw.real(0, 2)


POW, SQUARE = Pow(), PowNumber(2)
POW_TO_COMPLEX, POW_OF_COMPLEX = PowToComplex(), PowOfComplex()
_FLOAT32: Final = dtypes.float32.numpy
_FLOAT64: Final = dtypes.float64.numpy
_POW_FORMS: Final = (
    "(Tensor input, Tensor exponent, *, Tensor out = None)",
    "(Number self, Tensor exponent, *, Tensor out = None)",
    "(Tensor input, Number exponent, *, Tensor out = None)",
)


def _pow(name: str, input: Any, exponent: Any) -> Any:
    if isinstance(input, TensorBase):
        if type(exponent) is int and exponent == 2:
            return SQUARE, (input,)
        if isinstance(exponent, TensorBase):
            return POW, (input, exponent)
        if is_number(exponent):
            exponent = operand(exponent)
            if isinstance(exponent, int) and exponent < 0 and integral(input):
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            if isinstance(exponent, complex) and not is_complex(input):
                return POW_TO_COMPLEX, (input, exponent)
            kind = input._array.dtype
            if kind is not _FLOAT32 and kind is not _FLOAT64:
                common = result_dtype((input, exponent))
                exponent = number_in(number_for(exponent, common.numpy), common)
            return shared_op(PowNumber, exponent), (input,)
    elif isinstance(exponent, TensorBase) and is_number(input):
        input = operand(input)
        if isinstance(input, complex) and not is_complex(exponent):
            return POW_OF_COMPLEX, (input, exponent)
        return shared_op(PowOfNumber, number_beside(exponent, input)), (exponent,)
    raise invalid(name, (input, exponent), *_POW_FORMS)


@function(out=True, inplace=True, name="pow", settles=True)
def power_of(input: Any, exponent: Any) -> Any:
    """`input` to the power of `exponent`; one of them may be a number.

    >>> torch.pow(torch.tensor([1., 2., 3.]), 2), torch.pow(2, torch.tensor([1., 2., 3.]))
    (tensor([1., 4., 9.]), tensor([2., 4., 8.]))
    """
    return _pow("pow", input, exponent)


@function(out=True, inplace=True, settles="rank")
def square(input: Any) -> Any:
    """The square of each element.

    >>> torch.square(torch.tensor([2., -3.]))
    tensor([4., 9.])
    """
    return SQUARE, (input,)


def _as_double(x: Any, kind: dtypes.dtype) -> Any:
    """A tensor or number in a dtype of double precision."""
    if isinstance(x, TensorBase):
        return v.cast(x, kind.numpy)
    return complex(x) if kind.is_complex else float(x)


def _double_kind(input: Any, exponent: Any) -> dtypes.dtype:
    common = result_dtype((operand(input), operand(exponent)))
    return dtypes.complex128 if common.is_complex else dtypes.float64


@function(out=True)
def float_power(input: Any, exponent: Operand) -> Any:
    """`pow` in double precision.

    >>> torch.float_power(torch.tensor([1, 2]), 2)
    tensor([1., 4.], dtype=torch.float64)
    """
    if not any(isinstance(x, TensorBase) for x in (input, exponent)):
        raise invalid("float_power", (input, exponent), *_POW_FORMS)
    kind = _double_kind(input, exponent)
    return _pow("float_power", _as_double(input, kind), _as_double(exponent, kind))


@function(free=False)
def float_power_(input: Any, exponent: Operand) -> Any:
    """In-place version of `float_power`, for tensors of double precision."""
    kind = _double_kind(input, exponent)
    if input._array.dtype != kind.numpy:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {dtypes.of(input._array.dtype).scalar_type} "
            f"but the operation's result requires dtype {kind.scalar_type}"
        )
    return run_inplace(*_pow("float_power_", input, _as_double(exponent, kind)))


attach_operator("pow", functions["pow"], functions["pow_"])


@implements("power")
def _implement_power(x: Any, y: Any) -> Any:
    return power_of(operand(x), operand(y))


implements("square")(functions["square"])
