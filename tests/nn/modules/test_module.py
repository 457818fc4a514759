"""Modules: parts, walks, hooks, modes, conversions, copies."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules import Linear
from rushlight.nn.parameter import Parameter
from rushlight.utils.hooks import RemovableHandle


class Net(nn.Module):
    """A parameter, a buffer, a shared module, a module that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("cache", torch.zeros(1), persistent=False)
        self.first = nn.Linear(2, 2)
        self.again = self.first
        self.absent: Any = None
        self.inner = nn.Sequential(nn.Linear(2, 1))

    def forward(self, x: Any) -> Any:
        return self.inner(self.first(x)) * self.scale


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


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


def test_a_parameter_shares_memory_and_version() -> None:
    x = torch.zeros(2)
    p: Any = nn.Parameter(x)
    x.add_(1)
    assert p.tolist() == [1, 1] and p._version == x._version
    assert p.is_leaf and p.requires_grad and type(p * 2) is torch.Tensor


def test_a_parameter_is_copied_and_pickled() -> None:
    p: Any = nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    twin = copy.deepcopy([p, p])
    assert twin[0] is twin[1] and type(twin[0]) is nn.Parameter and twin[0].grad is None
    back = pickle.loads(pickle.dumps(nn.Parameter(torch.ones(2), requires_grad=False)))
    assert type(back) is nn.Parameter and not back.requires_grad and back.tolist() == [1, 1]


# --- saving ---------------------------------------------------------------------------------------
def test_state_dict() -> None:
    net = Net()
    state = net.state_dict()
    keys = [
        "scale", "seen", "first.weight", "first.bias", "again.weight", "again.bias",
        "inner.0.weight", "inner.0.bias",
    ]  # fmt: skip
    assert list(state) == keys and not state["scale"].requires_grad
    assert list(state._metadata) == ["", "first", "again", "inner", "inner.0"]
    state["scale"].fill_(5)
    assert net.scale.item() == 5  # the same memory
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert next(iter(net.state_dict(prefix="p."))) == "p.scale"


def test_load_copies_or_assigns() -> None:
    a, b = nn.Linear(2, 1), nn.Linear(2, 1).double()
    weight = a.weight
    a.load_state_dict(b.state_dict())
    assert a.weight is weight and a.weight.dtype is torch.float32
    a.weight.requires_grad_(False)
    a.load_state_dict(b.state_dict(), assign=True)
    assert a.weight is not weight and a.weight.dtype is torch.float64
    assert isinstance(a.weight, nn.Parameter) and not a.weight.requires_grad


def test_extra_state_and_hooks_of_state() -> None:
    class Extra(nn.Module):
        value = 3

        def get_extra_state(self) -> int:
            return self.value

        def set_extra_state(self, state: int) -> None:
            self.value = state

    m = Extra()
    state = m.state_dict()
    assert dict(state) == {"_extra_state": 3}
    m.value = 0
    m.load_state_dict(state)
    assert m.value == 3

    net, log = nn.Linear(1, 1), []
    net.register_state_dict_pre_hook(lambda module, prefix, keep: log.append("before save"))
    net.register_state_dict_post_hook(lambda module, state, prefix, meta: log.append("after save"))
    net.register_load_state_dict_pre_hook(lambda module, *rest: log.append(module is twin))
    net.register_load_state_dict_post_hook(lambda module, keys: log.append(keys.missing_keys))
    twin = copy.deepcopy(net)  # the hooks belong to the copy then
    twin.load_state_dict(net.state_dict())
    assert log == ["before save", "after save", True, []]


def test_batch_norm_loads_what_was_saved_before_it_counted() -> None:
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    assert repr(nn.BatchNorm1d(2).load_state_dict(state)) == "<All keys matched successfully>"


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


# --- containers -----------------------------------------------------------------------------------
def test_sequential() -> None:
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    net = nn.Sequential(a, b)
    assert len(net) == 2 and list(net) == [a, b] and net[-1] is b
    assert net.append(c) is net and list(net[1:]) == [b, c]
    net.insert(0, c)
    assert list(net) == [c, a, b, c] and names(net.named_children()) == ["0", "1", "2"]
    del net[1:3]
    assert list(net) == [c, c] and list(net._modules) == ["0", "1"]
    net[0] = a
    assert net.pop(0) is a and list(net + nn.Sequential(b)) == [c, b]
    net += nn.Sequential(a)
    assert list(net * 2) == [c, a, c, a] and list(net.extend([b])) == [c, a, b]
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.first is a and names(named[:1].named_children()) == ["first"]


def test_lists_and_dictionaries_of_modules() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.ReLU()).extend([nn.Tanh()])
    layers.insert(0, nn.ELU())
    layers += [nn.GELU()]
    kinds = [type(m).__name__ for m in layers]
    assert kinds == ["ELU", "Linear", "ReLU", "Tanh", "GELU"]
    assert len(list(layers.parameters())) == 2 and len(layers[1:3]) == 2
    del layers[0]
    assert isinstance(layers.pop(-1), nn.GELU) and len(layers) == 3
    assert len(layers + nn.ModuleList([nn.ReLU()])) == 4
    table = nn.ModuleDict({"b": nn.ReLU()})
    table["a"] = nn.Linear(1, 1)
    table.update([("c", nn.Tanh())])
    assert list(table) == ["b", "a", "c"] and "a" in table and len(table) == 3
    assert isinstance(table.pop("c"), nn.Tanh) and list(table.keys()) == ["b", "a"]
    assert len(list(table.values())) == len(list(table.items())) == 2
    table.clear()
    assert len(table) == 0


def test_lists_and_dictionaries_of_parameters() -> None:
    params = nn.ParameterList([torch.ones(1)])
    params.append(torch.zeros(2)).extend([nn.Parameter(torch.ones(3))])
    params += [torch.ones(4)]
    assert len(params) == 4 and [len(p) for p in params[1:3]] == [2, 3]
    params[0] = torch.ones(5)
    assert [len(p) for p in params] == [5, 2, 3, 4] and len(list(params.parameters())) == 4
    table = nn.ParameterDict({"w": torch.ones(1)})
    table["v"] = torch.ones(2)
    assert table.get("x") is None and table.setdefault("x", torch.ones(3)).requires_grad
    assert list(table.keys()) == ["w", "v", "x"] and "v" in table
    both = table | nn.ParameterDict({"y": torch.ones(4)})
    assert len(both) == 4 and both["w"] is table["w"] and next(reversed(both)) == "y"
    assert table.popitem()[0] == "x" and len(table.pop("v")) == 2 and len(table.copy()) == 1
    table.clear()
    assert len(table) == 0 and not list(table.parameters())


# --- a few layers ---------------------------------------------------------------------------------
def test_embedding_from_vectors() -> None:
    vectors = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    m = nn.Embedding.from_pretrained(vectors)
    assert m(torch.tensor([1])).tolist() == [[3, 4]] and not m.weight.requires_grad
    assert nn.Embedding.from_pretrained(vectors, freeze=False).weight.requires_grad


def test_batch_norm_counts() -> None:
    m = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 2.0):
        m(torch.tensor([[0.0], [value]]))
    assert m.num_batches_tracked.item() == 2
    assert m.running_mean.item() == pytest.approx(0.75)
    m.reset_running_stats()
    assert m.running_var.item() == 1
    still = nn.BatchNorm1d(1, track_running_stats=False).eval()
    y = still(torch.tensor([[0.0], [2.0]]))
    assert y.flatten().tolist() == pytest.approx([-1, 1], abs=1e-4)


def test_clipping() -> None:
    a: Any = torch.zeros(2, requires_grad=True)
    b: Any = torch.zeros(1, requires_grad=True)
    a.grad, b.grad = torch.tensor([2.0, 3.0]), torch.tensor([6.0])
    assert nn.utils.clip_grad_norm_((p for p in (a, b)), 3.5).item() == 7
    assert a.grad.tolist() == pytest.approx([1, 1.5]) and b.grad.item() == pytest.approx(3)
    assert nn.utils.clip_grad_norm_([a, b], 100, norm_type=float("inf")).item() == pytest.approx(3)
    nn.utils.clip_grad_value_([a], 1.2)
    assert a.grad.tolist() == pytest.approx([1, 1.2])
    with pytest.warns(UserWarning, match="empty generator"):
        nn.utils.clip_grad_norm_((p for p in ()), 1.0)
    assert nn.utils.get_total_norm([]).item() == 0


def test_parameters_as_a_vector() -> None:
    m = nn.Linear(2, 1)
    vector = nn.utils.parameters_to_vector(m.parameters())
    assert vector.shape == (3,) and vector.requires_grad
    nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), m.parameters())
    assert m.weight.tolist() == [[1, 2]] and m.bias.tolist() == [3]
