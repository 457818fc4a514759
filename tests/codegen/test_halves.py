"""Kernels of bfloat16 and float16: what those of float32 give, rounded once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels
from rushlight.ops import fill_rest
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")

BFLOAT, HALF, FLOAT = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
HALVES = [pytest.param(BFLOAT, id="bfloat16"), pytest.param(HALF, id="float16")]
LENGTHS = [1, 7, 16, 2047, 2048, 2049, 5000]


def draw(shape: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(FLOAT)


def layouts(x: Any) -> Iterator[Any]:
    """Arrays of rank 3 of the same values in many layouts, and some that repeat numbers."""
    yield x
    yield np.asfortranarray(x)
    yield np.ascontiguousarray(x.transpose(1, 2, 0)).transpose(2, 0, 1)
    yield np.repeat(x, 2, -1)[..., ::2]
    yield np.repeat(x, 2, 1)[:, 1::2]
    yield np.broadcast_to(x[:, :1], x.shape)
    yield np.broadcast_to(x[0, 0, 0], x.shape)
    yield np.broadcast_to(np.ascontiguousarray(x[0].T).T, x.shape)


def assert_rounded(found: Any, wide: Any, kind: Any) -> None:
    """`found` is `wide`, what is float32 of it rounded; it lies in the same way."""
    if isinstance(wide, tuple):
        assert len(found) == len(wide)
        for a, b in zip(found, wide, strict=True):
            assert_rounded(a, b, kind)
        return
    with np.errstate(all="ignore"):
        wanted = wide.astype(kind) if wide.dtype == FLOAT else wide
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    unit, its = found.itemsize, wide.itemsize
    assert [s // unit for s in found.strides] == [s // its for s in wide.strides]
    np.testing.assert_array_equal(found.astype(FLOAT), wanted.astype(FLOAT))


def in_kind(x: Any, kind: Any) -> Any:
    is_float = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    return x.astype(kind) if is_float else x


def widened(x: Any) -> Any:
    return x.astype(FLOAT) if isinstance(x, np.ndarray) and x.dtype.itemsize == 2 else x


@pytest.mark.parametrize("kind", HALVES)
def test_every_op_with_a_kernel(kind: Any) -> None:
    fill_rest()
    seen = 0
    for name in sorted(table):
        for op, *xs in samples_of(table[name], Draw(1)):
            kernel = kernels.kernel_of(op, "forward")
            if type(kernel) is not kernels.Kernel:
                continue
            given = [in_kind(x, kind) for x in xs]
            some = [x for x in given if getattr(x, "dtype", None) == kind]
            wide = kernel(*map(widened, given))
            if wide is not None and some and all(x.size for x in some):
                assert_rounded(kernel(*given), wide, kind)
                seen += 1
    assert seen > 200


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("n", LENGTHS)
def test_blocks(n: int, kind: Any) -> None:
    x, y = draw(n).astype(kind), draw(n, 1).astype(kind)
    w, z = widened(x), widened(y)
    for name, args, floats in (
        ("Sigmoid.vjp", (x, y), (w, z)),
        ("Maximum.forward", (x, y), (w, z)),
        ("Maximum.forward", (x, 0.25), (w, 0.25)),
        ("Maximum.forward", (x, x), (w, w)),
        ("Maximum.forward", (x, y[:1]), (w, z[:1])),
        ("Gt.forward", (x, y), (w, z)),
        ("Where.dtype=None.forward", (x, y, w > 0), (w, z, w > 0)),
        ("Softmax.forward", (x,), (w,)),
        ("Sum.dtype=None.forward", (x,), (w,)),
    ):
        kernel = kernels.table[name]
        assert_rounded(kernel(*args), kernel(*floats), kind)


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("axes", [(-1,), (-2,), (0,), (0, 2), (1, 2), None])
def test_rows(axes: Any, kind: Any) -> None:
    whole = draw((3, 70, 50)).astype(kind)
    for x, wide in zip(layouts(whole), layouts(widened(whole)), strict=True):
        for name in ("Softmax.forward", "Sum.dtype=None.forward", "Amax.forward"):
            for keeps in (False, True):
                kernel = kernels.table[name].over(axes, keeps)
                assert_rounded(kernel(x), kernel(wide), kind)


@pytest.mark.parametrize("kind", HALVES)
def test_layouts_of_elements(kind: Any) -> None:
    kernel = kernels.table["Maximum.forward"]
    x, y = (draw((3, 4, 5), i).astype(kind) for i in range(2))
    for a, wide_a in zip(layouts(x), layouts(widened(x)), strict=True):
        for b, wide_b in zip(layouts(y), layouts(widened(y)), strict=True):
            assert_rounded(kernel(a, b), kernel(wide_a, wide_b), kind)


def test_what_they_are_not_made_for() -> None:
    x = draw((4, 5))
    kernel = kernels.table["Maximum.forward"]
    assert kernel(x.astype(HALF), x) is None
    assert kernel(x.astype(HALF), x.astype(BFLOAT)) is None
    assert kernel(x.astype(np.int16), x.astype(np.int16)) is None
    assert kernel(x.astype(">f2"), x.astype(">f2")) is None
    assert kernel(x[:0].astype(HALF), x[:0].astype(HALF)) is None
    assert kernel(x.astype(HALF), x[:, :3].astype(HALF)) is None


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_gradients_are_rounded_once(kind: Any) -> None:
    x = torch.randn(6, 40).to(kind)
    w = (torch.rand(40) + 0.5).to(kind)
    k = torch.arange(6)
    ways = [
        lambda x: torch.softmax(x, -1),
        lambda x: torch.log_softmax(x, 0),
        lambda x: torch.nn.functional.layer_norm(x, (40,), w.to(x.dtype), w.to(x.dtype)),
        lambda x: torch.nn.functional.layer_norm(x, (40,), w.float(), w.float()),
        lambda x: torch.nn.functional.batch_norm(x, None, None, w.float(), training=True),
        lambda x: torch.nn.functional.group_norm(x, 4, w.to(x.dtype)),
        lambda x: x.cumsum(-1),
        lambda x: x.max(-1)[0],
        lambda x: torch.nn.functional.nll_loss(x, k, reduction="none"),
        lambda x: (x + x) + x,
    ]
    for way in ways:
        a = x.clone().requires_grad_()
        b = x.float().requires_grad_()
        y, z = way(a), way(b)
        assert y.dtype is kind
        y.backward(torch.ones_like(y))
        z.backward(torch.ones_like(z))
        assert a.grad is not None and b.grad is not None and a.grad.dtype is kind
        step = torch.finfo(kind).eps
        torch.testing.assert_close(y.float(), z.float(), rtol=step, atol=step)
        torch.testing.assert_close(a.grad.float(), b.grad.float(), rtol=2 * step, atol=4 * step)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_losses_of_class_numbers(kind: Any) -> None:
    x = torch.randn(5, 4).log_softmax(-1).to(kind)
    t = torch.tensor([0, 3, 1, 1, 2])
    for how in ("none", "mean", "sum"):
        for ignored in (-100, 1):
            a, b = x.clone().requires_grad_(), x.float().requires_grad_()
            y = torch.nn.functional.nll_loss(a, t, ignore_index=ignored, reduction=how)
            z = torch.nn.functional.nll_loss(b, t, ignore_index=ignored, reduction=how)
            assert torch.equal(y, z.to(kind))
            y.sum().backward()
            z.sum().backward()
            assert a.grad is not None and b.grad is not None
            assert torch.equal(a.grad, b.grad.to(kind))
