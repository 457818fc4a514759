"""Fused arithmetic and the functions of the C library, to the last bit."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rushlight.random import exact


# -- arithmetic to the last bit ----------------------------------------------------------------
def rounded32(value: Fraction) -> np.float32:
    """The float32 nearest to a fraction, ties to even."""
    near = np.float32(float(value))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    finite = [x for x in around if np.isfinite(x)]
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.int32)) & 1))


def test_fma32_rounds_once() -> None:
    r = random.Random(0)
    for _ in range(60):
        scale = 2.0 ** r.choice([-149, -140, -126, -60, 0, 3])
        x = np.array([r.gauss(0, 1) for _ in range(8)] + [1 + 2**-12, 1.5], np.float32)
        y = float(np.float32(r.choice([r.gauss(0, 1), 1 + 2.0**-12, 3.0]) * scale))
        z = float(np.float32(r.choice([r.gauss(0, 1), 2.0**-30, 1.0, 2.0**24]) * scale))
        wanted = [rounded32(Fraction(float(v)) * Fraction(y) + Fraction(z)) for v in x]
        assert exact.fma32(x, y, z).tolist() == [float(v) for v in wanted]


def test_fma32_sees_a_tie_made_by_the_first_rounding() -> None:
    # 1 + 2^-23 + 2^-24 - 2^-60: float64 drops the last term, and the tie would then go up
    x = np.array([1 + 2.0**-18], np.float32)
    y, z = 2.0**-24 * (1 - 2.0**-18), 1 + 2.0**-23
    assert (x.astype(np.float64) * y + z).astype(np.float32)[0] == 1 + 2.0**-22
    assert exact.fma32(x, y, z)[0] == rounded32(Fraction(float(x[0])) * Fraction(y) + Fraction(z))
    assert exact.fma32(x, y, z)[0] == 1 + 2.0**-23


def test_fma64_rounds_once() -> None:
    r = random.Random(1)
    for _ in range(100):
        x = np.array([r.random() for _ in range(20)])
        y, z = r.gauss(0, 3), r.choice([r.gauss(0, 1), 1e-17, -0.5, 1e10])
        wanted = [float(Fraction(v) * Fraction(y) + Fraction(z)) for v in x.tolist()]
        assert exact.fma64(x, y, z).tolist() == wanted
    with np.errstate(over="ignore"):
        assert exact.fma64(np.array([2.0]), 1e308, 1.0).tolist() == [math.inf]
    assert exact.fma64(np.array([2.0]), 1.0, math.inf).tolist() == [math.inf]


@pytest.mark.parametrize(
    ("vector", "scalar", "low", "high"),
    [
        (exact.c_log, math.log, 1e-300, 1.0),
        (exact.c_log1p, math.log1p, -1 + 2.0**-53, 0.0),
        (exact.c_cos, math.cos, 0.0, 7.0),
        (exact.c_sin, math.sin, 0.0, 7.0),
        (exact.c_tan, math.tan, -1.57, 1.57),
        (exact.c_exp, math.exp, -700.0, 700.0),
    ],
)
def test_functions_are_the_c_librarys(vector: Any, scalar: Any, low: float, high: float) -> None:
    for n in (0, 1, 2, 3, 4, 5, 8, 9, 1000):
        x = np.random.default_rng(n).uniform(low, high, n)
        assert vector()(x).tolist() == [scalar(v) for v in x.tolist()]


def test_functions_fall_back_to_mapping_math() -> None:
    class Wrong:
        def __call__(self, x: Any, out: Any = None) -> Any:
            return np.log(x) * 1.5 if out is None else np.multiply(np.log(x), 1.5, out)

    log = exact._c_library(Wrong(), math.log, 0.1, 1.0)  # type: ignore[arg-type]
    assert log(np.array([0.25, 0.5])).tolist() == [math.log(0.25), math.log(0.5)]
    assert exact._exp(800.0) == math.inf
