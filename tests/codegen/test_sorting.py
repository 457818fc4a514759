"""Compiled order and masks against NumPy's: ties, NaN, signed zeros, every axis and length."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")

RNG = np.random.default_rng(1)
DTYPES = (np.float32, np.float64, np.int64)
SHAPES: tuple[tuple[int, ...], ...] = (
    (0,), (1,), (7,), (40,), (41,), (300,), (5000,), (3, 16), (16, 3), (4, 50, 3), (2, 0), (0, 3),
)  # fmt: skip


def samples(shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers among which there are ties, and all that is special."""
    x = RNG.integers(-20, 20, shape).astype(dtype)
    if dtype is np.int64:
        x[RNG.random(shape) < 0.1] = np.iinfo(np.int64).min
        x[RNG.random(shape) < 0.1] = np.iinfo(np.int64).max
        return x
    x += RNG.choice([0.0, 0.25, 1e-40], shape).astype(dtype)
    for special in (np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0):
        x[RNG.random(shape) < 0.05] = special
    return x


def places_of(x: Any, axis: int, down: bool) -> Any:
    """What NumPy says, in the stable order."""
    if not down:
        return np.argsort(x, axis, kind="stable")
    n = x.shape[axis]
    return np.flip(n - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def equal(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranked(dtype: Any) -> None:
    for shape in SHAPES:
        x = samples(shape, dtype)
        for axis, down in itertools.product(range(-x.ndim, x.ndim), (False, True)):
            want = places_of(x, axis, down)
            assert equal(kernels.ranked(axis, down, -1, False, x), np.ascontiguousarray(want))
            for k in {0, 1, 3, 10, 33, x.shape[axis] // 2, x.shape[axis]}:
                if k > x.shape[axis]:
                    assert kernels.ranked(axis, down, k, True, x) is None
                    continue
                values, places = kernels.ranked(axis, down, k, True, x)
                first = np.ascontiguousarray(np.take(want, np.arange(k), axis))
                assert equal(places, first)
                assert equal(values, np.take_along_axis(x, first, axis))


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme(dtype: Any) -> None:
    for shape in SHAPES:
        x = samples(shape, dtype)
        for axis, most, keep in itertools.product(
            range(-x.ndim, x.ndim), (True, False), (True, False)
        ):
            made = kernels.extreme(axis, most, keep, x)
            if x.size == 0:
                assert made is None
                continue
            want = (np.argmax if most else np.argmin)(x, axis, keepdims=keep)
            values = np.take_along_axis(
                x, np.asarray(want if keep else np.expand_dims(want, axis)), axis
            )
            assert equal(made[1], np.asarray(want))
            assert equal(made[0], values.reshape(made[1].shape))
    x = samples((6, 8), dtype)[::2, ::-1]
    assert equal(kernels.extreme(1, True, False, x)[1], np.argmax(x, 1))


def test_what_is_not_ranked() -> None:
    x = samples((3, 4), np.float32)
    assert kernels.ranked(2, False, -1, True, x) is kernels.ranked(0, False, 4, True, x) is None
    assert kernels.ranked(0, False, -1, True, x.T) is None
    assert kernels.ranked(0, False, -1, True, x.astype(np.float16)) is None
    assert kernels.ranked(0, False, -1, True, np.float32(1)) is None
    assert kernels.extreme(2, True, False, x) is kernels.extreme(0, True, False, x > 0) is None


def test_masks() -> None:
    for shape in ((), (5,), (3, 4), (2, 3, 4), (0, 3), (100, 7)):
        mask = RNG.random(shape) < 0.4
        mask = np.asarray(mask)
        found = kernels.nonzero_places(mask)
        assert (found is None) == (shape == ())
        if found is not None:
            assert all(equal(a, b) for a, b in zip(found, mask.nonzero(), strict=True))
        for dtype in (np.float32, np.float64, np.int16, np.complex128, np.bool_):
            x = np.asarray(RNG.integers(-9, 9, shape)).astype(dtype)
            y = kernels.masked(x, mask)
            assert equal(y, x[mask])
            want = np.zeros(shape, dtype)
            want[mask] = y
            assert equal(kernels.unmasked(y, mask), want)
    x = np.zeros((3, 4))
    mask = x == 0
    assert kernels.masked(x, mask[0]) is kernels.masked(x.T, mask.T) is None
    assert kernels.masked(x, mask.astype(np.uint8)) is None
    assert kernels.unmasked(np.zeros(5), mask) is kernels.unmasked(x, mask) is None


def test_gradients() -> None:
    x = torch.tensor([[3.0, 1.0, 3.0], [float("nan"), 0.0, -0.0]], requires_grad=True)
    g = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    values, places = x.sort(1, descending=True)
    assert places.tolist() == [[0, 2, 1], [0, 1, 2]]
    (found,) = torch.autograd.grad(values, x, g)
    assert found.tolist() == [[1.0, 4.0, 2.0], [8.0, 16.0, 32.0]]
    values, places = x.topk(2, 1)
    assert places.tolist() == [[0, 2], [0, 1]]
    (found,) = torch.autograd.grad(values, x, g[:, :2])
    assert found.tolist() == [[1.0, 0.0, 2.0], [8.0, 16.0, 0.0]]
    values, places = x.max(1)
    assert places.tolist() == [0, 0]
    (found,) = torch.autograd.grad(values, x, g[:, 0])
    assert found.tolist() == [[1.0, 0.0, 0.0], [8.0, 0.0, 0.0]]
    y = x.masked_select(x > 0)
    (found,) = torch.autograd.grad(y, x, torch.tensor([5.0, 6.0, 7.0]))
    assert found.tolist() == [[5.0, 6.0, 7.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.bool_, np.int32, np.int64])
def test_count_nonzero(dtype: Any) -> None:
    for shape in (*SHAPES, (), (300, 401), (3, 1 << 20)):
        special = (
            [0.0, -0.0, 1.0] if np.dtype(dtype).kind == "i" else [0.0, -0.0, np.nan, 1e-45, np.inf]
        )
        x = RNG.choice(special, shape).astype(dtype)
        for y in (np.asarray(x), np.asarray(x).T):
            count = np.count_nonzero(y)
            for what, want in enumerate((count, count > 0, count == y.size)):
                found = kernels.nonzero(what, y)
                assert (
                    found == want and found.shape == () and found.dtype == (bool if what else int)
                )
    x = np.ones((4, 6), np.float32)
    assert kernels.nonzero(0, x[:, ::2]) is None and kernels.nonzero(0, x.astype("f2")) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_place(dtype: Any) -> None:
    for shape in (*SHAPES, (), (3, 70_000)):
        x = np.asarray(samples(shape, dtype))
        if x.size == 0:
            assert kernels.extreme_place(None, True, False, x) is None
            continue
        for most, fn in ((True, np.argmax), (False, np.argmin)):
            for keep in (False, True):
                found = kernels.extreme_place(None, most, keep, x)
                assert found == fn(x) and found.shape == ((1,) * x.ndim if keep else ())
                if x.ndim:
                    along = kernels.extreme_place(-1, most, keep, x)
                    assert equal(along, fn(x, -1, keepdims=keep))
    assert kernels.extreme_place(None, True, False, samples((4, 6), dtype)[:, ::2]) is None
