"""Bounds and mixtures: `clamp`, `lerp`, `addcmul`, `addcdiv`, `nan_to_num`; also `frexp`."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from rushlight import dtypes, return_types
from rushlight.arrays import vocabulary as v
from rushlight.core.elementwise import number_in, operand, result_dtype
from rushlight.core.families import Elementwise, conj, is_complex
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import apply
from rushlight.ops import old_forms
from rushlight.ops.checks import (
    check_same_dtype,
    check_second,
    check_tensors,
    invalid,
    is_number,
    not_implemented,
    raw_dtype,
)
from rushlight.ops.creation.fill import number_for
from rushlight.ops.numbers import Number, Operand, python_number
from rushlight.ops.operands import integral, match_dtypes, number_from, zeros
from rushlight.ops.out import write_array
from rushlight.ops.pointwise.family import Numbered, Through
from rushlight.ops.registry import describe, function, op, shared_op, variant
from rushlight.ops.sample_inputs import drawn


# --- clamping -------------------------------------------------------------------------------------
class Clamping(Numbered):
    """What all clamps share: they refuse complex numbers, and explain numbers that do not fit."""

    def check(self, common: Any) -> None:
        if common.is_complex:
            raise NotImplementedError("clamp is not supported for complex types")

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        if isinstance(error, OverflowError):
            name = f"{dtypes.of(xs[0].dtype).name}_t"
            return RuntimeError(f"value cannot be converted to type {name} without overflow")
        return super().explain(error, xs)


@op
class ClampNumbers(Through, Clamping):
    """At least the number `min`, at most the number `max`; either may be None."""

    name, node, saves = "clamp_numbers", "ClampBackward1", ("self",)
    aten = "clamp.default"
    params: ClassVar[tuple[str, ...]] = ("min", "max")
    has_rule_for_halves = True  # see `inside`

    def __init__(self, min: Any, max: Any) -> None:
        super().__init__()
        self.min = min
        self.max = max
        self.count(min, max)

    def forward(self, x: Any) -> Any:
        x = self.lift_bools(x)
        if self.min is not None:
            x = v.maximum(x, self.min)
        return x if self.max is None else v.minimum(x, self.max)

    def through(self, g: Any, x: Any) -> Any:
        return v.where(self.inside(x), g, 0)

    def inside(self, x: Any) -> Any:
        """Where the element stayed as it was; the bounds themselves count."""
        low, high = self.min, self.max
        kind = raw_dtype(x)
        if v.low_precision(kind):  # where the number that was put counts, not the one given
            low, high = (n if n is None else number_in(n, dtypes.of(kind)) for n in (low, high))
        if low is None:
            return x <= high
        if high is None:
            return x >= low
        return v.logical_and(x >= low, x <= high)

    samples = drawn(real=[(-0.5, 0.5, (2, 3)), (-0.5, None, ()), (None, 0.5, (0, 2))])


class ClampMinNumber(ClampNumbers):
    """At least a number."""

    profile_name = "clamp_min"

    node, params, has_rules_of = "ClampMinBackward0", ("min",), ClampNumbers


class ClampMaxNumber(ClampNumbers):
    """At most a number."""

    profile_name = "clamp_max"

    node, params, has_rules_of = "ClampMaxBackward0", ("max",), ClampNumbers


class ClampTensors(Clamping):
    """Bounds element by element."""

    def masks(self, *xs: Any) -> Any:
        """Where the answer is the element, and where each of the bounds."""
        raise NotImplementedError

    def vjp(self, node: Node, g: Any, *xs: Any) -> Any:
        return [v.where(mask, g, 0) for mask in self.masks(*match_dtypes(*xs))]

    def partials(self, *xs: Any) -> Any:
        return [v.cast(mask, raw_dtype(xs[0])) for mask in self.masks(*match_dtypes(*xs))]


@op
class Clamp(ClampTensors):
    """At least `min`, at most `max`, element by element."""

    name, inputs, saves = "clamp", ("self", "min", "max"), ("self", "min", "max")
    aten = "clamp.Tensor"

    def forward(self, x: Any, low: Any, high: Any) -> Any:
        return v.minimum(v.maximum(x, low), high)

    def masks(self, x: Any, low: Any, high: Any) -> Any:
        return (
            v.logical_and(x >= low, x <= high),
            v.logical_and(low < high, x < low),
            v.logical_or(x > high, high < low),
        )


@op
class ClampMin(ClampTensors):
    """At least `min`, element by element."""

    name, node, inputs, saves = "clamp_min", "ClampMinBackward1", ("self", "min"), ("self", "min")
    aten = "clamp_min.Tensor"

    def forward(self, x: Any, low: Any) -> Any:
        return v.maximum(x, low)

    def masks(self, x: Any, low: Any) -> Any:
        return x >= low, x < low


@op
class ClampMax(ClampTensors):
    """At most `max`, element by element."""

    name, node, inputs, saves = "clamp_max", "ClampMaxBackward1", ("self", "max"), ("self", "max")
    aten = "clamp_max.Tensor"

    def forward(self, x: Any, high: Any) -> Any:
        return v.minimum(x, high)

    def masks(self, x: Any, high: Any) -> Any:
        return x <= high, x > high


class ClampMinOnly(ClampMin):
    """`clamp` with one tensor, the lower."""

    node, has_rules_of = "ClampBackward0", ClampMin


class ClampMaxOnly(ClampMax):
    """`clamp` with one tensor, the upper."""

    node, has_rules_of = "ClampBackward0", ClampMax


CLAMP, CLAMP_MIN_ONLY, CLAMP_MAX_ONLY = Clamp(), ClampMinOnly(), ClampMaxOnly()
_BOUND: Final = (TensorBase, int, float, complex)


def _modest(bound: Any) -> bool:
    """Whether a bound fits every dtype, or is none."""
    return bound is None or isinstance(bound, complex) or 0 <= bound <= 127


@function(out=True, inplace=True, aliases=("clip",), settles=True)
def clamp(input: Any, min: Operand | None = None, max: Operand | None = None) -> Any:
    """Each element, but at least `min` and at most `max`: numbers or tensors.

    >>> torch.clamp(torch.tensor([-1., 0.3, 2.]), 0, 1)
    tensor([0.0000, 0.3000, 1.0000])
    """
    if not isinstance(input, TensorBase):
        check_tensors("clamp", input=input)
    given = [b for b in (min, max) if b is not None]
    if not given:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    tensors = [isinstance(b, TensorBase) for b in given]
    if any(tensors) and not all(tensors):  # next to a number, a 0-d tensor is one too
        min, max = python_number(min), python_number(max)
        given = [b for b in (min, max) if b is not None]
        tensors = [isinstance(b, TensorBase) for b in given]
    if all(tensors):
        if max is None:
            return CLAMP_MIN_ONLY, (input, min)
        return (CLAMP_MAX_ONLY, (input, max)) if min is None else (CLAMP, (input, min, max))
    if any(tensors) or not all(is_number(b) for b in given):
        raise invalid(
            "clamp", (input, *given), "(Tensor input, Tensor min = None, Tensor max = None, *, "
            "Tensor out = None)", "(Tensor input, Number min = None, Number max = None, *, "
            "Tensor out = None)",
        )  # fmt: skip
    low = None if min is None else operand(min)
    high = None if max is None else operand(max)
    if (isinstance(low, complex) or isinstance(high, complex)) and not is_complex(input):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if not _modest(low) or not _modest(high):
        common = result_dtype(tuple(x for x in (input, low, high) if x is not None)).numpy
        low, high = (b if b is None else number_for(b, common) for b in (low, high))
    return shared_op(ClampNumbers, low, high), (input,)


def _declare_bound(side: str, word: str, gives: str, by_tensor: Any, by_number: Any) -> None:
    """The function `clamp_min` or `clamp_max`."""
    name = f"clamp_{side}"

    def fn(input: Any, bound: Operand) -> Any:
        check_second(name, input, bound)
        if isinstance(bound, TensorBase):
            return by_tensor, (input, bound)
        if isinstance(bound, complex):
            raise NotImplementedError("clamp is not supported for complex types")
        low, high = (operand(bound), None) if side == "min" else (None, operand(bound))
        return shared_op(by_number, low, high), (input,)

    text = describe(
        f"Each element, but at {word} `{side}`.",
        f"torch.{name}(torch.tensor([-1., 2.]), 0)", gives,
    )  # fmt: skip
    function(out=True, inplace=True, settles=True)(variant(fn, name, text, bound=side))


_declare_bound("min", "least", "tensor([0., 2.])", ClampMin(), ClampMinNumber)
_declare_bound("max", "most", "tensor([-1.,  0.])", ClampMax(), ClampMaxNumber)


# --- three tensors --------------------------------------------------------------------------------
@op
class Lerp(Elementwise):
    """input + weight · (end - input)."""

    name, node, complex_too = "lerp", "LerpBackward1", True
    aten = "lerp.Tensor"
    inputs, saves = ("self", "end", "weight"), ("self", "end", "weight")
    reads: ClassVar[dict[int, tuple[str, ...]]] = {
        0: ("weight",),
        1: ("weight",),
        2: ("self", "end"),
    }

    def forward(self, a: Any, b: Any, w: Any) -> Any:
        # from the nearer end, so that weights 0 and 1 give the ends exactly
        near = v.absolute(w) < 0.5
        return v.where(near, a + w * (b - a), b - (b - a) * (1 - w))

    def vjp(self, node: Node, g: Any, a: Any, b: Any, w: Any) -> Any:
        return (
            g * conj(1 - w) if node._needs_grad(0) else None,
            g * conj(w) if node._needs_grad(1) else None,
            g * conj(b - a) if node._needs_grad(2) else None,
        )

    def partials(self, a: Any, b: Any, w: Any) -> Any:
        return 1 - w, w, b - a


@op
class LerpNumber(Numbered):
    """input + weight · (end - input), for a number."""

    name, node, inputs, params = "lerp_number", "LerpBackward0", ("self", "end"), ("weight",)
    aten = "lerp.Scalar"
    weight: Any

    def choice(self) -> str:
        """Which formula `forward` takes, for the name of its kernel."""
        return "near" if abs(self.weight) < 0.5 else "far"

    def forward(self, a: Any, b: Any) -> Any:
        w = self.weight
        return a + w * (b - a) if abs(w) < 0.5 else b - (b - a) * (1 - w)

    def partials(self) -> Any:
        return 1 - self.weight, self.weight

    samples = drawn(real=[(0.3, (2, 3), (3,)), (0.8, (), ())], complex=[(0.8, (2, 2), (2, 2))])


LERP = Lerp()


@function(out=True, inplace=True, settles=True)
def lerp(input: Any, end: Any, weight: Operand) -> Any:
    """On the way from `input` to `end`, at `weight`: a number or a tensor.

    >>> torch.lerp(torch.tensor([0., 10.]), torch.tensor([1., 20.]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    tensors = isinstance(input, TensorBase) and isinstance(end, TensorBase)
    if not tensors or not (isinstance(weight, TensorBase) or is_number(weight)):
        raise invalid(
            "lerp", (input, end, weight),
            "(Tensor input, Tensor end, Tensor weight, *, Tensor out = None)",
            "(Tensor input, Tensor end, Number weight, *, Tensor out = None)",
        )  # fmt: skip
    check_same_dtype({"self": input, "end": end})
    if isinstance(weight, TensorBase) and raw_dtype(weight) != raw_dtype(input):
        weight = python_number(weight)
    if isinstance(weight, TensorBase):
        check_same_dtype({"self": input, "weight": weight})
    if integral(input):
        raise not_implemented("lerp_kernel_scalar", dtypes.of(raw_dtype(input)))
    if isinstance(weight, TensorBase):
        return LERP, (input, end, weight)
    if isinstance(weight, complex) and not is_complex(input):
        weight = number_for(weight, raw_dtype(input))
    return shared_op(LerpNumber, operand(weight)), (input, end)


class Fused(Elementwise):
    """input + value · something of two more tensors."""

    inputs, saves = ("self", "tensor1", "tensor2"), ("tensor1", "tensor2")
    params = ("value",)
    complex_too = True
    value: Any = 1

    def weighs_nothing(self) -> bool:
        """Whether `value` is the number 1 that stands for none."""
        return type(self.value) is int and self.value == 1


@op
class AddCMul(Fused):
    """input + value · tensor1 · tensor2."""

    name, node = "addcmul", "AddcmulBackward0"
    reads: ClassVar[dict[int, tuple[str, ...]]] = {1: ("tensor2",), 2: ("tensor1",)}

    def forward(self, x: Any, a: Any, b: Any) -> Any:
        return x + (a * b if self.weighs_nothing() else self.value * (a * b))

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        return (
            g,
            g * conj(b * self.value) if node._needs_grad(1) else None,
            g * conj(a * self.value) if node._needs_grad(2) else None,
        )

    def partials(self, a: Any, b: Any) -> Any:
        return 1, b * self.value, a * self.value


@op
class AddCDiv(Fused):
    """input + value · tensor1 / tensor2."""

    name, node = "addcdiv", "AddcdivBackward0"
    reads: ClassVar[dict[int, tuple[str, ...]]] = {1: ("tensor2",), 2: ("tensor1", "tensor2")}

    def check(self, common: Any) -> None:
        if not (common.is_floating_point or common.is_complex):
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported, and in a future  release "
                "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
                "behavior can be implemented as (input + value * torch.trunc(tensor1 / "
                "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
                "tensor2) for float inputs. The future addcdiv behavior is just the latter "
                "implementation: (input + value * tensor1 / tensor2), for all dtypes."
            )

    def forward(self, x: Any, a: Any, b: Any) -> Any:
        return x + (a / b if self.value == 1 else self.value * (a / b))

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        return (
            g,
            g * conj(self.value / b) if node._needs_grad(1) else None,
            -g * conj(self.value * a / (b * b)) if node._needs_grad(2) else None,
        )

    def partials(self, a: Any, b: Any) -> Any:
        return 1, self.value / b, -self.value * a / (b * b)


def _value(name: str, value: Any, xs: tuple[Any, ...]) -> Any:
    value = number_from(value, name, "value")
    common = result_dtype(xs)
    if isinstance(value, complex) and not common.is_complex:
        value = number_for(value, common.numpy)
    return int(value.real) if common.numpy.kind in "iub" else value


def _fused(cls: Any, text: str, at: str, gives: str) -> None:
    """The public function of `addcmul` or `addcdiv`."""
    name, usual = cls.name, cls()

    def fn(input: Any, tensor1: Any, tensor2: Any, *deprecated: Any, value: Number = 1) -> Any:
        if deprecated:
            args = (input, tensor1, tensor2, *deprecated)
            input, tensor1, tensor2, value = old_forms.reorder_scaled(
                name, args, "value", "tensor1", "tensor2"
            )
        check_tensors(name, input=input, tensor1=tensor1, tensor2=tensor2)
        xs = (input, tensor1, tensor2)
        value = _value(name, value, xs)
        return (usual if value == 1 else cls(value)), xs

    whole = describe(text, f"torch.{name}({at})", gives)
    function(out=True, inplace=True, settles=True)(variant(fn, name, whole))


_fused(
    AddCMul, "input + value · tensor1 · tensor2.",
    "torch.tensor([1.]), torch.tensor([2.]), torch.tensor([3.]), value=0.5", "tensor([4.])",
)  # fmt: skip
_fused(
    AddCDiv, "input + value · tensor1 / tensor2.",
    "torch.tensor([1.]), torch.tensor([6.]), torch.tensor([3.]), value=0.5", "tensor([2.])",
)  # fmt: skip


# --- numbers that are none ------------------------------------------------------------------------
@op
class NanToNum(Through, Elementwise):
    """Finite numbers in the place of NaN and the infinities."""

    name, saves, params = "nan_to_num", ("self",), ("nan", "posinf", "neginf")
    saved_names = ""
    nan: float
    posinf: float
    neginf: float

    def forward(self, x: Any) -> Any:
        if integral(x):
            return v.copy(x)
        if is_complex(x):
            return v.complex_of(self.forward(v.real(x)), self.forward(v.imag(x)))
        x = v.where(x == math.inf, self.posinf, x)
        x = v.where(x == -math.inf, self.neginf, x)
        return v.where(v.isnan(x), self.nan, x)

    def through(self, g: Any, x: Any) -> Any:
        """`g` where nothing was replaced, real and imaginary parts each for itself."""
        if is_complex(x):
            re, im = v.real(x), v.imag(x)
            return v.complex_of(self.through(v.real(g), re), self.through(v.imag(g), im))
        return g * v.cast(v.isfinite(x), raw_dtype(x))

    samples = drawn(
        real=[(0.0, 1.0, -1.0, (2, 3)), (0.0, 1.0, -1.0, ())], complex=[(0.0, 1.0, -1.0, (2, 2))]
    )


@function(out=True, inplace=True)
def nan_to_num(
    input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """Replace NaN by `nan`, and the infinities by `posinf` and `neginf` (None: the dtype's limits).

    >>> torch.nan_to_num(torch.tensor([torch.nan, torch.inf, 1.]), posinf=9.)
    tensor([0., 9., 1.])
    """
    most = least = 0.0
    if not integral(input):
        limits = dtypes.finfo(dtypes.of(raw_dtype(input)))
        most, least = limits.max, limits.min
    return NanToNum(
        0.0 if nan is None else float(nan),
        most if posinf is None else float(posinf),
        least if neginf is None else float(neginf),
    ), (input,)


# --- mantissa and exponent ------------------------------------------------------------------------
@op
class Frexp(Op):
    """Mantissa and exponent: x = mantissa · 2**exponent."""

    name = "frexp"
    aten = "frexp.Tensor"
    outputs, saves = ("mantissa", "exponent"), ("exponent",)

    def forward(self, x: Any) -> Any:
        return v.frexp(x)

    def vjp(self, node: Node, g: Any, exponent: Any) -> Any:
        return (self.unscale(g[0], exponent),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.unscale(ts[0], y[1]), zeros(y[1])

    def unscale(self, t: Any, exponent: Any) -> Any:
        return t / v.exp2(v.cast(exponent, raw_dtype(t)))

    samples = drawn(real=[(2, 3), ()])


FREXP = Frexp()


@function()
def frexp(input: Any, *, out: Any = None) -> Any:
    """Take numbers apart: input = mantissa · 2**exponent, with a mantissa from 0.5 to 1.

    >>> mantissa, exponent = torch.frexp(torch.tensor([4., -3.]))
    >>> mantissa, exponent
    (tensor([ 0.5000, -0.7500]), tensor([3, 2], dtype=torch.int32))
    """
    check_tensors("frexp", input=input)
    if not dtypes.of(raw_dtype(input)).is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    pair = return_types.frexp(apply(FREXP, input))
    if out is not None:
        return return_types.frexp([write_array(o, y._array) for o, y in zip(out, pair)])
    return pair
