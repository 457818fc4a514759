"""Normalisations by kernels: results and gradients are those of the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels, norms
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
        norms.layer_norm(op.width, op.eps, x, w, b)
        if layer
        else norms.batch_norm(op.axes, op.eps, x, w, b)
    )
    wanted = Normalise.forward(op, x, w, b)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for y, z in zip(quick, wanted, strict=True):
        assert y.shape == z.shape and y.dtype == dtype
        np.testing.assert_allclose(y, z, rtol=tolerance, atol=tolerance * 5)
    gs = [draw(z.shape, dtype, 3 + i) for i, z in enumerate(wanted)]
    for wants in WANTS if weighs else [(True, False, False)]:
        bits = sum(want << k for k, want in enumerate(wants))
        given = (bits, gs, x, w, wanted[1], wanted[2])
        found = (
            norms.layer_norm_back(op.width, *given)
            if layer
            else norms.batch_norm_back(op.axes, *given)
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
    assert norms.batch_norm((-2,), 1e-5, np.zeros((0, 3), np.float32), None, None) is None
    x = torch.randn(4, 3, dtype=torch.float16)
    assert torch.nn.functional.batch_norm(x, None, None, training=True).dtype == torch.float16


def by_channel(t: Any, rank: int) -> Any:
    return t.reshape(1, -1, *[1] * (rank - 2))


def weighted(z: Any, weight: Any, bias: Any) -> Any:
    y = z if weight is None else z * by_channel(weight, z.dim())
    return y if bias is None else y + by_channel(bias, z.dim())


def compare(quick: Any, plain: Any, x: Any, wanted: list[Any], tolerance: float) -> None:
    """Two functions of a tensor: results, and gradients one by one and together."""
    found = []
    for fn in (quick, plain):
        y = fn(x)
        g = torch.arange(float(y.numel())).reshape(y.shape).sin()
        alone = [torch.autograd.grad(y, [t], g, retain_graph=True)[0] for t in wanted]
        found.append([y, *alone, *torch.autograd.grad(y, wanted, g)])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=1e-5)
        assert a.stride() == b.stride()


@pytest.mark.parametrize("shape", [(2, 6, 5), (3, 4), (2, 4, 3, 2), (1, 2, 300), (2, 4, 8, 8)])
@pytest.mark.parametrize(("weighs", "shifts"), [*WEIGHTS, (False, True)])
def test_groups_are_those_of_the_rule(shape: Any, weighs: bool, shifts: bool) -> None:
    weight = torch.randn(shape[1], requires_grad=True) if weighs else None
    bias = torch.randn(shape[1], requires_grad=True) if shifts else None
    x = torch.randn(shape, requires_grad=True)

    def plain(x: Any) -> Any:
        z = x.reshape(shape[0], 2, -1)
        z = (z - z.mean(-1, keepdim=True)) / (z.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
        return weighted(z.reshape(shape), weight, bias)

    wanted = [t for t in (x, weight, bias) if t is not None]
    compare(lambda x: torch.nn.functional.group_norm(x, 2, weight, bias), plain, x, wanted, 1e-4)


@pytest.mark.parametrize("shape", [(5, 6), (2, 6, 5), (3, 6, 40), (2, 6, 4, 9)])
@pytest.mark.parametrize(("weighs", "shifts"), [*WEIGHTS, (False, True)])
def test_given_statistics_are_those_of_the_rule(shape: Any, weighs: bool, shifts: bool) -> None:
    mean, var = torch.randn(6), torch.rand(6) + 0.5
    weight = torch.randn(6, requires_grad=True) if weighs else None
    bias = torch.randn(6, requires_grad=True) if shifts else None
    x = torch.randn(shape, requires_grad=True)

    def quick(x: Any) -> Any:
        return torch.nn.functional.batch_norm(x, mean, var, weight, bias)

    def plain(x: Any) -> Any:
        z = (x - by_channel(mean, x.dim())) / by_channel((var + 1e-5).sqrt(), x.dim())
        return weighted(z, weight, bias)

    compare(quick, plain, x, [t for t in (x, weight, bias) if t is not None], 1e-5)


def test_a_gradient_lies_as_the_input() -> None:
    x = torch.randn(2, 3, 4, requires_grad=True)
    y = torch.nn.functional.batch_norm(x, None, None, training=True)
    (g,) = torch.autograd.grad(y, [x], torch.randn(2, 3, 4))
    assert g.stride() == x.stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("momentum", [0.3, 1, 0.0])
def test_running_statistics(dtype: Any, momentum: float) -> None:
    x = torch.randn(4, 3, 5, dtype=dtype)

    def run(step: int) -> Any:
        """With a step of 2 they do not lie in rows."""
        mean, var = torch.zeros(6, dtype=dtype)[::step][:3], torch.ones(6, dtype=dtype)[::step][:3]
        for _ in range(3):
            torch.nn.functional.batch_norm(x, mean, var, None, None, True, momentum)
        assert mean._version == var._version == 3
        return mean, var

    quick, slow = run(1), run(2)
    for a, b in zip(quick, slow, strict=True):
        torch.testing.assert_close(a, b)
    left = (1 - momentum) ** 3
    rows = x.double().transpose(0, 1).reshape(3, -1)
    torch.testing.assert_close(quick[0].double(), rows.mean(1) * (1 - left), rtol=2e-2, atol=2e-3)
    torch.testing.assert_close(
        quick[1].double(), rows.var(1) * (1 - left) + left, rtol=2e-2, atol=0
    )


def test_running_statistics_that_cannot_be_written() -> None:
    x, mean, var = torch.randn(4, 3), torch.zeros(3), torch.ones(3)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        torch.nn.functional.batch_norm(x, torch.zeros(2), var, None, None, True)
    with pytest.raises(RuntimeError, match="'running_var'"):
        torch.nn.functional.batch_norm(x, mean, var.clone().requires_grad_(), None, None, True)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        torch.nn.functional.batch_norm(x[:1], mean, var, None, None, True)
    assert mean.tolist() == [0, 0, 0] and mean._version == 0


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
