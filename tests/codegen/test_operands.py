"""Kernels of operands that do not simply lie in one piece: broadcast, turned, cut out, numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels
from rushlight.arrays.layouts import arrange

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")


def numbers(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


PAIRS: list[Callable[[str], tuple[Any, Any]]] = [
    lambda d: (numbers(4, 5, dtype=d), numbers(5, dtype=d)),
    lambda d: (numbers(4, 5, dtype=d), numbers(4, 1, dtype=d)),
    lambda d: (numbers(4, 1, dtype=d), numbers(1, 5, dtype=d)),
    lambda d: (numbers(4, 5, dtype=d), numbers(5, 4, dtype=d).T),
    lambda d: (numbers(5, 4, dtype=d).T, numbers(5, 4, dtype=d).T[:, ::-1]),
    lambda d: (numbers(6, 9, dtype=d)[::2, 1:8:3], numbers(3, 3, dtype=d)),
    lambda d: (numbers(2, 3, 4, 5, dtype=d).transpose(0, 3, 1, 2), numbers(1, 1, 3, 1, dtype=d)),
    lambda d: (np.broadcast_to(numbers(1, dtype=d), (3, 4)), numbers(3, 4, dtype=d)),
    lambda d: (np.broadcast_to(numbers(dtype=d), (3, 4)), numbers(4, 1, dtype=d)[:, 0]),
    lambda d: (numbers(dtype=d), numbers(3, 1, 2, dtype=d)),
    lambda d: (numbers(dtype=d), numbers(dtype=d)),
    lambda d: (numbers(3000, dtype=d)[::-1], numbers(3000, dtype=d)),
    lambda d: (numbers(40, 700, dtype=d), numbers(700, dtype=d)),
    lambda d: (numbers(300, 400, dtype=d), numbers(400, 300, dtype=d).T),
    lambda d: (numbers(3, 2, 1500, dtype=d), numbers(2, 1, dtype=d)),
    lambda d: (numbers(2, 1, 3, dtype=d)[:, :, ::2], numbers(4, 1, dtype=d)),
    lambda d: (numbers(7, 3, dtype=d)[:, :1], numbers(7, 1, dtype=d)),
    # a number a line: lines of all lengths, of one operand or of both, along several axes
    lambda d: (numbers(40, 63, dtype=d), numbers(40, 1, dtype=d)),
    lambda d: (numbers(40, 64, dtype=d), numbers(40, 1, dtype=d)),
    lambda d: (numbers(400, 300, dtype=d), numbers(400, 1, dtype=d)),
    lambda d: (numbers(301, 1, dtype=d), numbers(1, 500, dtype=d)),
    lambda d: (numbers(3, 4, 100, dtype=d), numbers(3, 1, 1, dtype=d)),
    lambda d: (numbers(3, 4, 100, dtype=d), numbers(4, 1, dtype=d)),
    lambda d: (numbers(4, 3, 100, dtype=d).transpose(1, 0, 2), numbers(3, 4, 2, dtype=d)[..., :1]),
    lambda d: (numbers(4, 100, 3, dtype=d).transpose(2, 0, 1), numbers(4, 1, dtype=d)),
    lambda d: (numbers(200, 600, dtype=d)[:, ::2], numbers(200, 1, dtype=d)),
    lambda d: (numbers(500, 400, dtype=d), numbers(1, 1, dtype=d)),
    lambda d: (numbers(500, 400, dtype=d).T, numbers(dtype=d)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pair", PAIRS)
def test_a_kernel_takes_operands_of_any_layout(pair: Any, dtype: str) -> None:
    for a, b in (pair(dtype), pair(dtype)[::-1]):
        before = a.copy(), b.copy()
        y = kernels.table["Sub.alpha=1.forward"](a, b)
        assert y.dtype == dtype and y.flags.owndata and y.flags.writeable
        np.testing.assert_array_equal(y, a - b)
        np.testing.assert_array_equal(a, before[0])
        np.testing.assert_array_equal(b, before[1])
        expected = arrange(a - b, (a, b)) if y.ndim else y
        assert y.strides == expected.strides
        less = kernels.table["Lt.forward"](a, b)
        np.testing.assert_array_equal(less, a < b)
        assert less.dtype == bool


@pytest.mark.parametrize("x", [numbers(3, 4), numbers(4, 3).T, numbers(6, 8)[::2, ::2], numbers(),
                               numbers(5000), numbers(300, 400), numbers(400, 300).T,
                               numbers(3, 5, dtype="float64")])  # fmt: skip
@pytest.mark.parametrize("number", [2, -3.5, 0, 1e300, float("nan"), float("-inf"), -0.0, 1 << 70])
def test_a_number_is_what_it_is_in_numpy(x: Any, number: Any) -> None:
    for name, fn in (
        ("Add.alpha=1", np.add), ("Sub.alpha=1", np.subtract), ("Div", np.divide),
        ("Maximum", np.maximum), ("Lt", np.less),
    ):  # fmt: skip
        kernel = kernels.table[f"{name}.forward"]
        with np.errstate(all="ignore"):
            for y, z in ((kernel(x, number), fn(x, number)), (kernel(number, x), fn(number, x))):
                np.testing.assert_array_equal(y, z)
                assert y.dtype == np.asarray(z).dtype and y.flags.owndata
            if name != "Lt" and x.flags.c_contiguous:
                into = x.copy()
                assert kernel.into((into,), number, into)
                np.testing.assert_array_equal(into, fn(number, x))
    assert kernels.table["Mul.forward"](x, 1 << 2000) is None  # NumPy has the error


def test_empty_arrays_and_those_of_many_axes() -> None:
    add = kernels.table["Add.alpha=1.forward"]
    assert add(np.ones((0, 3), np.float32), np.ones((0, 3), np.float32)).shape == (0, 3)
    assert add(np.ones((0, 3), np.float32), np.ones(3, np.float32)) is None
    x = np.ones((1,) * 20 + (2, 3), np.float32)
    assert add(x, x).shape == x.shape and add(x, x[..., :1]) is None
    x = numbers(2, 2, 2, 2, 2, 2, 2, 2)
    np.testing.assert_array_equal(add(x.T, x[:1]), x.T + x[:1])


def test_truths_choose() -> None:
    where = kernels.table["Where.dtype=None.forward"]
    x, y = numbers(4, 5), numbers(5)
    for mask in (x > 0, (x > 0)[:1], np.asarray(True), (numbers(5, 4) > 0).T):
        np.testing.assert_array_equal(where(x, y, mask), np.where(mask, x, y))
        np.testing.assert_array_equal(where(x, 2.0, mask), np.where(mask, x, np.float32(2)))
    assert where(x, y, x) is None and where(x, y, (x > 0).astype(np.uint8)) is None


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x.sum(), x.mean(0).sum()),
        lambda x: ((x + 1) ** 2 / 3).sum(),
        lambda x: (3 / (x * x + 2) - x * 0.5).mean(),
        lambda x: torch.maximum(x, x.t().t() * 0.5).sum(),
        lambda x: (x.t() * torch.arange(3.0)).sum(),
        lambda x: (x * x[:, :1] + x[0]).sum(1).prod(),
        lambda x: torch.where(x > 0, x, x * 2).amax(0).sum(),
        lambda x: x.clamp(-0.5, 0.5).sum() + x.clamp_min(0.1).sum() + x.clamp_max(0.1).sum(),
        lambda x: torch.nn.functional.smooth_l1_loss(x, x * 0.5),
        lambda x: torch.softmax(x, 0)[1].sum() + x.std() + x.var(0).sum() + x.norm(),
        lambda x: torch.atan2(x, x + 2).sum() + torch.lerp(x, x * 2, x).sum(),
    ],
)
def test_gradients_are_those_without_kernels(fn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight.core import graph

    def gradients() -> list[Any]:
        torch.manual_seed(0)
        x = torch.randn(3, 4, requires_grad=True)
        made = fn(x)
        for y in made if isinstance(made, tuple) else (made,):
            y.backward(retain_graph=True)
        (other,) = torch.autograd.grad(fn(x)[0] if isinstance(made, tuple) else fn(x), x)
        return [x.grad, other]

    quick = gradients()
    if graph.__file__.endswith(".py"):  # a compiled class cannot be changed
        monkeypatch.setattr(graph.Op, "__init__", _without_kernels(graph.Op.__init__))
    for a, b in zip(quick, gradients(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        assert a.stride() == b.stride()


def _without_kernels(init: Any) -> Any:
    def run(op: Any, *values: Any) -> None:
        init(op, *values)
        op.forward_kernel = op.vjp_kernel = None

    return run
