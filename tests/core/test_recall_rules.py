"""Rules on tensors, asked once: the second derivative is the same the first time and ever after."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.core.families import Bilinear, Elementwise, Linear
from rushlight.ops.registry import table

EXPRESSIONS = [
    "(x.exp() * y).sum()",
    "(x @ y.t()).tanh().sum()",
    "x.sigmoid().prod()",
    "(x / y).sum(0).norm()",
    "x[:, 1:].pow(3).sum() + x[0].sin().sum()",
    "torch.logsumexp(x * y, 1).sum()",
    "(x.t() * 2).cos().mean()",
    "x.softmax(1).mul(y).sum()",
    "(x.unsqueeze(0) - y.unsqueeze(1)).pow(2).sum()",
    "x.max(1).values.pow(2).sum()",
    "torch.where(x > 0, x * x, y * x).sum()",
    "torch.atan2(x, y).sum()",
    "torch.cat([x, y * x]).pow(3).mean()",
    "torch.einsum('ij,kj->ik', x, y).pow(2).sum()",
    "x.clamp(-0.5, 0.5).pow(2).sum()",
    "torch.nn.functional.gelu(x).mul(y).sum()",
]


def second_derivatives(text: str, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    x, y = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    value = eval(text, {"torch": torch, "x": x, "y": y})
    first = torch.autograd.grad(value, [x, y], create_graph=True, allow_unused=True)
    total = sum((g.pow(2).sum() for g in first if g is not None), torch.zeros(()))
    if not total.requires_grad:
        return [g.tolist() for g in first if g is not None]
    second = torch.autograd.grad(total, [x, y], allow_unused=True, create_graph=True)
    return [None if g is None else g.tolist() for g in (*first, *second)]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_as_the_first_time(text: str) -> None:
    for op in table.values():
        assert op.asked_once in (True, False)
    wanted = [second_derivatives(text, seed) for seed in range(4)]
    for _ in range(3):
        found = [second_derivatives(text, seed) for seed in range(4)]
        assert str(found) == str(wanted)


def test_which_gradients_are_wanted_counts() -> None:
    a, b = torch.tensor([3.0]), torch.tensor([5.0])
    for wants in ((True, True), (True, False), (False, True), (True, True)) * 3:
        x, y = (t.clone().requires_grad_(w) for t, w in zip((a, b), wants, strict=True))
        leaves = [t for t in (x, y) if t.requires_grad]
        found = torch.autograd.grad(torch.atan2(x, y).sum(), leaves, create_graph=True)
        want = [5 / 34, -3 / 34]
        expected = [g for g, w in zip(want, wants, strict=True) if w]
        assert [g.item() for g in found] == pytest.approx(expected)
        assert all(g.requires_grad for g in found)


def test_shapes_and_dtypes_count() -> None:
    for _ in range(3):
        for shape in ((2,), (3, 1), (1, 3), ()):
            for dtype in (torch.float32, torch.float64, torch.complex64):
                x = torch.ones(shape, dtype=dtype, requires_grad=True)
                one = torch.ones((), dtype=dtype)
                (g,) = torch.autograd.grad(x.cos().sum(), x, one, create_graph=True)
                assert g.shape == shape and g.dtype == dtype
                (h,) = torch.autograd.grad(g.sum(), x, one)
                assert h.shape == shape and h.dtype == dtype


def test_zero_derivatives_keep_their_graph() -> None:
    for _ in range(4):
        x = torch.tensor([1.0, -1.0], requires_grad=True)
        (g,) = torch.autograd.grad(x.relu().sum(), x, create_graph=True)
        assert torch.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 0.0]


def test_under_transforms_the_rule_is_run() -> None:
    def f(x: Any) -> Any:
        return (x.sin() * x[1:].sum()).sum()

    for _ in range(3):
        x = torch.arange(4.0, dtype=torch.float64)
        whole = torch.func.hessian(f)(x)
        leaf = x.clone().requires_grad_()
        (g,) = torch.autograd.grad(f(leaf), leaf, create_graph=True)
        rows = [torch.autograd.grad(g[i], leaf, retain_graph=True)[0] for i in range(4)]
        torch.testing.assert_close(torch.stack(rows), whole)


def test_whole_families_are_asked_once() -> None:
    for op in table.values():
        if issubclass(op, (Elementwise, Linear, Bilinear)):
            assert op.asked_once
