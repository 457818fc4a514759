"""Normal numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight import random as raw
from rushlight.random import exact, normals


def test_normal_takes_a_mean_and_a_deviation_for_each() -> None:
    mean, std = np.arange(40.0), np.linspace(0.0, 2.0, 40)
    unit = np.empty(40)
    raw.normal_(unit, gen=raw.Generator())
    assert (raw.normal(mean, std, raw.Generator()) == unit * std + mean).all()
    assert (raw.normal(0.5, std, raw.Generator()) == unit * std + 0.5).all()
    assert (raw.normal(mean, 2.0, raw.Generator()) == unit * 2.0 + mean).all()
    with pytest.raises(RuntimeError, match=r"normal expects all elements of std >= 0\.0"):
        raw.normal(mean, -std)


def fused(a: Any, b: Any, c: Any) -> Any:
    """a*b + c of float32 arrays, rounded once: in float64 to odd, then to float32."""
    a, b, c = (np.asarray(v, np.float32).astype(np.float64) for v in (a, b, c))
    product, c = np.broadcast_arrays(a * b, c)
    return exact._to_odd(product, c).astype(np.float32)


def horner(x: Any, *coefficients: float) -> Any:
    y = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        y = fused(y, x, c)
    return y


def test_float32_normals_use_fused_arithmetic_throughout() -> None:
    """A sample of the 2^24 inputs, by the fused steps that `normals` replaces."""
    f = np.float32
    k = np.concatenate([np.arange(0, 1 << 24, 97), np.arange((1 << 24) - 300, 1 << 24)])
    k = np.concatenate(
        [k, *(np.arange(-50, 50) + quarter for quarter in range(1 << 21, 1 << 24, 1 << 21))]
    )
    u = f(1) - k.astype(f) * f(2.0**-24)
    bits = u.view(np.int32)
    e = (bits - 0x3F3504F3) >> 23
    x = (bits - (e << 23)).view(f) - f(1)
    y = horner(x, *(float(c) for c in (normals.LOG_FIRST, *normals.LOG_REST)))
    z, ef = x * x, e.astype(f)
    y = fused(y * x, z, ef * normals.LN2_LOW) - z * f(0.5)
    radius = np.sqrt(f(-2) * ((x + y) + ef * normals.LN2_HIGH))
    assert (normals._radius(k.astype(np.int32)) == radius).all()

    angle = (k.astype(f) * f(2.0**-24)) * f(2 * np.pi)
    j = ((angle * f(1.27323954473516)).astype(np.int32) + 1) & ~1
    x = angle
    for d in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = fused(j, f(d), x)
    z = x * x
    c = fused(horner(z, *(float(v) for v in normals.COS_POLY)) * z, z, -z * f(0.5)) + f(1)
    s = fused(horner(z, *(float(v) for v in normals.SIN_POLY)) * z, x, x)
    c, s = np.where(j & 2, s, c), np.where(j & 2, c, s)
    c, s = np.where((j + 2) & 4, -c, c), np.where(j & 4, -s, s)
    assert (normals._cos_sin(k.astype(np.int32)) == np.stack((c, s))).all()
