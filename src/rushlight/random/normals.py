"""Normally distributed numbers, by PyTorch's three routes.

Fewer than 16 numbers, or numbers that don't lie contiguously, are drawn one by one in float64
(`one_by_one`). Otherwise numbers come in blocks of 16, eight radii and eight angles: in float64
with the C library's functions (`_polar64`), and in float32 with short polynomials evaluated in
float32 (`_polar32`), which the 16-bit floats share.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import (
    add,
    bitwise_and,
    bitwise_xor,
    empty,
    empty_like,
    left_shift,
    multiply,
    negative,
    right_shift,
    sqrt,
    subtract,
)

from rushlight.random.exact import F32, F64, Raw, c_cos, c_log, c_log1p, c_sin, fma32, fma64, store
from rushlight.random.generator import Generator

if TYPE_CHECKING:
    import numpy.typing as npt

CHUNK = 1024  # blocks worked on at a time, so that the temporaries stay in the processor's cache

TWO_PI = 2 * math.pi
U21 = (1 << 21) - 1  # what a word of U53 takes from the upper of two
SCALE53 = 2.0**-53


def fill_normal(a: Raw, mean: float, std: float, gen: Generator) -> None:
    """Fill `a` (a real floating dtype) with normals."""
    if gen.bits.normals(a, mean, std):
        return
    if a.size < 16 and mean == 0.0 and std == 1.0 and a.itemsize > 2 and a.flags.c_contiguous:
        # programs draw a single number again and again: what follows, without an array
        a.reshape(-1)[:] = [v + 0.0 for v in _few(a.size, gen)]  # the sum turns -0 into +0
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if a.size < 16 or not a.flags.c_contiguous:
            store(a, one_by_one(a.size, mean, std, gen))
        elif a.dtype == np.float64:
            _in_chunks(a.reshape(-1), mean, std, gen)
        else:
            _in_chunks(a.reshape(-1), float(np.float32(mean)), float(np.float32(std)), gen)


def one_by_one(n: int, mean: float, std: float, gen: Generator) -> F64:
    """n normals by the polar form of Box and Muller, the odd one left in the generator."""
    if n <= 20:
        return fma64(np.array(_few(n, gen)), std, mean)
    drawn: list[float] = []
    if gen.bits.normal is not None:
        drawn.append(gen.bits.normal)
        gen.bits.normal = None
    pairs = (n - len(drawn) + 1) // 2
    normals = np.concatenate((drawn, _pairs(gen.unit53(2 * pairs))))
    if len(normals) > n:
        gen.bits.normal = float(normals[n])
        normals = normals[:n]
    return fma64(normals, std, mean)


def _few(n: int, gen: Generator) -> list[float]:
    """`one_by_one` of mean 0 and deviation 1, where a loop beats NumPy's overhead."""
    drawn: list[float] = []
    if n and gen.bits.normal is not None:
        drawn.append(gen.bits.normal)
        gen.bits.normal = None
    log1p, cos, sin, root = math.log1p, math.cos, math.sin, math.sqrt
    words = gen.take32((n - len(drawn) + 1) // 2 * 4).tolist()
    for i in range(0, len(words), 4):
        angle = TWO_PI * (((words[i] & U21) << 32 | words[i + 1]) * SCALE53)
        radius = root(-2.0 * log1p(-((words[i + 2] & U21) << 32 | words[i + 3]) * SCALE53))
        drawn.append(radius * cos(angle))
        drawn.append(radius * sin(angle))
    if len(drawn) > n:
        gen.bits.normal = drawn.pop()
    return drawn


def _pairs(unit: F64) -> F64:
    angle = TWO_PI * unit[::2]
    radius = sqrt(-2.0 * c_log1p()(-unit[1::2]))
    return np.stack((radius * c_cos()(angle), radius * c_sin()(angle)), 1).reshape(-1)


def _in_chunks(flat: Raw, mean: float, std: float, gen: Generator) -> None:
    """Fill contiguous memory with blocks of 16; what is left over costs a block of its own."""
    n = flat.size
    whole = n - n % 16
    draw = _polar64 if flat.dtype == np.float64 else _polar32
    start = 0
    while whole - start > 16 * CHUNK:
        part = flat[start : start + 16 * CHUNK]
        part.reshape(-1, 2, 8)[...] = draw(CHUNK, 0, mean, std, gen).swapaxes(0, 1)
        start += 16 * CHUNK
    # PyTorch fills all of the memory before it transforms any; the 16-bit floats block by block
    more = 0 if whole == n else 16 if flat.itemsize == 2 else n - whole + 16
    blocks = (whole - start) // 16
    normals = draw(blocks, more, mean, std, gen)
    flat[start:whole].reshape(-1, 2, 8)[...] = normals[:, :blocks].swapaxes(0, 1)
    if more:
        flat[n - 16 :].reshape(2, 8)[...] = normals[:, blocks]


def _numerators(words: Raw, blocks: int, dtype: type[Any]) -> Raw:
    """The words for the radii and those for the angles of so many blocks, and of a last one."""
    n = 16 * blocks
    extra = words.size > n
    sorted_out = empty((2, blocks + extra, 8), dtype)
    sorted_out[:, :blocks] = words[:n].reshape(-1, 2, 8).swapaxes(0, 1)
    if extra:
        sorted_out[:, blocks] = words[-16:].reshape(2, 8)
    return sorted_out


def _polar64(blocks: int, more: int, mean: float, std: float, gen: Generator) -> F64:
    """Normals of float64: the cosines' and the sines' for each block of 16."""
    unit = _numerators(gen.unit53(16 * blocks + more), blocks, np.float64)
    radius = sqrt(-2.0 * c_log()((1.0 - unit[0]).reshape(-1)))
    angle = (TWO_PI * unit[1]).reshape(-1)
    normals = np.stack((radius * c_cos()(angle), radius * c_sin()(angle)))
    return fma64(normals, std, mean).reshape(2, -1, 8)


# -- float32 -----------------------------------------------------------------------------------

# Note [Float32 by way of float64]
# PyTorch evaluates polynomials with float32 fused multiply-adds. NumPy has none, so a step is a
# product and a sum in float64, rounded to float32. That rounds twice, and could differ from a fused
# step; but the inputs are only 2^24, and over all of them no step differs. The same enumeration
# shows that the angle's three-step reduction equals one step. (Constants: see
# Note [Constants as 0-d arrays].)


def _d(value: float) -> F64:
    """A float32 constant, held as float64."""
    return np.array(np.float32(value), np.float64)


def _f(value: float) -> F32:
    return np.array(value, np.float32)


def _i(value: int) -> npt.NDArray[np.int32]:
    return np.array(value, np.int32)


LOG_FIRST = _d(7.0376836292e-2)
LOG_REST = [
    _d(c)
    for c in (
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
]
LN2_LOW, LN2_HIGH = _f(-2.12194440e-4), _f(0.693359375)
COS_POLY = _d(2.443315711809948e-5), _d(-1.388731625493765e-3), _d(4.166664568298827e-2)
SIN_POLY = _d(-1.9515295891e-4), _d(8.3321608736e-3), _d(-1.6666654611e-1)
TURN = np.array(float(_d(TWO_PI)) * 2.0**-24)  # 2 pi in float32, for an angle in 2^-24 turns
QUARTER = np.array(
    2 * float(_d(-0.78515625) + _d(-2.4187564849853515625e-4) + _d(-3.77489497744594108e-8))
)
ZERO, ONE, HALF, MINUS_TWO, TWO_24 = _f(0.0), _f(1.0), _f(0.5), _f(-2.0), _f(2.0**24)
MINUS_HALF_64 = np.array(-0.5)
ROOT_HALF = _i(0x3F3504F3)  # sqrt(1/2) as bits
ROOT_HALF_24 = _i(0x3F3504F3 + (24 << 23))  # sqrt(1/2) * 2^24 as bits
NUMERATOR = _i(0xFFFFFF)
MANTISSA, MANTISSA_BITS = _i(0x7FFFFF), _i(23)
EIGHTH_TURN, QUARTER_BITS, SIGN_SHIFT = _i(1 << 21), _i(22), _i(30)
INT_ONE, INT_TWO = _i(1), _i(2)


def _polar32(blocks: int, more: int, mean: float, std: float, gen: Generator) -> F32:
    """Normals of float32: the cosines' and the sines' for each block of 16."""
    words = _numerators(gen.take32(16 * blocks + more), blocks, np.int32)
    radii, angles = bitwise_and(words, NUMERATOR, words).reshape(2, -1)
    radius = _radius(radii)
    normals = _cos_sin(angles)
    cosine, sine = normals
    multiply(radius, cosine, cosine)
    multiply(radius, sine, sine)
    if std == 1.0 and mean == 0.0:
        add(normals, ZERO, normals)  # turns -0 into +0
    else:
        normals = fma32(normals, std, mean)
    return normals.reshape(2, -1, 8)


def _radius(k: npt.NDArray[np.int32]) -> F32:
    """sqrt(-2 log(1 - k/2^24))."""
    n = k.size
    wide, y = empty(n), empty(n)  # (one array of two rows takes longer to make)
    narrow = k.astype(np.float32)
    # 1 - k/2^24 = 2^e * (1 + x), 1 + x in [sqrt(1/2), sqrt(2)): taken apart as bits
    bits = subtract(TWO_24, narrow, narrow).view(np.int32)
    subtract(bits, ROOT_HALF_24, bits)
    e = right_shift(bits, MANTISSA_BITS).astype(np.float32)
    bitwise_and(bits, MANTISSA, bits)
    x = add(bits, ROOT_HALF, bits).view(np.float32)
    subtract(x, ONE, x)
    wide[...] = x
    step = empty_like(x)
    multiply(wide, LOG_FIRST, y)
    for c in LOG_REST:
        add(y, c, y)
        step[...] = y
        y[...] = step
        multiply(y, wide, y)
    step[...] = y
    z = multiply(x, x)
    y[...] = step
    wide[...] = z
    multiply(y, wide, y)
    wide[...] = multiply(e, LN2_LOW)
    step[...] = add(y, wide, y)
    subtract(step, multiply(z, HALF, z), step)
    add(x, step, x)
    add(x, multiply(e, LN2_HIGH, e), x)
    multiply(x, MINUS_TWO, x)
    return sqrt(x, x)


def _cos_sin(k: npt.NDArray[np.int32]) -> F32:
    """cos and sin of k/2^24 turns, two rows."""
    both = empty((2, k.size), np.float32)
    cosine, sine = both[0], both[1]
    n = k.size
    angle, square, y, quarters = empty(n), empty(n), empty(n), empty(n)
    narrow = empty(n, np.float32)
    quarter = right_shift(add(k, EIGHTH_TURN), QUARTER_BITS)  # the nearest: 0 to 4
    angle[...] = k
    narrow[...] = multiply(angle, TURN, angle)
    angle[...] = narrow
    quarters[...] = quarter
    narrow[...] = add(angle, multiply(quarters, QUARTER, quarters), angle)
    angle[...] = narrow  # the rest, at most an eighth of a turn
    z = multiply(narrow, narrow)
    square[...] = z
    _short(COS_POLY, square, z, y, cosine)
    multiply(y, square, y)
    cosine[...] = add(y, multiply(square, MINUS_HALF_64, quarters), y)
    add(cosine, ONE, cosine)
    _short(SIN_POLY, square, z, y, sine)
    multiply(y, angle, y)
    sine[...] = add(y, angle, y)
    # odd quarters swap cos and sin, and half the circle is negative: done on the bits
    c_bits, s_bits = cosine.view(np.int32), sine.view(np.int32)
    swap = bitwise_xor(c_bits, s_bits)
    bitwise_and(swap, negative(bitwise_and(quarter, INT_ONE)), swap)
    bitwise_xor(c_bits, swap, c_bits)
    bitwise_xor(s_bits, swap, s_bits)
    sign = bitwise_and(quarter, INT_TWO)
    bitwise_xor(s_bits, left_shift(sign, SIGN_SHIFT, sign), s_bits)
    bitwise_and(add(quarter, INT_ONE, quarter), INT_TWO, quarter)
    bitwise_xor(c_bits, left_shift(quarter, SIGN_SHIFT, quarter), c_bits)
    return both


def _short(poly: tuple[F64, F64, F64], square: F64, z: F32, y: F64, step: F32) -> None:
    """y = z * (a z^2 + b z + c), each step rounded to float32."""
    multiply(square, poly[0], y)
    step[...] = add(y, poly[1], y)
    y[...] = step
    multiply(y, square, y)
    step[...] = add(y, poly[2], y)
    y[...] = multiply(step, z, step)
