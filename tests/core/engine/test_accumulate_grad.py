"""Whose array a gradient is: nothing the user holds changes behind their back."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function
from tests.core.engine.helpers import ones


def test_a_hook_that_writes_spoils_no_later_backward() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g.mul_(5))
    y.backward()
    z = torch.tensor(3.0, requires_grad=True)
    (z * 2).backward()
    assert (x.grad.item(), z.grad.item()) == (10, 2)


def test_a_rule_that_returns_one_array_twice() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            t = g * 2
            return t, t

    w = ones(3)
    w.register_hook(lambda g: None)
    w.grad = torch.zeros(3)
    a, b = ones(3), ones(3)
    y, z = a * 1, b * 1
    u = y * 5
    q = F.apply(y, z) * 1
    ((q * w).sum() + u.sum()).backward()
    assert b.grad.tolist() == [2, 2, 2] and a.grad.tolist() == [7, 7, 7]


def test_a_rule_with_several_outputs_that_hands_its_gradient_on() -> None:
    x, w = (torch.tensor(1.0, requires_grad=True) for _ in range(2))
    g = torch.tensor(2.0) * 1
    for _ in range(2):
        (x.max(0)[0] + w.sort(0)[0]).backward(g)
    assert (g.item(), x.grad.item(), w.grad.item()) == (2, 4, 4)


def test_one_array_is_one_tensor_among_gradients() -> None:
    x, y = ones(3), ones(3)
    h = x * 2
    for create in (False, True):
        a, b = torch.autograd.grad(((x + y) * 2).sum(), [x, y], create_graph=create)
        c, d = torch.autograd.grad(h.exp().sum(), [h, h], create_graph=create)
        assert a is b and c is d
    given = torch.ones(3)
    a, b = torch.autograd.grad(x + y, [x, y], given)
    assert a is given and b is given
    rows = torch.eye(3)
    a, b = torch.autograd.grad(x + y, [x, y], rows, is_grads_batched=True)
    assert a is rows and b is rows
    c, d = torch.autograd.grad(x.sin(), [x, x], rows, is_grads_batched=True)
    assert c is d


def test_a_tensor_returned_by_backward_stays_the_users() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(w)
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ctx.saved_tensors[0], None

    w, x = torch.ones(3), ones(3)
    F.apply(x, w).sum().backward()
    F.apply(x, w).sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and w.tolist() == [1, 1, 1]


def test_create_graph_gives_each_leaf_its_own() -> None:
    a, b, g = ones(3), ones(3), torch.ones(3)
    (a + b).backward(g, create_graph=True)
    with torch.no_grad():
        a.grad.zero_()
    assert b.grad.tolist() == [1, 1, 1] and g.tolist() == [1, 1, 1]


def test_what_a_leaf_hook_kept_does_not_change() -> None:
    kept: list[Any] = []
    x = ones(3)
    x.register_hook(lambda g: kept.append(g))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert kept[0].tolist() == [2, 2, 2] and x.grad.tolist() == [4, 4, 4]


# --- gradients that are views ---------------------------------------------------------------------
def _layer() -> tuple[Any, Any]:
    torch.manual_seed(0)
    return torch.randn(256, 256, requires_grad=True), torch.randn(8, 256)


def test_the_gradient_of_a_turned_weight_is_not_copied() -> None:
    """It is a view of a product, turned twice, that nobody else holds: the leaf keeps it."""
    w, x = _layer()
    for _ in range(2):  # the first pass also makes what later ones find
        w.grad = None
        y = (x @ w.t()).sum()
        tracemalloc.start()
        y.backward()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.5 * w.nbytes
    assert w.grad is not None and w.grad.is_contiguous()
    assert torch.allclose(w.grad, x.sum(0).expand(256, 256))


@pytest.mark.parametrize("who", ["tensor", "node", "after", "leaf"])
def test_what_a_hook_keeps_of_it_stays_as_it_was(who: str) -> None:
    w, x = _layer()
    turned = w.t()
    kept: list[Any] = []
    node: Any = turned.grad_fn
    if who == "tensor":
        turned.register_hook(kept.append)
    elif who == "node":
        node.register_prehook(lambda grads: kept.extend(grads))
    elif who == "after":
        node.register_hook(lambda given, received: kept.extend(given))
    else:
        w.register_hook(kept.append)
    (x @ turned).sum().backward()
    before = kept[0].clone()
    assert w.grad is not None
    w.grad.add_(1)
    assert torch.equal(kept[0], before)


def test_a_leaf_that_is_turned_twice_gets_the_sum() -> None:
    w, x = _layer()
    ((x @ w.t()).sum() + (x @ w.t() * 2).sum()).backward()
    assert w.grad is not None
    assert torch.allclose(w.grad, 3 * x.sum(0).expand(256, 256), atol=1e-4)


def test_the_gradient_that_was_given_stays_as_it_was() -> None:
    """A view of the user's own array is no product of this pass."""
    w = torch.zeros(3, 4, requires_grad=True)
    g = torch.ones(4, 3)
    w.t().backward(g)
    assert w.grad is not None
    w.grad.add_(1)
    assert torch.equal(g, torch.ones(4, 3))
    w = torch.zeros(3, 4, requires_grad=True)
    w.t().t().backward(torch.ones(3, 4))
    assert w.grad is not None and w.grad.tolist() == torch.ones(3, 4).tolist()
