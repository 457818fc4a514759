"""Filling arrays with random numbers, element by element as PyTorch's CPU kernels do.

Every function takes a NumPy array of any strides and fills it in rising memory address; U24 and U53
below are `Generator.unit24` and `Generator.unit53`. Errors come before the first word is drawn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.errors import check_expandable
from rushlight.random.exact import (
    Raw,
    address_order,
    c_exp,
    c_log,
    c_log1p,
    c_tan,
    dense_like,
    fma32,
    fma64,
    pieces,
    store,
    store_wide,
)
from rushlight.random.generator import Generator, default_generator
from rushlight.random.names import (
    FLOATS,
    INTEGERS,
    LARGEST,
    c_type,
    dtype_name,
    not_implemented,
    scalar_type,
)
from rushlight.random.normals import fill_normal, one_by_one


def _as_real(a: Raw) -> Raw:
    """A complex array as a real one with a last dimension of 2."""
    part = a.dtype.itemsize // 2
    return np.lib.stride_tricks.as_strided(a.real, (*a.shape, 2), (*a.strides, part))


# -- continuous --------------------------------------------------------------------------------


def uniform_(a: Raw, lo: float = 0.0, hi: float = 1.0, gen: Generator | None = None) -> None:
    """Fill with numbers from [lo, hi): one fused multiply-add of U24 (U53 for float64)."""
    if a.dtype.kind == "c":
        return uniform_(_as_real(a), lo, hi, gen) if a.size else None
    name = dtype_name(a.dtype)
    if name not in FLOATS:
        not_implemented("check_uniform_bounds", a.dtype)
    _check_uniform(a.dtype, lo, hi)
    gen = gen or default_generator
    with gen.lock:
        if gen.bits.uniform(a, lo, hi):
            return
        if lo == 0.0 and hi == 1.0 and a.itemsize > 2 and a.flags.c_contiguous:
            (gen.unit24 if name == "float32" else gen.unit53)(a.size, a.reshape(-1))
        else:
            fill = _uniform64 if name == "float64" else _uniform32
            for part in pieces(a):
                fill(part, lo, hi, gen)


def _check_uniform(dtype: np.dtype[Any], lo: float, hi: float) -> None:
    largest = LARGEST[dtype_name(dtype)]
    for label, bound in (("from", lo), ("to", hi)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{label} is out of bounds for {c_type(dtype)}")
    if not lo <= hi:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={lo:g} > to={hi:g}"
        )
    if not hi - lo <= largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_type(dtype)}>::max(), but "
            f"found to={hi:g} and from={lo:g} which result in to-from to exceed the limit"
        )


def _uniform64(a: Raw, lo: float, hi: float, gen: Generator) -> None:
    values = gen.unit53(a.size)
    if lo != 0.0 or hi != 1.0:
        values = fma64(values, float(hi - lo), float(lo))
        values[values == hi] = lo
    store(a, values)


def _uniform32(a: Raw, lo: float, hi: float, gen: Generator) -> None:
    """The 16-bit floats go the way of float32, bounds included, until the result is rounded."""
    lo, hi = float(np.float32(lo)), float(np.float32(hi))
    span = float(np.float32(hi) - np.float32(lo))
    values: Raw = gen.unit24(a.size)
    if lo != 0.0 or hi != 1.0:
        values = fma32(values, span, lo, _sum_is_exact(span, lo))
    values = values.astype(a.dtype, copy=False)
    values[values == np.float32(hi).astype(a.dtype)] = lo
    store(a, values)


def _sum_is_exact(span: float, lo: float) -> bool:
    """Whether U24*span + lo fits a float64's 53 digits whatever the draw."""
    of_span, of_lo = math.frexp(span)[1], math.frexp(lo)[1]
    return max(of_span, of_lo) + 1 - min(of_span - 48, of_lo - 24) <= 53


def normal_(a: Raw, mean: float = 0.0, std: float = 1.0, gen: Generator | None = None) -> None:
    """Fill with normals; a complex number's parts share its variance, and each has the mean."""
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if a.size == 0:
        return
    gen = gen or default_generator
    if a.dtype.kind == "c":
        with gen.lock:
            fill_normal(_as_real(a), float(mean), std / math.sqrt(2.0), gen)
        return
    if dtype_name(a.dtype) not in FLOATS:
        not_implemented("normal_kernel_cpu", a.dtype)
    with gen.lock:
        fill_normal(a, float(mean), float(std), gen)


def log_normal_(a: Raw, mean: float = 1.0, std: float = 2.0, gen: Generator | None = None) -> None:
    """Fill with exp(normal), the normals drawn one by one in float64."""
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if a.size == 0:
        return
    if dtype_name(a.dtype) not in FLOATS:
        not_implemented("log_normal_cpu", a.dtype)
    gen = gen or default_generator
    with gen.lock, np.errstate(over="ignore", under="ignore", invalid="ignore"):
        normals = one_by_one(a.size, float(mean), float(std), gen)
        store(a, c_exp()(normals))


def exponential_(a: Raw, lambd: float = 1.0, gen: Generator | None = None) -> None:
    """Fill with -log1p(-U53) / lambd."""
    if not lambd > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if a.size == 0:
        return
    if a.dtype.kind in "biuc":
        _not_continuous("Exponential", scalar_type(a.dtype))
    if dtype_name(a.dtype) not in FLOATS:
        not_implemented("exponential_cpu", a.dtype)
    gen = gen or default_generator
    with gen.lock:
        if gen.bits.exponentials(a, lambd):
            return
        unit = gen.unit53(a.size)
    with np.errstate(over="ignore", invalid="ignore"):
        store(a, c_log1p()(-unit) * np.divide(-1.0, lambd))


def cauchy_(a: Raw, median: float = 0.0, sigma: float = 1.0, gen: Generator | None = None) -> None:
    """Fill with median + sigma * tan(pi * (U53 - 1/2))."""
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if a.dtype.kind in "biuc":
        _not_continuous("Cauchy", c_type(a.dtype))
    if a.size == 0:
        return
    if dtype_name(a.dtype) not in FLOATS:
        not_implemented("cauchy_cpu", a.dtype)
    gen = gen or default_generator
    with gen.lock:
        unit = gen.unit53(a.size)
    with np.errstate(over="ignore", invalid="ignore"):
        store(a, fma64(c_tan()(math.pi * (unit - 0.5)), float(sigma), float(median)))


def _not_continuous(distribution: str, dtype: str) -> None:
    raise RuntimeError(
        f"{distribution} distribution is a continuous probability distribution. dtype must be a "
        f"floating point but you specified {dtype}"
    )


# -- discrete ----------------------------------------------------------------------------------


def geometric_(a: Raw, p: float, gen: Generator | None = None) -> None:
    """Fill with the number of tries up to the first success: ceil(log(U53) / log1p(-p))."""
    if not 0.0 < p < 1.0:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if a.size == 0:
        return
    if dtype_name(a.dtype) not in FLOATS + INTEGERS:
        not_implemented("geometric_cpu", a.dtype)
    gen = gen or default_generator
    with gen.lock:
        unit = gen.unit53(a.size)
    zero = unit == 0.0
    unit[zero] = 1.0
    tries = np.ceil(c_log()(unit) / math.log1p(-p))
    tries[zero] = np.inf
    store_wide(a, tries)


def bernoulli_(a: Raw, p: float | Raw = 0.5, gen: Generator | None = None) -> None:
    """Fill with 1 where U53 < p, else 0; with an array of float32 (or shorter) p, U24 < p."""
    gen = gen or default_generator
    if isinstance(p, np.ndarray):
        return _bernoulli_array(a, p, gen)
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if a.size == 0:
        return
    if dtype_name(a.dtype) not in FLOATS + INTEGERS + ("bool",):
        not_implemented("bernoulli_scalar_cpu_", a.dtype)
    with gen.lock:
        if not gen.bits.keeps(a, p, 1.0):
            store(a, gen.unit53(a.size) < p)


def _bernoulli_array(a: Raw, p: Raw, gen: Generator) -> None:
    if a.size == 0:
        return
    if dtype_name(a.dtype) not in FLOATS + INTEGERS + ("bool",):
        not_implemented("bernoulli_tensor_cpu_self_", a.dtype)
    p = _expand(p, a.shape)
    if dtype_name(p.dtype) not in FLOATS:
        not_implemented("bernoulli_tensor_cpu_p_", p.dtype)
    with gen.lock:
        if gen.bits.keeps_by(a, p):
            return
    if not ((p >= 0).all() and (p <= 1).all()):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message "
            "be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if not a.flags.c_contiguous:
        p = p.transpose(address_order(a))
    with gen.lock:
        unit = gen.unit53(a.size) if p.dtype == np.float64 else gen.unit24(a.size)
        store(a, unit < p.reshape(-1).astype(unit.dtype, copy=False))


def _expand(p: Raw, shape: tuple[int, ...]) -> Raw:
    """`p` broadcast to `shape`, or PyTorch's complaint."""
    if p.shape == shape:
        return p
    kind = scalar_type(p.dtype)
    kind = "CPUBFloat16Type" if kind == "BFloat16" else f"torch.{kind}Tensor"
    check_expandable(kind, p.shape, shape)
    return np.broadcast_to(p, shape)


def keep_mask(like: Raw, p: float, gen: Generator | None = None) -> Raw:
    """1 with probability 1-p, else 0: of the shape, dtype and memory layout of `like`."""
    noise = dense_like(like)
    bernoulli_(noise, 1.0 - p, gen)
    return noise


def dropout_mask(like: Raw, p: float, gen: Generator | None = None) -> Raw:
    """1/(1-p) with probability 1-p, else 0: of the shape, dtype and memory layout of `like`.

    For 0 < p < 1; at 0 and 1 PyTorch's dropout draws nothing.
    """
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if like.dtype.kind == "f" and like.flags.c_contiguous and like.itemsize > 2 and p < 1.0:
        noise = np.empty(like.shape, like.dtype)
        kept = 1.0 - p
        gen = gen or default_generator
        with gen.lock:
            if gen.bits.keeps(
                noise, kept, 1.0 / np.float32(kept) if like.itemsize < 8 else 1.0 / kept
            ):
                return noise
    noise = keep_mask(like, p, gen)
    if dtype_name(noise.dtype) not in FLOATS:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {scalar_type(noise.dtype)}"
        )
    scale = 1.0 / np.float32(1.0 - p) if noise.dtype.itemsize < 8 else 1.0 / (1.0 - p)
    np.multiply(noise, noise.dtype.type(scale), noise)  # of 0 and 1: exact
    return noise
