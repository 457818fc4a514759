"""Numbers in a row: `arange`, `linspace`, `logspace`; and complex numbers from their parts."""

from __future__ import annotations

import builtins
import itertools
import warnings
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import kernels, making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU, current
from rushlight.arrays.host import move
from rushlight.core import plain_calls
from rushlight.core.families import is_complex as holds_complex
from rushlight.core.graph import Node, Op, TensorBase, wrap
from rushlight.core.record import finish
from rushlight.dtypes import type_name
from rushlight.ops.checks import is_batched, not_implemented, unmatched
from rushlight.ops.creation.tensor import (
    check_plain,
    checked_number,
    dtype_of,
    place_of,
    whole_number,
    write_created,
)
from rushlight.ops.each_member import one_by_one
from rushlight.ops.numbers import Number, Operand
from rushlight.ops.registry import function, guarded, op, said, variant
from rushlight.ops.view.expand import broadcast_shape

# --- counted --------------------------------------------------------------------------------------
_ARANGE: Final = """
 * (Number end, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, \
torch.device device = None, bool pin_memory = False, bool requires_grad = False)
 * (Number start, Number end, *, torch.dtype dtype = None, torch.layout layout = None, \
torch.device device = None, bool pin_memory = False, bool requires_grad = False)
 * (Number start, Number end, Number step = 1, *, Tensor out = None, torch.dtype dtype = None, \
torch.layout layout = None, torch.device device = None, bool pin_memory = False, \
bool requires_grad = False)
"""


def _arange(
    *args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, **named: Any,
) -> Any:  # fmt: skip
    slots: dict[str, Any] = dict(named)
    names = ("end",) if len(args) == 1 and "end" not in named else ("start", "end", "step")
    for key, value in zip(names, args, strict=False):
        if key in slots:
            raise unmatched("arange", _ARANGE, args, named)
        slots[key] = value
    unknown = set(slots) - {"start", "end", "step"}
    if len(args) > 3 or "end" not in slots or unknown or ("step" in slots and "start" not in slots):
        raise unmatched("arange", _ARANGE, args, named)
    order = [key for key in ("start", "end", "step") if key in slots]
    numbers: dict[str, Any] = {
        k: checked_number(slots[k], "arange", k, order.index(k) + 1) for k in order
    }
    start, end, step = numbers.get("start", 0), numbers["end"], numbers.get("step", 1)
    for value in (start, end, step):
        if _is_complex(value):
            raise RuntimeError("value cannot be converted to type double without overflow")
        if isinstance(value, int) and not -(1 << 63) <= value < (1 << 64):
            raise OverflowError("int too big to convert")
    check_plain("arange", layout, pin_memory, requires_grad)
    want = kind = dtype_of(dtype, "arange")
    if kind is None and isinstance(out, TensorBase):
        kind = dtypes.of(out._array.dtype)
    if kind is None:
        floats = any(isinstance(x, float) for x in (start, end, step))
        kind = dtypes.default if floats else dtypes.int64
    if kind is dtypes.bool_ or kind.is_complex:
        raise not_implemented("arange_cpu", kind)
    array = making.arange(start, end, step, kind.numpy)
    return write_created(
        "arange", out, move(array, place_of(device, "arange")), want, requires_grad
    )


_any_arange: Final = guarded(variant(_arange, "arange", ""), "arange")


@function(method=False, bare=True, quick=plain_calls.arange)
def arange(
    *args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, **named: Any,
) -> Any:  # fmt: skip
    """The numbers from `start`, by `step`, before `end`.

    Args:
        args: `end`; or `start`, `end`, and `step` if it is not 1.

    >>> torch.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> torch.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if (
        out is layout is device is None and requires_grad is pin_memory is False and not named
        and (dtype is None or type(dtype) is dtypes.dtype) and current() is CPU
    ):  # fmt: skip
        kind = -1 if dtype is None else dtype.numpy.num
        array = kernels.counted(args, kind, dtypes.default.numpy.num)
        if array is not None:
            return finish(wrap(array))
    return _any_arange(
        *args,
        **said(
            named,
            out=out,
            dtype=dtype,
            layout=layout,
            device=device,
            pin_memory=pin_memory,
            requires_grad=requires_grad,
        ),
    )


@function(method=False)
def range(
    start: Number = 0, end: Number | None = None, step: Number = 1, *, out: Any = None,
    dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The numbers from `start` to `end`, which counts too. Deprecated: use `arange`."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    given = (("start", start), ("end", end), ("step", step))
    first, last, by = (checked_number(x, "range", key, 1) for key, x in given)
    check_plain("range", layout, pin_memory, requires_grad)
    want = dtype_of(dtype, "range")
    kind = dtypes.default if want is None else want
    array = making.closed_range(first, last, by, kind.numpy)
    return write_created("range", out, move(array, place_of(device, "range")), want, requires_grad)


def _space(
    name: str, start: Any, end: Any, steps: Any, base: Any, out: Any, dtype: Any, layout: Any,
    device: Any, pin_memory: bool, requires_grad: bool,
) -> Any:  # fmt: skip
    if is_batched(start) or is_batched(end):
        rest = (steps, base, out, dtype, layout, device, pin_memory, requires_grad)
        zero = 0j if any(holds_complex(x) for x in (start, end)) else 0
        return one_by_one(
            name, lambda a, b: _space(name, a, b, *rest), start, end,
            blank=lambda: _space(name, zero, zero, *rest),
        )  # fmt: skip
    tensors = [isinstance(x, TensorBase) for x in (start, end)]
    ranks = [x._array.ndim if isinstance(x, TensorBase) else 0 for x in (start, end)]
    if any(ranks):
        ends = [
            f"{key} with {rank} dimension(s)"
            for key, rank, is_tensor in zip(("start", "end"), ranks, tensors, strict=True)
            if is_tensor
        ]
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got "
            f"{' and '.join(ends)}."
        )
    start, end = (wrap(x._array) if isinstance(x, TensorBase) else x for x in (start, end))
    first, last = checked_number(start, name, "start", 1), checked_number(end, name, "end", 2)
    count = whole_number(steps)
    if count is None:
        got = ", ".join(map(type_name, (start, end, steps)))
        more = "" if base is None else ", float base = 10.0"
        forms = "".join(
            f"\n * ({a} start, {b} end, int steps{more}, *, Tensor out = None, "
            "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
            "bool pin_memory = False, bool requires_grad = False)"
            for b, a in itertools.product(("Tensor", "Number"), repeat=2)
        )
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({got}), "
            f"but expected one of:{forms}\n"
        )
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    check_plain(name, layout, pin_memory, requires_grad)
    want = kind = dtype_of(dtype, name)
    if kind is None and isinstance(out, TensorBase):
        kind = dtypes.of(out._array.dtype)
    if kind is None:
        is_complex = _is_complex(first) or _is_complex(last)
        kind = dtypes.default_complex if is_complex else dtypes.default
    elif not kind.is_complex and (_is_complex(first) or _is_complex(last)):
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {dtypes.default_complex.name} can't be safely cast to "
            f"passed dtype {kind.name}"
        )
    array = making.space_evenly(first, last, count, kind.numpy, base)
    return write_created(name, out, move(array, place_of(device, name)), want, requires_grad)


def _is_complex(x: Any) -> bool:
    return isinstance(x, builtins.complex)


@function(method=False)
def linspace(
    start: Operand, end: Operand, steps: Any, *, out: Any = None, dtype: Any = None,
    layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """`steps` numbers from `start` to `end`, evenly spaced, both ends included.

    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    return _space(
        "linspace", start, end, steps, None, out, dtype, layout, device, pin_memory, requires_grad
    )


@function(method=False)
def logspace(
    start: Operand, end: Operand, steps: Any, base: float = 10.0, *, out: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """`steps` numbers from `base ** start` to `base ** end`, evenly spaced in the exponent.

    Args:
        start: the first exponent.
        end: the last exponent.

    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    return _space(
        "logspace", start, end, steps, base, out, dtype, layout, device, pin_memory, requires_grad
    )


# --- complex numbers from two tensors -------------------------------------------------------------
def _both(a: Any, b: Any) -> tuple[Any, Any]:
    shape = broadcast_shape(tuple(a.shape), tuple(b.shape))
    # repeated elements are written out: the result takes its order of strides from the first
    parts = [x if x.shape == shape else v.contiguous(v.broadcast(x, shape)) for x in (a, b)]
    return parts[0], parts[1]


@op
class Complex(Op):
    """real + i·imag."""

    name = "complex"
    word = "complex_of"
    inputs = ("real", "imag")
    lies = "operands"

    def forward(self, re: Any, im: Any) -> Any:
        return v.complex_of(*_both(re, im))

    def vjp(self, node: Node, g: Any) -> Any:
        return (
            v.real(g) if node._needs_grad(0) else None,
            v.imag(g) if node._needs_grad(1) else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        re, im = ts
        zero = v.real(y) * 0
        return v.complex_of(zero if re is None else re + zero, zero if im is None else im + zero)

    @staticmethod
    def samples(draw: Any) -> Any:
        for shapes in (((2, 3), (2, 3)), ((), ()), ((3,), (2, 1)), ((0,), (0,))):
            yield Complex(), draw.real(*shapes[0]), draw.real(*shapes[1])


@op
class Polar(Op):
    """abs · (cos(angle) + i·sin(angle))."""

    name = "polar"
    inputs = ("abs", "angle")
    saves = ("abs", "angle")
    lies = "operands"

    def forward(self, r: Any, angle: Any) -> Any:
        return v.complex_of(*_both(r * v.cos(angle), r * v.sin(angle)))

    def vjp(self, node: Node, g: Any, r: Any, angle: Any) -> Any:
        re, im = v.real(g), v.imag(g)
        c, s = v.cos(angle), v.sin(angle)
        return (
            re * c + im * s if node._needs_grad(0) else None,
            r * (im * c - re * s) if node._needs_grad(1) else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        (tr, ta), (r, angle) = ts, xs
        c, s = v.cos(angle), v.sin(angle)
        re = im = r * c * 0
        if tr is not None:
            re, im = re + tr * c, im + tr * s
        if ta is not None:
            re, im = re - ta * r * s, im + ta * r * c
        return v.complex_of(re, im)

    @staticmethod
    def samples(draw: Any) -> Any:
        for shapes in (((2, 3), (2, 3)), ((), ()), ((3,), (2, 1)), ((0,), (0,))):
            yield Polar(), draw.positive(*shapes[0]), draw.real(*shapes[1])


COMPLEX, POLAR = Complex(), Polar()


def _check_parts(a: Any, b: Any) -> None:
    have, other = dtypes.of(a._array.dtype), dtypes.of(b._array.dtype)
    allowed = (dtypes.float16, dtypes.float32, dtypes.float64)
    if have not in allowed or other not in allowed:
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{have.scalar_type} and {other.scalar_type}"
        )
    if have is not other:
        raise RuntimeError(
            f"Expected object of scalar type {have.scalar_type} but got scalar type "
            f"{other.scalar_type} for second argument"
        )
    broadcast_shape(a._array.shape, b._array.shape)


@function(out=True, method=False)
def complex(real: Any, imag: Any) -> Any:
    """Complex numbers from their real and imaginary parts.

    >>> torch.complex(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([1.+3.j, 2.+4.j])
    """
    _check_parts(real, imag)
    return COMPLEX, (real, imag)


@function(out=True, method=False)
def polar(abs: Any, angle: Any) -> Any:
    """Complex numbers from their absolute value and angle.

    >>> torch.polar(torch.tensor([1., 2.]), torch.tensor([0., 0.]))
    tensor([1.+0.j, 2.+0.j])
    """
    _check_parts(abs, angle)
    return POLAR, (abs, angle)
