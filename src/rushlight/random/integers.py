"""Filling arrays with random integers, of any dtype that can hold them.

The bounds are int64s, as PyTorch's are; of a floating dtype they are first moved to values that it
holds.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rushlight.random.exact import Raw, store
from rushlight.random.generator import Generator, default_generator
from rushlight.random.names import (
    DIGITS,
    FLOATS,
    INTEGERS,
    LARGEST,
    UNSIGNED,
    c_type,
    dtype_name,
    not_implemented,
)

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def random_(
    a: Raw, lo: int | None = None, hi: int | None = None, gen: Generator | None = None
) -> None:
    """Fill with integers from [lo, hi); without hi up to the dtype's largest, both included.

    Floating dtypes then end at 2^digits, up to which they hold every integer. `lo` of -2^63 without
    `hi` wants all 64 bits; with neither, `lo` is 0.
    """
    gen = gen or default_generator
    if lo is None and hi is None:
        _random_to_largest(a, gen)
    elif lo == INT64_MIN and hi is None:
        _random_64_bits(a, gen)
    else:
        lo, hi = _random_bounds(a.dtype, lo or 0, hi)
        if a.size:
            with gen.lock:
                _random_between(a, lo, hi, gen)


def _random_to_largest(a: Raw, gen: Generator) -> None:
    name = dtype_name(a.dtype)
    if a.size == 0:
        return
    if name not in FLOATS + INTEGERS + ("bool",):
        not_implemented("random_kernel_cpu", a.dtype)
    with gen.lock:
        if name == "int64":
            values: Raw = (gen.take64(a.size) & INT64_MAX).view(np.int64)
        elif name == "float64":
            values = (gen.take64(a.size) % ((1 << 53) + 1)).view(np.int64)
        elif name in FLOATS:
            values = gen.take32(a.size) % ((1 << DIGITS[name]) + 1)
        elif name == "bool":
            values = gen.take32(a.size) & 1
        else:
            values = gen.take32(a.size) & np.iinfo(a.dtype).max
        store(a, values)


def _random_64_bits(a: Raw, gen: Generator) -> None:
    kernel = "random_full_64_bits_range_kernel_cpu"
    if a.size == 0:
        return
    if dtype_name(a.dtype) in ("int32", "int16", "int8", "uint8"):
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")
    if dtype_name(a.dtype) not in ("int64", "float64", "float32", "bfloat16"):
        not_implemented(kernel, a.dtype)
    with gen.lock:
        store(a, gen.take64(a.size).view(np.int64))


def _random_between(a: Raw, lo: int, hi: int, gen: Generator) -> None:
    span = hi - lo
    if gen.bits.integers(a, lo, span):
        return
    if span < 1 << 28:
        words = gen.take32(a.size)
        values = np.remainder(words, np.array(span, words.dtype), words)
        if a.dtype == np.int64 and a.flags.c_contiguous:
            np.add(values, lo, a.reshape(-1), dtype=np.int64, casting="unsafe")
            return
        values = values.astype(np.int64)
    else:
        wide = gen.take64(a.size)
        values = np.remainder(wide, np.array(span, np.uint64), wide).view(np.int64)
    if lo:
        values += np.int64(lo)  # wraps, as it should: lo + span may pass 2^63 in between
    store(a, values)


def _random_bounds(dtype: np.dtype[Any], lo: int, hi: int | None) -> tuple[int, int]:
    """The bounds checked as PyTorch checks them, and moved to what a floating dtype can hold."""
    for bound in (lo, hi or 0):
        if not INT64_MIN <= bound <= INT64_MAX:
            raise ValueError("Overflow when unpacking long long")
    floating = dtype_name(dtype) in FLOATS
    if hi is None:
        if dtype.kind == "c":
            raise RuntimeError(
                "random_from_to_impl handles only integral, floating-point and boolean types"
            )
        last = _largest_integer(dtype)
        if floating:
            lo = _raise_lo(dtype, lo)
            if not lo < last:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                    f"casted to dtype, but got from={lo} > to_inc={last}"
                )
        _check_range(dtype, lo, last)
        return lo, last + 1
    if not lo < hi:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={lo} >= to={hi}"
        )
    if dtype.kind not in "biuc" and not floating:
        not_implemented("random_update_from_to", dtype)
    if floating:
        lo, hi = _raise_lo(dtype, lo), _lower_hi(dtype, hi)
        if not lo < hi:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                f"got from={lo} >= to={hi}"
            )
    _check_range(dtype, lo, hi - 1)
    return lo, hi


def _largest_integer(dtype: np.dtype[Any]) -> int:
    if dtype_name(dtype) in DIGITS:
        return 1 << DIGITS[dtype_name(dtype)]
    if dtype_name(dtype) == "bool":
        return 1
    if dtype_name(dtype) == "uint64":
        return -1  # 2^64 - 1 as PyTorch reads it: no range ends there
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else 0


def _check_range(dtype: np.dtype[Any], lo: int, last: int) -> None:
    floating = dtype_name(dtype) in FLOATS
    if floating:
        largest: float = LARGEST[dtype_name(dtype)]
        smallest = -largest
    elif dtype_name(dtype) == "bool":
        smallest, largest = 0, 1
    elif dtype_name(dtype) in INTEGERS + UNSIGNED:
        smallest, largest = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    else:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    for label, bound in (("from", lo), ("to - 1", last)):
        if not smallest <= bound <= largest:
            raise RuntimeError(f"{label} is out of bounds for {c_type(dtype)}")
    if floating:
        digits = DIGITS[dtype_name(dtype)]
        for label, bound in (("from", lo), ("to - 1", last)):
            if abs(bound) > 1 << digits:
                warnings.warn(
                    f"{label} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision "
                    f"limitations {c_type(dtype)} can support discrete uniform distribution only "
                    "within this range. This warning will become an error in version 1.7 release, "
                    "please fix the code in advance",
                    stacklevel=2,
                )


def _round(dtype: np.dtype[Any], value: int) -> int:
    """`value` rounded to a floating dtype and read back as int64, as the processor does it."""
    with np.errstate(over="ignore"):
        held = np.array(value, np.int64).astype(np.float32 if dtype.itemsize == 2 else dtype)
        near = float(held.astype(dtype))
    return int(near) if abs(near) < 2.0**63 else INT64_MIN


def _raise_lo(dtype: np.dtype[Any], lo: int) -> int:
    following = _round(dtype, lo + 1)
    if following >= lo:
        return lo
    return following + (1 << (abs(lo + 1).bit_length() - DIGITS[dtype_name(dtype)]))


def _lower_hi(dtype: np.dtype[Any], hi: int) -> int:
    previous = _round(dtype, hi - 1)
    if previous < hi:
        return hi
    return previous - (1 << (abs(hi - 1).bit_length() - DIGITS[dtype_name(dtype)]))
