"""`autograd.grad` of plain tensors: the short way gives what the long one does."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.core.engine.grad import grad_of_plain

grad = torch.autograd.grad


def test_one_tensor_or_several() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    for outputs, inputs in (((x * y).sum(), x), ([(x * y).sum()], [x, y]), ((x * y).sum(), (y, x))):
        found = grad(outputs, inputs)
        assert isinstance(found, tuple)
        assert all(g.tolist() == [1, 1] and not g.requires_grad for g in found)
    a, b = x * 2, x * 3
    assert grad((a, b), x, (torch.ones(2), torch.ones(2)))[0].tolist() == [5, 5]
    assert x.grad is None


def test_an_array_is_one_tensor() -> None:
    """Writes to one must be seen by all that share its memory."""
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    g = torch.ones(2)
    first, second = grad(x + y, (x, y), g)
    assert first is g and second is g
    (same,) = grad(x, x, g)
    assert same is g


def test_unused_inputs() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="index 1 appears to not have been used"):
        grad(x.sum(), (x, y))
    found: Any = grad(x.sum(), (x, y), allow_unused=True)
    assert found[0].tolist() == [1, 1] and found[1] is None
    found = grad(x.sum(), (y, x), materialize_grads=True)
    assert found[0].tolist() == [0, 0] and found[1].tolist() == [1, 1]


def test_the_graph_is_freed_unless_it_is_to_stay() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    grad(y, x, retain_graph=True)
    grad(y, x)
    with pytest.raises(RuntimeError, match="a second time"):
        grad(y, x)


def test_interior_tensors_and_views() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    assert grad((y * y).sum(), y)[0].tolist() == [[4, 4, 4], [4, 4, 4]]
    v = y[0]
    assert grad((v * v).sum(), v)[0].tolist() == [4, 4, 4]
    y = x * 2
    _, second = y.unbind(0)
    assert grad(second.sum(), second)[0].tolist() == [1, 1, 1]


def test_hooks_run() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    assert grad(y.sum(), x)[0].tolist() == [20, 20]
    x.register_hook(lambda g: g + 1)
    assert grad((x * 2).sum(), x)[0].tolist() == [3, 3]


def test_what_is_unusual_is_left_alone() -> None:
    x = torch.ones(2, requires_grad=True)
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    plain = torch.ones(2)
    for outputs, inputs, given in (
        (x * 2, x, None), ((x * 2).sum(), plain, None), (plain.sum(), x, None),
        (x * 2, x, torch.ones(3)), (x * 2, x, torch.ones(2, dtype=torch.float64)),
        ((z * 2).real.sum(), [], None), ((x * 2).sum(), {"x": x}, None), (z * 2, z, torch.ones(2)),
    ):  # fmt: skip
        assert grad_of_plain(outputs, inputs, given, False) is None
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        grad(x * 2, x)
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(plain.sum(), x)
    assert grad(x * 2, x, torch.ones(2, dtype=torch.float64))[0].dtype == torch.float32


def test_other_leaves_are_not_computed() -> None:
    ran = []

    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ran.append("other")
            return g

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    grad((x * Noted.apply(y)).sum(), x)
    assert ran == []
