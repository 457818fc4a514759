"""Compiled reading and writing by index against NumPy's; and new arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")

DTYPES = (np.bool_, np.int16, np.float32, np.float64, np.complex128, np.int64)
SHAPES: tuple[tuple[int, ...], ...] = (
    (5,), (3, 4), (1, 6), (6, 1), (2, 3, 4), (3, 0), (2, 2, 2, 2),
)  # fmt: skip
RNG = np.random.default_rng(0)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    return (np.arange(int(np.prod(shape))) % 100 - 50).astype(dtype).reshape(shape)


def equal(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


# --- rows -----------------------------------------------------------------------------------------
def indices(n: int, shape: tuple[int, ...], wide: bool, negative: bool) -> Any:
    low = -n if negative else 0
    return RNG.integers(low, max(n, 1), shape).astype(np.int64 if wide else np.int32)


def test_picked_and_unpicked() -> None:
    for shape, dtype, wide in itertools.product(SHAPES, DTYPES, (True, False)):
        x = numbers(shape, dtype)
        for axis in range(-len(shape), len(shape)):
            for places in ((), (7,), (2, 3), (0,)):
                if shape[axis] == 0 and places != (0,):
                    continue
                i = indices(shape[axis], places, wide, True)
                y = kernels.picked(axis, x, i)
                assert equal(y, np.ascontiguousarray(np.take(x, i, axis)).reshape(y.shape))
                if dtype in (np.float32, np.float64, np.int64):
                    want = np.zeros(shape, dtype)
                    index = [slice(None)] * len(shape)
                    index[axis] = i
                    np.add.at(want, tuple(index), y)
                    assert equal(kernels.unpicked(axis, shape, y, i), want)


def test_several_arrays() -> None:
    x = numbers((3, 4, 5), np.float32)
    i, j, k = (indices(n, (2, 6), True, True) for n in x.shape)
    assert equal(kernels.picked(0, x, i, j), x[i, j])
    assert equal(kernels.picked(0, x, i, j, k), x[i, j, k])
    assert equal(kernels.picked(1, x, j, k), x[:, j, k])
    want = np.zeros_like(x)
    np.add.at(want, (i, j), x[i, j])
    assert equal(kernels.unpicked(0, x.shape, x[i, j], i, j), want)
    assert kernels.picked(0, x, i, j[:1]) is None  # would be expanded
    assert kernels.picked(2, x, i, j) is None


def test_what_is_out_of_range_is_left_to_others() -> None:
    x = numbers((3, 4), np.float32)
    for bad in (3, -4, 1 << 40):
        i = np.array([0, bad])
        assert kernels.picked(0, x, i) is kernels.unpicked(0, (3, 4), x[:2], i) is None
        assert kernels.put_rows(0, False, x, x[:2].copy(), i) is None
        assert kernels.selected(0, x, i) is kernels.looked_up(x, i) is None
        assert kernels.gathered(0, x, i.reshape(2, 1)) is None
        assert kernels.within(-3, 3, i) is None
    assert kernels.within(-3, 3, np.array([-3, 2])) is True
    assert kernels.within(0, 1 << 70, np.array([1])) is None
    negative = np.array([-1])
    assert kernels.selected(0, x, negative) is kernels.looked_up(x, negative) is None
    assert equal(kernels.selected(-1, x, np.array([2, 2])), np.ascontiguousarray(x[:, [2, 2]]))
    assert kernels.selected(0, x, np.array(1)) is None
    assert equal(kernels.looked_up(x, np.array([[2], [0]])), x[[[2], [0]]])
    for i in ([0], np.array([0.0]), np.array([True]), np.arange(4)[::2], np.array([0], ">i8")):
        assert kernels.picked(0, x, i) is None
    assert kernels.picked(0, x.T, np.array([0])) is None


def test_written_rows() -> None:
    for dtype, add in itertools.product(DTYPES, (True, False)):
        x = numbers((6, 3), dtype)
        i = np.array([4, 0, -1]) if not add else np.array([4, 0, -1, 4])
        value = numbers((len(i), 3), dtype)
        want = x.copy()
        if add:
            np.add.at(want, i, value)
        else:
            want[i] = value
        done = kernels.put_rows(0, add, x, value, i)
        assert done is (True if not add or dtype in (np.float32, np.float64, np.int64) else None)
        if done:
            assert equal(x, want)
    x = numbers((6, 3), np.int64)
    assert kernels.put_rows(0, False, x, x[:2], np.array([1, 2])) is None  # shares memory
    assert kernels.put_rows(0, False, x, numbers((1, 3), np.int64), x[0, :1]) is None
    x.flags.writeable = False
    assert kernels.put_rows(0, False, x, numbers((1, 3), np.int64), np.array([1])) is None


def test_many_to_one_place_are_added_up_with_care() -> None:
    n = 100_000
    g = np.full((n, 1), 0.1, np.float32)
    y = kernels.unpicked(0, (1, 1), g, np.zeros(n, np.int64))
    assert abs(float(y[0, 0]) - float(g.astype(np.float64).sum())) < 1e-3
    x = np.zeros((1, 1), np.float32)
    assert kernels.put_rows(0, True, x, g, np.zeros(n, np.int64)) is True and equal(x, y)
    ungathered = v.ungather(g, (1, 1), 0, np.zeros((n, 1), np.int64))
    assert abs(float(ungathered[0, 0]) - float(y[0, 0])) < 1e-3


# --- along an axis --------------------------------------------------------------------------------
def layouts(shape: tuple[int, ...], dtype: Any) -> list[Any]:
    x = numbers(shape, dtype)
    wide = numbers(tuple(2 * n for n in shape), dtype)
    return [x, x.copy("F"), wide[tuple(slice(None, None, 2) for _ in shape)], x[::-1]]


def test_along_an_axis() -> None:
    for shape, dtype, wide in itertools.product(SHAPES, DTYPES, (True, False)):
        for x, axis in itertools.product(layouts(shape, dtype), range(-len(shape), len(shape))):
            sizes = [max(n - 1, 1) if n else 0 for n in shape]
            sizes[axis] = 4 if shape[axis] else 0
            i = indices(shape[axis], tuple(sizes), wide, False)
            cut = tuple(
                slice(None) if d == axis % len(shape) else slice(0, n) for d, n in enumerate(sizes)
            )
            y = kernels.gathered(axis, x, i)
            assert equal(
                y, np.ascontiguousarray(np.take_along_axis(x[cut], i.astype(np.int64), axis))
            )
            for source in layouts(tuple(sizes), dtype):
                target, want = x.copy(), x.copy()
                assert kernels.put_along(axis, False, target, i, source) is True
                for at in np.ndindex(*sizes):
                    there = list(at)
                    there[axis] = i[at]
                    want[tuple(there)] = source[at]
                assert equal(target, want)
                if dtype in (np.float32, np.float64, np.int64):
                    target, want = x.copy(), x.copy()
                    done = kernels.put_along(axis, True, target, i, source)
                    for at in np.ndindex(*sizes):
                        there = list(at)
                        there[axis] = i[at]
                        want[tuple(there)] += source[at]
                    assert done is None or equal(target, want)


def test_what_does_not_go_along() -> None:
    x, i = numbers((3, 4), np.float32), np.zeros((3, 2), np.int64)
    source = numbers((3, 2), np.float32)
    assert kernels.gathered(2, x, i) is kernels.gathered(1, x, i[0]) is None
    assert kernels.gathered(1, x, np.zeros((4, 2), np.int64)) is None
    assert kernels.gathered(0, np.float32(1), i) is None
    assert kernels.put_along(1, False, x, i, source.astype(np.float64)) is None
    assert kernels.put_along(1, False, x, i, source[:2]) is None
    assert kernels.put_along(1, False, x, i, x[:, :2]) is None  # shares memory


# --- errors are as before -------------------------------------------------------------------------
def test_errors_of_the_functions() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for _ in range(2):  # a call that failed is not kept, and one that was kept can fail
        with pytest.raises(
            RuntimeError, match="^index 3 is out of bounds for dimension 1 with size 3"
        ):
            x.gather(1, torch.tensor([[3]]))
        with pytest.raises(
            RuntimeError, match="^index -1 is out of bounds for dimension 0 with size 2"
        ):
            x.gather(0, torch.tensor([[-1]]))
        assert x.gather(1, torch.tensor([[2]])).tolist() == [[2.0]]
        with pytest.raises(IndexError, match="^index out of range in self"):
            x.index_select(1, torch.tensor([-1]))
        assert x.index_select(1, torch.tensor([1])).tolist() == [[1.0], [4.0]]
        with pytest.raises(IndexError, match="^index out of range in self"):
            torch.nn.functional.embedding(torch.tensor([2]), x)
        assert torch.nn.functional.embedding(torch.tensor([1]), x).tolist() == [[3.0, 4.0, 5.0]]
        with pytest.raises(
            IndexError, match="^index 2 is out of bounds for dimension 0 with size 2"
        ):
            x[torch.tensor([0, 2])]
        assert x[torch.tensor([-1])].tolist() == [[3.0, 4.0, 5.0]]


def test_gradients_of_repeated_places() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    i = torch.tensor([1, 1, 0])
    for y in (x[i], x.index_select(0, i), torch.nn.functional.embedding(i, x)):
        (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
        assert g.tolist() == [[1.0] * 3, [2.0] * 3]
    y = x.gather(1, torch.tensor([[2, 2, 2], [0, 1, 0]]))
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert g.tolist() == [[0.0, 0.0, 3.0], [2.0, 1.0, 0.0]]


# --- new arrays -----------------------------------------------------------------------------------
def test_counted() -> None:
    for given in ((5,), (0,), (2, 7), (7, 2, -1), (0, 10, 3), (2.5,), (0, 1, 0.1), (1, 2.5, 0.5),
                  (5.0, 1.0, -0.75), (-3, 3)):  # fmt: skip
        for kind in (None, np.float32, np.float64, np.int64):
            number = -1 if kind is None else np.dtype(kind).num
            y = kernels.counted(given, number, np.dtype(np.float32).num)
            floats = any(isinstance(x, float) for x in given)
            if kind is np.int64 and floats:
                assert y is None
                continue
            start, end, step = (0, *given, 1) if len(given) == 1 else (*given, 1)[:3]
            want = kind or (np.float32 if floats else np.int64)
            count = max(int(np.ceil((end - start) / step)), 0)
            assert equal(y, (np.arange(count, dtype=np.float64) * step + start).astype(want))
    for bad in ((), (1, 2, 0), (2, 1), (1, 2, -1), (True,), ("1",), (float("nan"),), (1 << 60,),
                (1, 2, 3, 4), (float("inf"),), (1 << 2000,)):  # fmt: skip
        assert kernels.counted(bad, -1, 11) is None


def test_filled() -> None:
    for kind in (np.float32, np.float64, np.int64, np.bool_, np.complex64, np.int8):
        number = np.dtype(kind).num
        assert equal(kernels.filled((2, 3), 0, number), np.zeros((2, 3), kind))
        assert equal(kernels.filled(((2, 3),), 0, number), np.zeros((2, 3), kind))
        one = kernels.filled((4,), 1, number)
        assert one is None or equal(one, np.ones(4, kind))
    assert kernels.filled((2,), 1.5, np.dtype(np.float32).num).tolist() == [1.5, 1.5]
    for sizes in ((), (-1,), ("2",), (2.0,), (True,), ([2],), (1 << 62,)):
        assert kernels.filled(sizes, 0, 11) is None
    x = numbers((2, 3), np.float32)
    assert equal(kernels.filled_as(1, x), np.ones_like(x)) and kernels.filled_as(1, x.T) is None
