"""Modules: parts, walks, hooks, modes, conversions, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules import Linear
from rushlight.nn.parameter import Parameter
from rushlight.utils.hooks import RemovableHandle
from tests.nn.modules.helpers import Net, names


# --- parts ----------------------------------------------------------------------------------------
def test_imports_that_programs_write() -> None:
    assert Linear is nn.Linear and Parameter is nn.Parameter
    assert nn.functional.relu is not None and nn.modules.module.Module is nn.Module
    assert isinstance(nn.Parameter(torch.ones(1)), torch.Tensor)


def test_walks() -> None:
    net = Net()
    weights = ["scale", "first.weight", "first.bias", "inner.0.weight", "inner.0.bias"]
    assert names(net.named_parameters()) == weights
    assert names(net.named_parameters(prefix="net", recurse=False)) == ["net.scale"]
    assert names(net.named_parameters(remove_duplicate=False))[3:5] == [
        "again.weight",
        "again.bias",
    ]
    assert names(net.named_buffers()) == ["seen", "cache"]
    assert names(net.named_children()) == ["first", "inner"]
    assert names(net.named_modules()) == ["", "first", "inner", "inner.0"]
    assert names(net.named_modules(prefix="p", remove_duplicate=False))[2] == "p.again"
    assert len(list(net.modules())) == 4 and len(list(net.children())) == 2
    assert len(list(net.parameters())) == 5 and len(list(net.buffers())) == 2
    assert net.get_parameter("inner.0.weight") is net.inner[0].weight
    assert net.get_submodule("inner.0") is net.inner[0] and net.get_submodule("") is net
    assert net.get_buffer("seen") is net.seen
    net.set_submodule("inner.0", nn.Identity())
    assert isinstance(net.inner[0], nn.Identity)


def test_a_name_is_one_thing() -> None:
    m: Any = nn.Module()
    m.x = torch.ones(1)
    assert not list(m.parameters())
    m.x = nn.Parameter(torch.ones(1))
    assert "x" not in m.__dict__ and m._parameters["x"] is m.x
    m.x = None
    assert m.x is None and list(m.named_parameters()) == []
    del m.x
    m.x = nn.ReLU()
    assert names(m.named_children()) == ["x"]
    m.x = nn.Parameter(torch.ones(1))
    assert not list(m.children())
    m.b = nn.Buffer(torch.ones(1), persistent=False)
    assert names(m.named_buffers()) == ["b"] and "b" not in m.state_dict()
    m.b = torch.zeros(1)
    assert m.b.item() == 0 and names(m.named_buffers()) == ["b"]
    assert {"x", "b"} <= set(dir(m)) and "0" not in dir(nn.Sequential(nn.ReLU()))


# --- hooks ----------------------------------------------------------------------------------------
def test_forward_hooks() -> None:
    m = nn.Identity()
    order: list[str] = []
    m.register_forward_pre_hook(lambda module, args: order.append("b"))
    m.register_forward_pre_hook(lambda module, args: order.append("a"), prepend=True)
    handle = m.register_forward_hook(lambda module, args, y: y + 1)
    assert isinstance(handle, RemovableHandle)
    assert m(torch.zeros(1)).item() == 1 and order == ["a", "b"]
    handle.remove()
    handle.remove()
    assert m(torch.zeros(1)).item() == 0
    with m.register_forward_hook(lambda module, args, y: y + 2):
        assert m(torch.zeros(1)).item() == 2
    assert m(torch.zeros(1)).item() == 0


def test_hooks_with_keywords_and_after_errors() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Any, scale: float = 1.0) -> Any:
            if scale < 0:
                raise ValueError("negative")
            return x * scale

    m, seen = Scaled(), []
    m.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"scale": kwargs["scale"] * 2}), with_kwargs=True
    )
    handle = m.register_forward_hook(
        lambda module, args, kwargs, y: seen.append(kwargs["scale"]),
        with_kwargs=True,
        always_call=True,
    )
    assert m(torch.ones(1), scale=2.0).item() == 4 and seen == [4.0]
    with pytest.raises(ValueError, match="negative"):
        m(torch.ones(1), scale=-1.0)
    assert seen == [4.0, -2.0]
    handle.remove()
    assert not m._forward_hooks_with_kwargs and not m._forward_hooks_always_called


def test_full_backward_hooks() -> None:
    m = nn.Linear(2, 1, bias=False)
    m.weight.data.fill_(3)
    seen: list[Any] = []

    def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    m.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 2,))
    m.register_full_backward_hook(hook)
    x = torch.ones(1, 2, requires_grad=True)
    y = m(x)
    assert y.grad_fn.name() == "BackwardHookFunctionBackward"
    y.sum().backward()
    assert seen == [([[6.0, 6.0]], [[2.0]])]
    assert x.grad.tolist() == [[60, 60]] and m.weight.grad.tolist() == [[2, 2]]


def test_a_backward_hook_where_no_input_asks() -> None:
    m, seen = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda module, gi, go: seen.append(gi))
    y = m(torch.ones(1, 2))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        y.sum().backward()
    assert seen == [(None,)]
    with pytest.raises(RuntimeError, match="both regular backward hooks and full"):
        m.register_backward_hook(print)


def test_backward_hooks_of_the_older_kind() -> None:
    m, seen = nn.Tanh(), []
    m.register_backward_hook(lambda module, gi, go: seen.append((len(gi), go[0].tolist())))
    m(torch.zeros(2, requires_grad=True)).sum().backward()
    assert seen == [(1, [1.0, 1.0])]


# --- modes and conversions ------------------------------------------------------------------------
def test_modes_and_freezing() -> None:
    net = Net()
    assert net.eval() is net and not net.inner[0].training
    assert net.train().inner[0].training
    net.requires_grad_(False)
    assert not net(torch.ones(1, 2)).requires_grad
    net.inner.requires_grad_(True)
    net(torch.ones(1, 2)).sum().backward()
    assert net.first.weight.grad is None and net.inner[0].weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert net.inner[0].bias.grad.tolist() == [0]
    net.zero_grad()
    assert net.inner[0].bias.grad is None


def test_conversions_keep_the_parameters() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight: Any = net[0].weight
    net(torch.ones(2, 2)).sum().backward()
    assert net.double() is net and net[0].weight is weight
    assert weight.dtype is torch.float64 and weight.grad.dtype is torch.float64
    assert net[1].running_mean.dtype is torch.float64
    assert net[1].num_batches_tracked.dtype is torch.int64
    net.half()
    assert weight.dtype is torch.float16
    net.to("cpu", torch.bfloat16)
    assert weight.dtype is torch.bfloat16
    net.to(torch.zeros(1))
    assert weight.dtype is torch.float32 and weight.is_leaf and weight.requires_grad
    assert net.float().cpu().type(torch.float64)[0].bias.dtype is torch.float64
    net[:1].apply(lambda m: isinstance(m, nn.Linear) and m.reset_parameters())


def test_copies_and_pickles() -> None:
    net = Net()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin.again is twin.first and twin.first is not net.first
        assert repr(twin) == repr(net)
        assert torch.equal(twin(torch.ones(1, 2)), net(torch.ones(1, 2)))
        assert "cache" not in twin.state_dict()


def test_training_leaves_no_garbage() -> None:
    import gc

    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.ones(2, 3)

    def step() -> None:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    for _ in range(3):  # what is kept is kept by then
        step()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(100):
            step()
        assert len(gc.get_objects()) - before < 20
    finally:
        gc.enable()


def test_names_that_libraries_reach_for() -> None:
    from rushlight.nn.modules import container, module

    net = nn.ModuleList([nn.ReLU()])
    assert net._get_abs_string_index(-1) == "0" and net._get_name() == "ModuleList"
    assert module._addindent("a\nb", 4) == "a\n    b" == container._addindent("a\nb", 4)
    assert module._EXTRA_STATE_KEY_SUFFIX == "_extra_state" and not module._has_any_global_hook()
    layer = nn.Linear(1, 1)
    layer.compile(fullgraph=True)
    x = torch.ones(1)
    for call in (layer._call_impl, layer._wrapped_call_impl, layer._slow_forward):
        assert call(x).equal(layer(x))
    hook = layer.register_full_backward_hook(lambda *_: None)
    assert len(layer._get_backward_hooks()[0]) == 1 and layer._get_backward_pre_hooks() == []
    hook.remove()
    with pytest.warns(FutureWarning, match="Container"):
        old = nn.Container(a=layer)
    assert old.a is layer


class Counting:
    """Counts the rules that a backward pass runs, by the names of their nodes."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def watch(self, y: torch.Tensor) -> None:
        seen: set[object] = set()
        stack = [y.grad_fn]
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            node.register_hook(lambda *_, node=node: self.ran.append(node.name()))
            stack += [after for after, _ in node.next_functions]


def test_frozen_layers_compute_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    net[:4].requires_grad_(False)
    y = net(torch.ones(2, 3))
    count = Counting()
    count.watch(y)
    y.sum().backward()
    # nothing before the last layer was recorded, and in it the input's gradient is not wanted
    assert sorted(count.ran) == [
        "AddmmBackward0",
        "TBackward0",
        *["torch::autograd::AccumulateGrad"] * 2,
    ]
    assert [p.grad is None for p in net.parameters()] == [True] * 4 + [False] * 2


def test_frozen_layers_pass_gradients_on_without_their_own() -> None:
    """A frozen layer behind a trained one gives its input a gradient, and its weights none."""
    from rushlight.core.engine import engine

    first, frozen = nn.LSTM(2, 3), nn.LSTM(3, 3).requires_grad_(False)
    y = frozen(first(torch.ones(4, 1, 2))[0])[0]
    node = y.grad_fn
    grads = engine.backward_of(node, [torch.ones(4, 1, 3)._array, *[None] * 4], False)
    assert [g is not None for g in grads[:5]] == [True, False, False, False, False]
    y.sum().backward()
    assert all(p.grad is None for p in frozen.parameters())
    assert all(p.grad is not None for p in first.parameters())


def test_inference_keeps_nothing() -> None:
    import gc
    import weakref

    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LSTM(8, 8))
    made: list[weakref.ref[torch.Tensor]] = []

    def note(module: nn.Module, args: object, y: torch.Tensor) -> None:
        assert y.grad_fn is None and not y.requires_grad
        made.append(weakref.ref(y))

    net[0].register_forward_hook(note)
    net[1].register_forward_hook(note)
    gc.disable()
    try:
        with torch.no_grad():
            y, _ = net(torch.ones(2, 1, 8))
    finally:
        gc.enable()
    assert y.grad_fn is None and [ref() for ref in made] == [None, None]
