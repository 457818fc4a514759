"""Normalisations by kernels: results and gradients are those of the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import fused, kernels
from rushlight.ops.nn.normalization import BatchNorm, LayerNorm, Normalise

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")


def draw(shape: Any, dtype: str, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


CASES: list[Any] = [
    (LayerNorm(1, 2, 1e-5), (5, 7), (7,)),
    (LayerNorm(2, 3, 1e-3), (4, 3, 5), (3, 5)),
    (LayerNorm(1, 1, 1e-3), (6,), (6,)),
    (BatchNorm(2, 1e-5), (9, 4), (4,)),
    (BatchNorm(3, 1e-3), (3, 4, 5), (4,)),
    (BatchNorm(4, 1e-5), (2, 3, 4, 5), (3,)),
    (BatchNorm(4, 1e-5), (2, 3, 1, 1), (3,)),
    (BatchNorm(2, 1e-5), (600, 300), (300,)),
]
WEIGHTS = [(False, False), (True, False), (True, True)]
WANTS = [(True, True, True), (False, True, True), (True, False, False), (True, True, False)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("op", "shape", "inner"), CASES)
@pytest.mark.parametrize(("weighs", "shifts"), WEIGHTS)
def test_they_are_those_of_the_rules(
    op: Any, shape: Any, inner: Any, weighs: bool, shifts: bool, dtype: str
) -> None:
    x = draw(shape, dtype, 0) * 3 + 5
    w, b = (draw(inner, dtype, i) if there else None for i, there in ((1, weighs), (2, shifts)))
    layer = isinstance(op, LayerNorm)
    quick = (
        fused.layer_norm(x, w, b, op.width, op.eps)
        if layer
        else fused.batch_norm(x, w, b, op.axes, op.eps)
    )
    wanted = Normalise.forward(op, x, w, b)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for y, z in zip(quick, wanted, strict=True):
        assert y.shape == z.shape and y.dtype == dtype
        np.testing.assert_allclose(y, z, rtol=tolerance, atol=tolerance * 5)
    gs = [draw(z.shape, dtype, 3 + i) for i, z in enumerate(wanted)]
    for wants in WANTS if weighs else [(True, False, False)]:
        given = (*gs, x, w, wanted[1], wanted[2])
        found = (
            fused.layer_norm_back(*given, op.width, wants)
            if layer
            else fused.batch_norm_back(*given, op.axes, wants)
        )
        node = _Node(wants, (shape, inner, inner))
        expected = Normalise.vjp(op, node, tuple(gs), x, w, wanted[1], wanted[2])  # type: ignore[arg-type]  # as much of a node as it reads
        for y, z in zip(found, expected, strict=True):
            assert (y is None) == (z is None)
            if z is not None:
                assert y.shape == z.shape
                np.testing.assert_allclose(y, z, rtol=tolerance * 20, atol=tolerance * 50)


class _Node:
    """What rules ask of a node."""

    def __init__(self, wants: Any, shapes: Any) -> None:
        self.wants = wants
        self._input_shapes = shapes

    def _needs_grad(self, i: int) -> bool:
        return bool(self.wants[i])


def test_a_batch_norm_of_channels_last_stays_so() -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
    y = torch.nn.functional.batch_norm(x, None, None, training=True)
    assert y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y.mean((0, 2, 3)), torch.zeros(3), atol=1e-6, rtol=0)
    (g,) = torch.autograd.grad((y * torch.arange(5.0)).sum(), x)
    torch.testing.assert_close(g.sum((0, 2, 3)), torch.zeros(3), atol=1e-4, rtol=0)


def test_empty_and_half_take_the_way_of_the_rules() -> None:
    assert fused.batch_norm(np.zeros((0, 3), np.float32), None, None, (-2,), 1e-5) is None
    x = torch.randn(4, 3, dtype=torch.float16)
    assert torch.nn.functional.batch_norm(x, None, None, training=True).dtype == torch.float16


@pytest.mark.parametrize("shape", [(2, 6, 5), (3, 4), (2, 4, 3, 2), (1, 2, 300)])
@pytest.mark.parametrize(("weighs", "shifts"), [*WEIGHTS, (False, True)])
def test_groups_are_those_of_the_rule(
    shape: Any, weighs: bool, shifts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = torch.randn(shape[1], requires_grad=True) if weighs else None
    bias = torch.randn(shape[1]) if shifts else None
    x = torch.randn(shape, requires_grad=True)
    wanted = [x, weight] if weight is not None else [x]

    def run() -> list[Any]:
        y = torch.nn.functional.group_norm(x, 2, weight, bias)
        g = torch.arange(float(y.numel())).reshape(shape).sin()
        alone = torch.autograd.grad(y, [x], g, retain_graph=True)
        return [y, *alone, *torch.autograd.grad(y, wanted, g)]

    quick = run()
    monkeypatch.setattr(fused, "table", {})
    for a, b in zip(quick, run(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        assert a.stride() == b.stride()


@pytest.mark.parametrize("shape", [(5, 6), (2, 6, 5), (3, 6, 40), (2, 6, 4, 9)])
@pytest.mark.parametrize(("weighs", "shifts"), [*WEIGHTS, (False, True)])
def test_given_statistics_are_those_of_the_rule(
    shape: Any, weighs: bool, shifts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean, var = torch.randn(6), torch.rand(6) + 0.5
    weight = torch.randn(6, requires_grad=True) if weighs else None
    bias = torch.randn(6, requires_grad=True) if shifts else None
    x = torch.randn(shape, requires_grad=True)
    wanted = [t for t in (x, weight, bias) if t is not None]

    def run() -> list[Any]:
        y = torch.nn.functional.batch_norm(x, mean, var, weight, bias)
        g = torch.arange(float(y.numel())).reshape(shape).sin()
        alone = [torch.autograd.grad(y, [t], g, retain_graph=True)[0] for t in wanted]
        return [y, *alone, *torch.autograd.grad(y, wanted, g)]

    quick = run()
    monkeypatch.setattr(fused, "table", {})
    for a, b in zip(quick, run(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
        assert a.stride() == b.stride()


def test_a_gradient_lies_as_the_input() -> None:
    x = torch.randn(2, 3, 4, requires_grad=True)
    y = torch.nn.functional.batch_norm(x, None, None, training=True)
    (g,) = torch.autograd.grad(y, [x], torch.randn(2, 3, 4))
    assert g.stride() == x.stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_running_statistics(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(4, 3, 5, dtype=dtype)

    def run() -> Any:
        mean, var = torch.zeros(6, dtype=dtype)[::2], torch.ones(3, dtype=dtype)
        for _ in range(3):
            torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.3)
        return mean, var

    quick = run()
    monkeypatch.setattr(fused, "table", {})
    for a, b in zip(quick, run(), strict=True):
        torch.testing.assert_close(a, b)
    rows = x.double().transpose(0, 1).reshape(3, -1)
    exact = rows.var(1) * (1 - 0.7**3) + 0.7**3
    torch.testing.assert_close(quick[1].double(), exact, rtol=2e-2, atol=0)


@pytest.mark.parametrize(("shape", "inner"), [((5, 7), (7,)), ((2, 3, 40), (3, 40)), ((6,), (6,))])
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_mean_square_in_one_pass(shape: Any, inner: Any, weighs: bool, dtype: Any) -> None:
    x = torch.randn(shape).to(dtype)
    w = torch.rand(inner).to(dtype) if weighs else None
    apart = x.clone().requires_grad_()  # recorded, it is made of its parts
    for one in (x, x.mT.contiguous().mT if x.dim() > 1 else x):
        y = torch.nn.functional.rms_norm(one, inner, w)
        z = torch.nn.functional.rms_norm(apart, inner, w)
        assert z.grad_fn is not None and y.grad_fn is None
        assert y.dtype is dtype and y.stride() == z.stride()
        torch.testing.assert_close(y, z.detach())
    with torch.no_grad():
        assert torch.nn.functional.rms_norm(apart, inner, w).grad_fn is None


def test_transforms_see_the_parts_of_the_mean_square() -> None:
    x = torch.randn(3, 5)
    rows = torch.func.vmap(lambda r: torch.nn.functional.rms_norm(r, (5,)))(x)
    torch.testing.assert_close(rows, torch.nn.functional.rms_norm(x, (5,)))
    _, t = torch.func.jvp(lambda z: torch.nn.functional.rms_norm(z, (5,)), (x,), (x,))
    torch.testing.assert_close(t, torch.zeros(3, 5), atol=1e-5, rtol=0)
