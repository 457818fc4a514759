"""Arithmetic to the last bit: fused multiply-add, the C library's functions, PyTorch's casts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rushlight.errors import OVERLAPS
from rushlight.random.names import FLOATS, dtype_name

if TYPE_CHECKING:
    import numpy.typing as npt

Raw: TypeAlias = "npt.NDArray[Any]"
F64: TypeAlias = "npt.NDArray[np.float64]"
F32: TypeAlias = "npt.NDArray[np.float32]"

SPLITTER = 134217729.0  # 2^27 + 1: halves a float64's digits (Veltkamp)


def dense_like(a: Raw, dtype: np.dtype[Any] | None = None) -> Raw:
    """An array whose values do not matter, dense, in the order of strides of `a`.

    NumPy's `empty_like` but for axes along which memory repeats: those of stride 0 stay where they
    are among the others, and of equal strides the shorter axis is the inner one.
    """
    if 0 not in a.strides:
        return np.empty_like(a, dtype=dtype, subok=False)
    outward = outward_axes(a.shape, [a.strides])
    rows = np.empty([a.shape[d] for d in outward], a.dtype if dtype is None else dtype)
    return rows.transpose(np.argsort(outward))


def outward_axes(shape: tuple[int, ...], operands: list[tuple[int, ...]]) -> list[int]:
    """In which order PyTorch lays out the axes of what it makes element by element, the widest
    stride first, from the operands' strides (0 where memory repeats).

    Of two axes, the first operand that has both decides: the wider stride is the outer one, and of
    equal strides the longer axis. Axes that no operand tells apart stay in their order.
    """
    order = list(range(len(shape) - 1, -1, -1))  # from the innermost axis outward
    for last in range(1, len(shape)):
        at = last
        for before in range(last - 1, -1, -1):
            swap = _inner_first(shape, operands, order[before], order[at])
            if swap < 0:
                break
            if swap > 0:
                order[before], order[at] = order[at], order[before]
                at = before
    return order[::-1]


def _inner_first(
    shape: tuple[int, ...], operands: list[tuple[int, ...]], one: int, two: int
) -> int:
    """Whether axis `one` belongs inside `two` (-1), outside (1), or nobody can tell (0)."""
    for strides in operands:
        a, b = strides[one], strides[two]
        if a == 0 or b == 0:
            continue
        if a != b:
            return -1 if a < b else 1
        if shape[one] > shape[two]:
            return 1
    return 0


def fma32(x: Raw, y: float, z: float, exact: bool = False) -> F32:
    """x*y + z rounded once to float32; x float32, y and z float32 values.

    The product is exact in float64. The sum is rounded to float64 and again to float32, which goes
    wrong only where the first rounding lands on a tie of the second: those few are redone with the
    first rounding made to odd. With `exact` the sum needs no first rounding: nothing to look for.
    """
    product = np.multiply(x, y, dtype=np.float64)
    if z == 0.0:
        return np.add(product, z, product).astype(np.float32)  # the sum turns -0 into +0
    total = product + z
    result = total.astype(np.float32)
    if exact:
        return result
    small = np.abs(total) < 2.0**-125  # subnormal float32s have their ties elsewhere
    tied = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    redo = tied | small
    if redo.any():
        result[redo] = _to_odd(product[redo], z).astype(np.float32)
    return result


def _to_odd(p: F64, z: float) -> F64:
    """p + z in float64, an inexact result moved to the neighbour whose last bit is 1."""
    s, error = two_sum(p, z)
    bits = s.view(np.int64)
    step = np.where((error > 0) == (s > 0), 1, -1)
    return np.where((error != 0) & (bits & 1 == 0), bits + step, bits).view(np.float64)


def two_sum(a: F64, b: float | F64) -> tuple[F64, F64]:
    """a + b and its rounding error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fma64(x: F64, y: float, z: float) -> F64:
    """x*y + z rounded (all but) once to float64, for x of moderate size."""
    p = x * y
    if z == 0.0 or not (abs(y) < 2.0**990 and math.isfinite(z)):
        return np.add(p, z, p)
    # the error of the product, from halves of the factors' digits (Dekker)
    cut = y * SPLITTER
    y_high = cut - (cut - y)
    y_low = y - y_high
    high = x * SPLITTER
    low = high - x
    np.subtract(high, low, high)
    np.subtract(x, high, low)
    error = high * y_high
    np.subtract(error, p, error)
    np.add(error, np.multiply(high, y_low, high), error)
    np.add(error, np.multiply(low, y_high, high), error)
    np.add(error, np.multiply(low, y_low, low), error)
    s, t = two_sum(p, z)
    return np.add(s, np.add(t, error, t), s)


# Note [The C library's functions]
# PyTorch calls the C library's log, sin, cos, ... one number at a time. NumPy's own vector versions
# differ from them in the last bit on some processors. So each is compared once with `math`, which
# calls the C library. Where they differ, input and output are made to overlap by all but a number:
# NumPy then works number by number, with the C library. Should that fail too, `math` is mapped over
# the numbers, ten times slower.


def _c_library(
    ufunc: np.ufunc, scalar: Callable[[float], float], low: float, high: float
) -> Callable[[F64], F64]:

    def whole(x: F64) -> F64:
        result: F64 = ufunc(x)
        return result

    def overlapping(x: F64) -> F64:
        memory = np.ones(x.size + 4)  # never so few numbers that they could not overlap
        memory[1 : x.size + 1] = x
        ufunc(memory[1:], memory[:-1])
        return memory[: x.size]

    def mapped(x: F64) -> F64:
        return np.fromiter(map(scalar, x.tolist()), np.float64, x.size)

    probe = np.linspace(low, high, 4097)
    wanted = mapped(probe)
    ways = (way for way in (whole, overlapping) if np.array_equal(way(probe), wanted))
    return next(ways, mapped)


@functools.cache
def c_log() -> Callable[[F64], F64]:
    """log for a vector of numbers in (0, 1]."""
    return _c_library(np.log, math.log, 2.0**-20, 1.0)


@functools.cache
def c_log1p() -> Callable[[F64], F64]:
    """log1p for a vector of numbers in (-1, 0]."""
    return _c_library(np.log1p, math.log1p, 2.0**-20 - 1.0, 0.0)


@functools.cache
def c_cos() -> Callable[[F64], F64]:
    """cos for a vector of angles."""
    return _c_library(np.cos, math.cos, 0.0, 2 * math.pi)


@functools.cache
def c_sin() -> Callable[[F64], F64]:
    """sin for a vector of angles."""
    return _c_library(np.sin, math.sin, 0.0, 2 * math.pi)


@functools.cache
def c_tan() -> Callable[[F64], F64]:
    """tan for a vector of angles."""
    return _c_library(np.tan, math.tan, -1.5, 1.5)


@functools.cache
def c_exp() -> Callable[[F64], F64]:
    """exp for a vector of numbers."""
    return _c_library(np.exp, _exp, -5.0, 5.0)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


# -- layout and casts --------------------------------------------------------------------------


def by_address(a: Raw) -> Raw:
    """`a` with its dimensions in the order of memory: PyTorch fills in rising address."""
    return a if a.flags.c_contiguous else a.transpose(address_order(a))


def address_order(a: Raw) -> list[int]:
    """The dimensions of `a`, widest stride first."""
    if any(step == 0 and length > 1 for step, length in zip(a.strides, a.shape, strict=True)):
        raise RuntimeError(OVERLAPS)
    return sorted(range(a.ndim), key=lambda d: -abs(a.strides[d]))


def pieces(a: Raw, size: int = 1 << 14) -> Iterator[Raw]:
    """`a` in parts that follow each other in memory, small enough to stay in the cache."""
    if a.size <= size or not a.flags.c_contiguous:
        yield a
    else:
        flat = a.reshape(-1)
        for start in range(0, a.size, size):
            yield flat[start : start + size]


def store(a: Raw, values: Raw) -> None:
    """Write a flat array of values into `a` in rising address, cast as C casts."""
    target = by_address(a)
    if a.dtype.itemsize == 2 and dtype_name(a.dtype) in FLOATS and values.dtype != np.float32:
        # PyTorch's 16-bit floats are made from float32
        values = values.astype(np.float32)
    if a.dtype.kind in "iu" and values.dtype.kind == "f":
        values = _float_to_int(values, a.dtype)
    target[...] = values.reshape(target.shape)


def store_wide(a: Raw, values: Raw) -> None:
    """`store`, of values that may be too large for `a`: they become inf, without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        store(a, values)


def _float_to_int(values: Raw, dtype: np.dtype[Any]) -> Raw:
    """What the processor does: to 32 or 64 bits, 'none of these' as the least, then cut to size."""
    bits = 64 if dtype.itemsize == 8 else 32
    fits = np.abs(values) < 2.0 ** (bits - 1)
    return np.where(fits, values, -(2.0 ** (bits - 1))).astype(np.int64).astype(dtype)
