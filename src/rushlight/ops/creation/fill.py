"""Writing whole tensors: `copy_`, `fill_`, `zero_`; and how other in-place ops write directly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import device_of, is_scalar
from rushlight.core import plain_calls
from rushlight.core.grad_mode import grad_enabled, state
from rushlight.core.graph import Node, Op, OpSpec, TensorBase, wrap
from rushlight.core.observer import observer
from rushlight.core.record import apply, make_node, save_values
from rushlight.core.transforms.inplace_tangents import inplace_tangent, write_tangent
from rushlight.core.transforms.stack import check_captured, outside_all, stack
from rushlight.core.transforms.tangents import keep_tangents
from rushlight.core.views.inplace import (
    check_partial_overlap,
    check_writable,
    copy_plain,
    fill_plain,
    lift_operands,
    settle,
    turn,
)
from rushlight.errors import broadcast_mismatch
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.numbers import Operand
from rushlight.ops.registry import function, implements, methods, op
from rushlight.ops.sample_inputs import drawn


def zeros_for(node: Any, position: int, g: Any) -> Any:
    """Zeros for input `position`, where it is wanted: the gradient of what was overwritten."""
    if not node._needs_grad(position):
        return None
    return v.full(g, node._input_shapes[position], 0, node._input_dtypes[position])


# --- writing directly -----------------------------------------------------------------------------
def write_directly(
    op: Any, target: TensorBase, others: tuple[Any, ...], action: Callable[..., None],
    overlap: bool = True,
) -> Any:  # fmt: skip
    """target = op(target, *others), where `action(array, *raw others)` does the writing.

    `core.views.inplace.write` computes the whole result and copies it over; an op that touches few
    places of a large tensor comes here.
    """
    if state.level != 0:
        check_captured(target, op)
    others = lift_operands(target, others)
    check_writable(target, overlap, others)
    if overlap:
        check_partial_overlap(target, others)
    mine = turn(target)
    if mine is not None:
        with mine:
            return _write_directly(op, target, others, action)
    return _write_directly(op, target, others, action)


def _write_directly(
    op: Any, target: TensorBase, others: tuple[Any, ...], action: Callable[..., None]
) -> Any:
    xs = (target, *others)
    raws = tuple([x._array if isinstance(x, TensorBase) else x for x in xs])
    node = make_node(op, xs)
    plan: OpSpec = op.plan
    if node is not None and plan.saves:
        # none of these ops reads the old value of the target; some read none of the next input
        skip = getattr(op, "skips", 1)
        none = (None,) * skip
        save_values(node, plan, (*none, *xs[skip:]), (*none, *raws[skip:]), [target])
    pending = inplace_tangent(op, target, xs, raws, None) if stack.tangents != 0 else None
    profile = observer.profile if state.active != 0 else None
    try:
        if profile is None:
            action(*raws)
        else:
            profile(op, raws, action)
    except Exception as error:
        raise op.explain(error, raws) from None
    settle(target, node, plan)
    if pending is not None:
        write_tangent(target, pending)
        if node is not None:
            keep_tangents(node, plan, (None, *others), [target], None)
    return target


# --- numbers --------------------------------------------------------------------------------------
_C_NAMES: Final = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip
_FLOAT_MAX: Final = 3.4028234663852886e38
_LOW_MAX: Final = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}


def number_for(value: Any, raw: Any, low_too: bool = True) -> Any:
    """A Python number as it is stored in a raw dtype; PyTorch's error if it does not fit. With
    `low_too` false it becomes infinite where it is too large for a low precision."""
    kind: str = raw.kind
    if isinstance(value, int) and not -(1 << 63) <= value < (1 << 64):
        raise OverflowError("int too big to convert")
    if kind == "b":
        return bool(value)
    fits = True
    if kind in "iu":
        if isinstance(value, complex):
            fits = value.imag == 0
            value = value.real
        if isinstance(value, float):
            fits = fits and math.isfinite(value)
        if fits:
            bits = raw.itemsize * 8
            top = (1 << (bits - (kind == "i"))) - 1
            if kind == "i":
                fits = -top - 1 <= value <= top
            elif isinstance(value, float):
                fits = 0 <= value <= top
            else:
                fits = -top <= value <= top  # negative ints wrap round
            if fits:
                value = int(value)
                value = value + top + 1 if kind == "u" and value < 0 else value
    elif kind in "cW":
        if raw.itemsize == 8:
            parts = (value.real, value.imag)
            fits = all(abs(p) <= _FLOAT_MAX or not math.isfinite(p) for p in parts)
    else:
        if isinstance(value, complex):
            fits = value.imag == 0
            value = value.real
        if raw.kind == "f" and raw.itemsize == 4:
            fits = fits and (abs(value) <= _FLOAT_MAX or not math.isfinite(value))
        elif raw.itemsize < 4:
            top = _LOW_MAX.get(raw.name, math.inf)
            if abs(value) > top and math.isfinite(value):
                if low_too:
                    fits = False
                elif raw.kind == "f" and abs(value) >= 65520:
                    value = math.copysign(math.inf, value)  # as NumPy has it, but for its warning
    if not fits:
        name = _C_NAMES.get(dtypes.of(raw).name, "double")
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    return value


def scalar_for(value: Any, array: Any) -> Any:
    """A Python number as a raw 0-d array in the dtype and on the device of `array`."""
    raw = array.dtype
    return v.constant(array, number_for(value, raw, False), raw)


def same_device(x: TensorBase, target: TensorBase) -> Any:
    """`x` on the device of `target`."""
    if type(x._array) is type(target._array):
        return x
    return methods["to"](x, device_of(target._array))


# --- copy_ ----------------------------------------------------------------------------------------
@op
class Copy(Op):
    """`src`, broadcast and cast, in place of `self`."""

    name, node = "copy", "CopyBackwards"
    inputs = ("self", "src")

    def forward(self, x: Any, src: Any) -> Any:
        return v.broadcast(v.cast(src, raw_dtype(x)), x.shape)

    def vjp(self, node: Node, g: Any) -> Any:
        return zeros_for(node, 0, g), (g if node._needs_grad(1) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        if ts[1] is None:
            return v.full(y, y.shape, 0, raw_dtype(y))
        return self.forward(y, ts[1])

    samples = drawn(
        real=[((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()), ((0, 2), (1, 2))], complex=[((2,), (2,))]
    )


COPY: Final = Copy()


@function(free=False, quick=plain_calls.copy_)
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy `src`, broadcast and cast to fit, into this tensor.

    >>> torch.zeros(2, 2).copy_(torch.tensor([1., 2.]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if isinstance(src, TensorBase) and isinstance(self, TensorBase) and copy_plain(self, src):
        return self
    if isinstance(src, (bool, int, float, complex)):
        return fill_with(self, src, True)
    check_tensor(src, "copy_", "other")
    shape, have = self._array.shape, src._array.shape
    if shape != have:
        joint = tuple(max(a, b) if min(a, b) else 0 for a, b in _pair_sizes(shape, have))
        if any(a != b and 1 not in (a, b) for a, b in _pair_sizes(shape, have)):
            raise RuntimeError(broadcast_mismatch(shape, have))
        if joint != shape:
            raise RuntimeError(
                f"output with shape {list(shape)} doesn't match the broadcast shape {list(joint)}"
            )
    return copy_into(self, src)


def _pair_sizes(a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Sizes of two shapes side by side from the last, missing ones as 1, in order."""
    rank = max(len(a), len(b))
    yield from zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)


def copy_into(target: Any, src: Any) -> Any:
    """`target.copy_(src)` where the shapes are known to fit."""
    return write_directly(COPY, target, (same_device(src, target),), v.overwrite)


# --- fill_, zero_ ---------------------------------------------------------------------------------
class FillBase(Op):
    """One number everywhere, given as a parameter."""

    params: ClassVar[tuple[str, ...]] = ("value",)
    value: Any

    def forward(self, x: Any) -> Any:
        return v.full(x, x.shape, self.value, raw_dtype(x))

    def vjp(self, node: Node, g: Any) -> Any:
        return (zeros_for(node, 0, g),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.full(y, y.shape, 0, raw_dtype(y))

    def overwrite(self, array: Any) -> None:
        v.overwrite(array, v.constant(array, self.value, array.dtype))


@op
class Fill(FillBase):
    """`fill` with a number."""

    name = "fill"
    aten = "fill.Scalar"
    complex_too = True

    samples = drawn(real=[(2.0, (2, 3)), (-1.0, ())])


class FillInPlace(FillBase):
    """`fill_` with a number: PyTorch numbers its nodes apart."""

    name, node, aten = "fill_", "FillBackward2", "fill_.Scalar"
    saved_names = ""


class FillWithBase(Op):
    """The value of a 0-d tensor everywhere."""

    inputs = ("self", "value")

    def forward(self, x: Any, value: Any) -> Any:
        return v.broadcast(v.cast(value, raw_dtype(x)), x.shape)

    def vjp(self, node: Node, g: Any) -> Any:
        return zeros_for(node, 0, g), (
            v.reduce_sum(g, None, False) if node._needs_grad(1) else None
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        if ts[1] is None:
            return v.full(y, y.shape, 0, raw_dtype(y))
        return self.forward(y, ts[1])


@op
class FillWith(FillWithBase):
    """`fill` with a 0-d tensor."""

    name, node = "fill_tensor", "FillBackward1"
    aten = "fill.Tensor"

    samples = drawn(real=[((2, 3), ())], complex=[((2,), ())])


class FillWithInPlace(FillWithBase):
    """`fill_` with a 0-d tensor."""

    name, node = "fill_tensor_", "FillBackward3"
    aten = "fill_.Tensor"


@op
class Zero(FillBase):
    """Zero everywhere."""

    name, params = "zero", ()
    value: Any = 0
    complex_too = True

    samples = drawn(real=[(2, 3), ()])


FILL_WITH, FILL_WITH_IN_PLACE, ZERO = FillWith(), FillWithInPlace(), Zero()


def _check_value(name: str, value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if is_scalar(value):
        return value.item()
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got "
            f"({dtypes.type_name(value)}), but expected one of:\n"
            " * (Tensor value)\n * (Number value)"
        )
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
            "dimensions."
        )
    return value


@function(method=False)
def fill(input: Any, value: Operand) -> Any:
    """A tensor like `input` that holds `value` everywhere.

    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """
    value = _check_value("fill", value)
    if isinstance(value, TensorBase):
        return apply(FILL_WITH, input, same_device(value, input))
    return apply(Fill(number_for(value, input._array.dtype, input._array.size != 1)), input)


@function(quick=plain_calls.fill_)
def fill_(input: Any, value: Any) -> Any:
    """Write `value`, a number or a 0-d tensor, everywhere.

    >>> torch.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if type(value) is float and isinstance(input, TensorBase) and fill_plain(input, value):
        return input
    return fill_with(input, _check_value("fill_", value), False)


def fill_with(target: Any, value: Any, overlap: bool) -> Any:
    """Write one value everywhere: a Python number or a 0-d tensor."""
    if isinstance(value, TensorBase):
        value = same_device(value, target)
        return write_directly(FILL_WITH_IN_PLACE, target, (value,), v.overwrite, overlap)
    what = FillInPlace(number_for(value, target._array.dtype, target._array.size != 1))
    return write_directly(what, target, (), what.overwrite, overlap)


@function(quick=plain_calls.zero_)
def zero_(input: Any) -> Any:
    """Write zero everywhere.

    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    if isinstance(input, TensorBase) and fill_plain(input, 0.0):
        return input
    return write_directly(ZERO, input, (), ZERO.overwrite, False)


# --- words that write, on tensors: those that stand inside batches --------------------------------
def _put(target: Any, source: Any) -> None:
    source = source if isinstance(source, TensorBase) else wrap(source)
    with outside_all(grad_enabled()):
        write_directly(COPY, target, (same_device(source, target),), v.overwrite, False)


@implements("overwrite")
def _overwrite(target: Any, source: Any) -> None:
    _put(target, source)


@implements("store")
def _store(target: Any, value: Any, index: Any, *arrays: Any) -> None:
    _put(target, v.place(target, value, index, *arrays))


@implements("store_add")
def _store_add(target: Any, value: Any, index: Any, *arrays: Any) -> None:
    _put(target, v.place_add(target, value, index, *arrays))


@implements("store_along")
def _store_along(target: Any, axis: int, index: Any, source: Any) -> None:
    _put(target, v.scatter(target, axis, index, source))
