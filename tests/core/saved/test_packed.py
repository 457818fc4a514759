"""Saved values that hooks have packed: which, in what order, how long, and how one value is hooked.

Each test with the parameter `torch` is true of rushlight and of PyTorch.
"""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import rushlight
from tests.core.saved.helpers import identity, noting

ORDERS = {
    "a * b": [(3,), (2, 3)],
    "torch.addcmul(a, b, c)": [(3,), (1, 3)],
    "a / b": [(3,), (2, 3)],
    "torch.pow(a, b)": [(3,), (2, 3), (2, 3)],
    "torch.logsumexp(a, 1)": [(2, 3), (2,)],
    "torch.softmax(a, 1)": [(2, 3)],
    "torch.atan2(a, b)": [(3,), (2, 3)],
    "torch.lerp(a, b, c)": [(3,), (2, 3), (1, 3)],
    "a[torch.tensor([0, 1])]": [(2,)],
    "torch.prod(a, 1)": [(2, 3), (2,)],
    "torch.where(a > 0, a, c)": [(2, 3)],
    "a.max(1)": [(2,)],
    "a.std()": [(2, 3), ()],
    "torch.cat([a, c])": [],
    "a.sum()": [],
    "a @ a.T": [(3, 2), (2, 3)],
    "a.clone().mul_(b)": [(3,), (2, 3)],
    "a.clone().exp_()": [(2, 3)],
}


@pytest.mark.parametrize("text", ORDERS)
def test_inputs_are_packed_by_name_then_outputs(torch: Any, text: str) -> None:
    a = torch.rand(2, 3, requires_grad=True)
    b = torch.rand(3, requires_grad=True)
    c = torch.rand(1, 3, requires_grad=True)
    packed: list[Any] = []
    unpacked: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(tuple(t.shape))
        return t.detach()

    def unpack(t: Any) -> Any:
        unpacked.append(tuple(t.shape))
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = eval(text, {"torch": torch, "a": a, "b": b, "c": c})
    assert packed == ORDERS[text]
    (y[0] if isinstance(y, tuple) else y).sum().backward()
    assert unpacked == packed


def test_only_what_wanted_gradients_read_is_packed(torch: Any) -> None:
    packed: list[Any] = []
    x, y = torch.tensor([1.0], requires_grad=True), torch.tensor([5.0])
    with torch.autograd.graph.saved_tensors_hooks(noting(packed), identity):
        x * y
    assert packed == [[5.0]]


def test_in_place_ops_pack_the_old_input_and_the_new_result(torch: Any) -> None:
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append((t.tolist(), t._version, t.requires_grad))
        return t.detach().clone()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a = x.clone()
    with torch.autograd.graph.saved_tensors_hooks(pack, identity):
        a.mul_(torch.tensor([3.0, 4.0], requires_grad=True))
        a.sigmoid_()
        a[:1].mul_(x[1:])
    result = a.detach()[1].item()
    first = 1 / (1 + 2.718281828**-3.0)
    assert seen[0] == ([3.0, 4.0], 0, True)
    assert seen[1] == ([1.0, 2.0], 0, True)
    assert seen[2] == ([pytest.approx(first), result], 2, True)
    assert seen[3] == ([2.0], 0, True)
    assert seen[4][0] == [pytest.approx(first)]
    a.sum().backward()
    slope = first * (1 - first)
    assert x.grad.tolist() == pytest.approx(
        [2 * slope * 3, first + result * (1 - result) * 4], rel=1e-4
    )


def test_packed_values_are_not_watched_for_writes(torch: Any) -> None:
    x = torch.tensor([2.0], requires_grad=True).clone()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), identity):
        y = x * x
    x.add_(1)
    y.backward()
    z = torch.tensor([2.0], requires_grad=True).clone()
    with torch.autograd.graph.saved_tensors_hooks(identity, identity):
        z.mul_(z)
    z.backward()


def test_values_are_freed_once_used(torch: Any) -> None:
    class Box:
        def __init__(self, t: Any) -> None:
            self.t = t

    boxes: list[Any] = []

    def pack(t: Any) -> Box:
        box = Box(t.detach())
        boxes.append(weakref.ref(box))
        return box

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.t):
        y = x.exp()
    assert boxes[0]() is not None
    y.sum().backward()
    assert boxes[0]() is None
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.t):
        y = x.exp()
    del y
    assert boxes[1]() is None


def test_rushlight_collects_a_hook_that_keeps_its_output() -> None:
    x = rushlight.ones(2, requires_grad=True)
    with rushlight.autograd.graph.saved_tensors_hooks(identity, identity):
        y = x.exp()
    gone = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert gone() is None


def test_rushlight_is_quiet_and_leaves_the_hook_its_warnings() -> None:
    calls: list[int] = []

    def unpack(t: Any) -> Any:
        calls.append(1)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            np.ones(1) / np.zeros(1)
        assert len(said) == 1
        return t

    x = rushlight.tensor([0.0], requires_grad=True)
    with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = x.log()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y.sum().backward()
    assert calls == [1] and x.grad is not None and x.grad.tolist() == [float("inf")]


def test_register_hooks_on_one_value(torch: Any) -> None:
    events: list[Any] = []

    def pack(t: Any) -> Any:
        events.append(("pack", t.tolist(), t.requires_grad))
        return t.clone()

    def unpack(t: Any) -> Any:
        events.append(("unpack", t.tolist()))
        return t

    x = torch.tensor([2.0], requires_grad=True)
    y = torch.tensor([5.0], requires_grad=True)
    z = x * y
    saved = z.grad_fn._raw_saved_self
    assert (saved.data.tolist(), saved.unpack_hook) == ([2.0], None)
    saved.register_hooks(pack, unpack)
    assert events == [("pack", [2.0], False)]
    assert saved.unpack_hook is unpack
    with pytest.raises(RuntimeError, match="^Calling register_hooks on a saved tensor whose hooks"):
        z.grad_fn._raw_saved_self.register_hooks(identity, identity)
    with torch.no_grad():
        x.add_(1)  # packed, and so no longer watched
    assert saved.unpack().tolist() == [2.0]
    z.sum().backward()
    assert events[1:] == [("unpack", [2.0])] * 2
    assert [x.grad.tolist(), y.grad.tolist()] == [[5.0], [2.0]]
    with pytest.raises(RuntimeError, match="^Calling register_hooks on a saved tensor after it ha"):
        saved.register_hooks(identity, identity)
    w = x * 2
    with pytest.raises(RuntimeError, match="^Calling register_hooks on a saved tensor with value"):
        w.grad_fn._raw_saved_self.register_hooks(identity, identity)
    v = x * y
    with pytest.raises(TypeError, match=r"^register_hooks\(\): incompatible function arguments"):
        v.grad_fn._raw_saved_self.register_hooks(1, 2)


def test_the_other_value_is_still_watched(torch: Any) -> None:
    x = torch.tensor([2.0], requires_grad=True)
    y = torch.tensor([5.0], requires_grad=True)
    z = x * y
    z.grad_fn._raw_saved_self.register_hooks(lambda t: t.clone(), identity)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="^one of the variables needed for gradient computation"):
        z.sum().backward()


def test_register_hooks_on_a_function_s_value(torch: Any) -> None:
    class Square(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, _ = ctx.saved_tensors
            return 2 * g * x

    x = torch.tensor([3.0], requires_grad=True)
    y = Square.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda t: t.tolist(), lambda v: torch.tensor(v) * 10)
    with pytest.raises(RuntimeError, match="^Calling register_hooks on a saved tensor with value"):
        second.register_hooks(identity, identity)
    y.sum().backward()
    assert x.grad.tolist() == [60.0]
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.grad_fn._raw_saved_tensors


def test_hooks_leave_the_grad_mode_as_it_was(torch: Any) -> None:
    with torch.inference_mode(), torch.enable_grad():
        with torch.autograd.graph.saved_tensors_hooks(identity, identity):
            assert torch.is_grad_enabled()
        assert torch.is_grad_enabled()
