"""Compiled copies against NumPy's: every layout, every size of element, empty and 0-d arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")

DTYPES = (np.bool_, np.int16, np.float32, np.float64, np.complex128, ml_dtypes.bfloat16)
SHAPES: tuple[tuple[int, ...], ...] = (
    (), (1,), (5,), (0,), (3, 4), (1, 6), (6, 1), (0, 3), (3, 0), (2, 3, 4), (2, 1, 5), (17, 19),
    (2, 0, 3), (4, 33, 5), (2, 2, 2, 2, 2),
)  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    n = int(np.prod(shape))
    return (np.arange(n) % 200 - 100).astype(np.float64).astype(dtype).reshape(shape)


def layouts(shape: tuple[int, ...], dtype: Any) -> Iterator[Any]:
    """An array of a shape in rows, turned, with gaps, backwards, and expanded."""
    x = numbers(shape, dtype)
    yield x
    yield x.copy("F")
    yield numbers(tuple(2 * n for n in shape), dtype)[(*[slice(None, None, 2)] * len(shape), ...)]
    yield x[(*[slice(None, None, -1)] * len(shape), ...)]
    if shape:
        yield np.broadcast_to(numbers(shape[1:], dtype), shape)
    if len(shape) == 3:
        yield numbers((shape[1], shape[2], shape[0]), dtype).transpose(2, 0, 1)


def cases() -> Iterator[Any]:
    for shape, dtype in itertools.product(SHAPES, DTYPES):
        yield from layouts(shape, dtype)


def equal(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def test_rows_and_copies() -> None:
    for x in cases():
        y = kernels.in_new_rows(x)
        assert equal(y, x) and y.flags.c_contiguous and y.flags.owndata
        z = kernels.copied(x)
        dense = x.flags.c_contiguous or (x.flags.f_contiguous and 0 not in x.strides)
        assert (z is not None) == dense
        if z is not None:
            assert equal(z, x) and z.strides == x.copy("K").strides


def test_large_turns() -> None:
    for shape in ((300, 200), (1, 1000), (129, 3, 257)):
        for dtype in DTYPES:
            x = numbers(shape, dtype)
            assert equal(kernels.in_new_rows(x.T), np.ascontiguousarray(x.T))
            assert equal(kernels.in_new_rows(np.swapaxes(x, 0, -1)), np.swapaxes(x, 0, -1))


def test_joined_and_stacked() -> None:
    for shape, dtype in itertools.product(SHAPES, (np.float32, np.bool_, np.complex128)):
        xs = list(layouts(shape, dtype))
        for axis in range(-len(shape), len(shape)):
            wide = [x for x in xs for _ in range(1 + (x.strides[axis] > 0))]
            assert equal(kernels.joined(axis, *wide), np.concatenate(wide, axis))
            cut = tuple(
                slice(None) if d != axis % len(shape) else slice(1) for d in range(len(shape))
            )
            some = [xs[0], xs[1][cut]]
            assert equal(kernels.joined(axis, *some), np.concatenate(some, axis))
        for axis in range(-len(shape) - 1, 0):
            assert equal(kernels.stacked(axis, *xs), np.stack(xs, axis))


def test_what_cannot_be_joined() -> None:
    a, b = np.zeros((2, 3)), np.zeros((2, 4))
    narrow = a.astype(np.float32)
    for given in ((0, a, b), (2, a, a), (0, a, narrow), (0, a, [1]), (0,), (-3, a), ("0", a)):
        assert kernels.joined(*given) is None
    for given in ((0, a, b), (3, a, a), (0, a, narrow), (0, a, [1]), (0,), (-4, a), ("0", a)):
        assert kernels.stacked(*given) is None
    assert kernels.stacked(-1, a, b) is None
    assert kernels.joined(0, a, a.astype(">f8")) is None
    assert kernels.joined(0, np.array([None]), np.array([None])) is None


def test_padded() -> None:
    for shape in SHAPES:
        for dtype, value in ((np.float32, 2.5), (np.float64, -0.0), (np.int64, 7), (np.bool_, 0),
                             (np.float32, float("nan")), (np.int16, 0)):  # fmt: skip
            for x in layouts(shape, dtype):
                for widths in ((), (1, 2), (0, 0), (2, 1, 0, 3), (1, 0, 0, 0, 2, 2)):
                    if len(widths) > 2 * len(shape):
                        assert kernels.padded(widths, value, x) is None
                        continue
                    pairs = [(0, 0)] * len(shape)
                    for k in range(len(widths) // 2):
                        pairs[-1 - k] = (widths[2 * k], widths[2 * k + 1])
                    y = kernels.padded(widths, value, x)
                    assert equal(y, np.pad(x, pairs, constant_values=value) if pairs else x)
                    back = kernels.padded(tuple(-w for w in widths), 0, y)
                    assert equal(back, x)  # cut off again
    x = numbers((3, 4), np.float32)
    assert equal(
        kernels.padded((-1, 2, 1, -2), 9.0, x),
        np.pad(x[:1, 1:], ((1, 0), (0, 2)), constant_values=9),
    )
    assert kernels.padded((-3, -1), 0, x).shape == (3, 0)
    assert kernels.padded((-3, 3), 1.0, x).tolist() == [[x[r, 3], 1, 1, 1] for r in range(3)]
    assert kernels.padded((-5, 0), 0, x) is None
    assert (
        kernels.padded((1, 1), 1j, x) is None and kernels.padded((1, 1), 1.5, x.astype(int)) is None
    )
    assert kernels.padded((1, 1), True, x) is None and kernels.padded((1,), 0, x) is None


def test_margins() -> None:
    modes = ("reflect", "edge", "wrap")
    for shape, dtype in itertools.product(
        ((5,), (3, 4), (2, 3, 4), (2, 2, 3, 3)), (np.float32, np.float64)
    ):
        for x in layouts(shape, dtype):
            for mode, widths in itertools.product(
                range(3), ((1, 2), (0, 0), (2, 1, 1, 0), (0, 1, 2, 1), (-1, 1), (1, -2, 0, 1))
            ):
                y = kernels.margined(mode, widths, x)
                if len(widths) > 2 * len(shape) or (mode == 2 and min(widths) < 0):
                    assert y is None
                    continue
                pairs, cut = [(0, 0)] * len(shape), [slice(None)] * len(shape)
                for k in range(len(widths) // 2):
                    before, after = widths[2 * k], widths[2 * k + 1]
                    pairs[-1 - k] = (max(before, 0), max(after, 0))
                    cut[-1 - k] = slice(max(-before, 0), None if after >= 0 else after)
                want = np.pad(x, pairs, modes[mode])[tuple(cut)]  # type: ignore[call-overload]
                assert equal(y, np.ascontiguousarray(want))
                g = np.arange(y.size, dtype=dtype).reshape(y.shape)
                back = kernels.unmargined(mode, widths, shape, g)
                assert float((back * x).sum()) == float((g * y).sum())  # of whole numbers
    x = numbers((3,), np.float32)
    assert kernels.margined(0, (3, 0), x) is kernels.margined(2, (4, 0), x) is None
    assert kernels.margined(0, (-3, 0), x) is kernels.margined(3, (1, 0), x) is None
    assert kernels.unmargined(0, (1, 0), (3,), x) is None  # not the shape of the result
    assert kernels.margined(1, (1, 0), np.zeros((0,), np.float32)) is None


def test_flipped_and_rolled() -> None:
    for shape, dtype in itertools.product(SHAPES, DTYPES):
        x = numbers(shape, dtype)
        for count in range(len(shape) + 1):
            for axes in itertools.combinations(range(-len(shape), 0), count):
                assert equal(kernels.flipped(axes, x), np.flip(x, axes))
                shifts = tuple(range(-2, -2 + count))
                if count:
                    assert equal(kernels.rolled(shifts, axes, x), np.roll(x, shifts, axes))
        for shift in (0, 1, -1, 7, 1000, -1001):
            assert equal(kernels.rolled((shift,), (), x), np.roll(x, shift))
    x = numbers((3, 4), np.float32)
    assert equal(kernels.rolled((1, 1, 5), (0, 0, 1), x), np.roll(x, (1, 1, 5), (0, 0, 1)))
    assert (
        kernels.flipped((0, 0), x) is kernels.flipped((2,), x) is kernels.flipped((0,), x.T) is None
    )
    assert kernels.rolled((1, 2), (0,), x) is kernels.rolled((1,), (5,), x) is None
    assert kernels.rolled((1 << 70,), (0,), x) is None


def test_tiled() -> None:
    for x in cases():
        if x.ndim > 3:
            continue
        for repeats in ((2,), (3, 1), (0, 2), (2, 1, 3), (1, 1, 1, 2)):
            if len(repeats) < x.ndim:
                assert kernels.tiled(repeats, x) is None
            else:
                assert equal(kernels.tiled(repeats, x), np.tile(x, repeats))
    assert kernels.tiled((-1,), np.zeros(3)) is None


def test_triangles() -> None:
    for shape, dtype in itertools.product(SHAPES, DTYPES):
        x = numbers(shape, dtype)
        for k in (-100, -2, -1, 0, 1, 3, 100):
            for lower in (True, False):
                y = kernels.triangle(k, lower, x)
                if len(shape) < 2:
                    assert y is None
                else:
                    assert equal(y, np.tril(x, k) if lower else np.triu(x, k))
    assert kernels.triangle(0, True, numbers((3, 4), np.float32).T) is None


CASTABLE = (np.bool_, np.uint8, np.int32, np.int64, np.float32, np.float64)
SPECIAL = np.array(
    [0.0, -0.0, 1.5, -1.5, 1e-45, 1e-310, 3e38, 1e300, -1e300, np.inf, -np.inf, np.nan, 2**53 + 1]
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("target", CASTABLE)
@pytest.mark.parametrize("source", CASTABLE)
def test_casts(source: Any, target: Any) -> None:
    with np.errstate(all="ignore"):
        extreme = SPECIAL.astype(source)
        if np.dtype(source).kind in "iu":
            info = np.iinfo(source)
            extreme = np.array([info.min, info.max, 0, 1, info.max // 3], source)
        for x in (extreme, np.tile(extreme, 9), *layouts((5, 7), source), *layouts((), source)):
            y = kernels.recast(np.dtype(target).num, x)
            if y is not None:
                assert equal(y, x.astype(target)) and y.strides == x.astype(target).strides
    to_small = np.dtype(source).kind == "f" and target is np.uint8
    assert (kernels.recast(np.dtype(target).num, np.zeros(3, source)) is None) == (
        source is target or to_small
    )


def quiet(x: Any) -> Any:
    """The bits of floats, of NaN the sign alone: ARM's own casts change what else is in them."""
    kind, payload = (np.uint16, 0x3FF) if x.itemsize == 2 else (np.uint32, 0x7FFFFF)
    bits = x.view(kind)
    return np.where(np.isnan(x), bits | kind(payload), bits)


def test_halves() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = kernels.recast(np.dtype(np.float32).num, halves)
    with np.errstate(all="ignore"):
        assert equal(quiet(wide), quiet(halves.astype(np.float32)))
        # every half, what lies between two of them, and next to that
        exact = wide.view(np.uint32)[:, None] + np.array([0, 1, 4095, 4096, 4097, 8191], np.uint32)
        sweep = np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32)
        for bits in (exact, sweep):
            x = np.ascontiguousarray(bits).view(np.float32)
            y = kernels.recast(np.dtype(np.float16).num, x)
            assert equal(quiet(y), quiet(x.astype(np.float16)))


def test_words_go_on_over_numpy() -> None:
    """What no kernel is made for is done as before."""
    x = np.arange(6, dtype=">f8").reshape(2, 3)
    assert v.pad(x, ((1, 0), (0, 1)), 0).tolist() == [[0, 0, 0, 0], [0, 1, 2, 0], [3, 4, 5, 0]]
    assert v.concat([x, x.astype(np.float64)], 0).shape == (4, 3)
    assert v.flip(x.T, (0,)).tolist() == x.T[::-1].tolist()
    assert v.cast(np.array([1.5, 2.5]), np.float16).tolist() == [1.5, 2.5]


def test_embedding_a_slice() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 5)))
        axis, step = int(rng.integers(len(shape))), int(rng.integers(1, 4))
        start = int(rng.integers(shape[axis]))
        wanted = np.zeros(shape, rng.choice(["f4", "f8", "i8", "?", "c16"]))
        key = (slice(None),) * axis + (slice(start, None, step),)
        g = (np.ones_like(wanted[key]) * rng.integers(0, 9)).astype(wanted.dtype)
        if rng.random() < 0.5:
            g = np.ascontiguousarray(g.T).T
        wanted[key] = g
        found = kernels.embedded(shape, axis, start, step, True, g)
        assert np.array_equal(found, wanted) and found.dtype == wanted.dtype
        one = np.zeros(shape, g.dtype)
        one[(slice(None),) * axis + (start,)] = g.take(0, axis)
        single = np.asarray(g.take(0, axis))
        found = kernels.embedded(shape, axis - len(shape), start, 1, False, single)
        assert np.array_equal(found, one)


def test_what_is_no_slice_is_not_embedded() -> None:
    g = np.ones((2, 3))
    for shape, *where in (
        ((2, 3), 1, 1, 1), ((2, 3), 0, -1, 1), ((3, 3), 1, 0, 1), ((2, 9), 1, 0, 0),
        ((2,), 0, 0, 1), ((2, 9), 1, 0, 2**62),
    ):  # fmt: skip
        assert kernels.embedded(shape, *where, True, g) is None
    assert kernels.embedded((2, 3), 1, 0, 1, True, [1.0]) is None
