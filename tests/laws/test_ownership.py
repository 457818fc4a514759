"""Whose array a gradient is: nothing the user holds changes behind their back."""

from __future__ import annotations

import threading
from typing import Any

import rushlight as torch
from rushlight.autograd import Function


def ones(n: int) -> Any:
    return torch.ones(n, requires_grad=True)


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


def test_inputs_that_are_interior_retain_their_gradient() -> None:
    x = ones(2)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward(inputs=[y])
    assert y.grad.tolist() == [3, 3]
    y = x * 2
    z = (y * 3).sum()
    z.backward(inputs=[y, y], retain_graph=True)
    assert y.grad.tolist() == [3, 3] and y.retains_grad
    z.backward()
    assert y.grad.tolist() == [6, 6]


class TwoOutputs(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * 2 + h * 3


def test_retain_grad_follows_values() -> None:
    x = ones(4)
    a, b = TwoOutputs.apply(x)
    a.retain_grad()
    b.retain_grad()
    a.mul_(2)
    (a + b).sum().backward()
    assert b.grad.tolist() == [1] * 4 and a.grad.tolist() == [1] * 4
    y = x * 1
    v = y[:2]
    v.retain_grad()
    v.mul_(3)
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2, 2]
    y = x * 1
    v = y[:2]
    v.retain_grad()
    y.mul_(3)
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2, 2]
    y = x * 1
    y.retain_grad()
    y[:2].mul_(3)
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2] * 4


def test_a_view_made_in_forward_is_still_a_view() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.cat([g * 7, g * 0])

    o = F.apply(ones(2) * 1)
    assert o._is_view()
    try:
        o.mul_(2)
    except RuntimeError as error:
        assert "This view was created inside a custom Function" in str(error)
    else:
        raise AssertionError("the write should have been refused")


def test_node_pre_hooks_come_after_capturing() -> None:
    x = ones(2)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
    z = (y * 3).sum()
    assert torch.autograd.grad(z, [y], retain_graph=True)[0].tolist() == [3, 3]
    gy, gx = torch.autograd.grad(z, [y, x])
    assert gy.tolist() == [3, 3] and gx.tolist() == [60, 60]


def test_a_written_region_has_no_gradient_even_at_infinity() -> None:
    x, v = ones(2), torch.tensor(2.0, requires_grad=True)
    y = x.clone()
    y[0] = v
    g = ones(2)
    (gx,) = torch.autograd.grad(y, x, g, create_graph=True)
    (gg,) = torch.autograd.grad(gx, g, torch.tensor([float("inf"), 1.0]))
    assert gg.tolist() == [0, 1]


def test_one_tensor_returned_twice() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2 + h * 3

    x = ones(2)
    a, b = F.apply(x)
    (a * 1 + b * 10).sum().backward()
    assert a is b and x.grad.tolist() == [33, 33]


def test_one_mode_object_in_two_threads() -> None:
    mode = torch.no_grad()
    entered, go, left = (threading.Event() for _ in range(3))

    def other() -> None:
        with mode:
            entered.set()
            go.wait()
        left.set()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    with mode:
        go.set()
        left.wait()
        assert not torch.is_grad_enabled()
    thread.join()
    assert torch.is_grad_enabled()


def test_inference_mode_reaches_into_functions() -> None:
    with torch.inference_mode():
        a, _ = TwoOutputs.apply(torch.ones(2))
        assert a.is_inference()
