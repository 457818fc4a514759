"""`state_dict` and `load_state_dict`: copies, extra state, hooks."""

from __future__ import annotations

import copy

import rushlight as torch
from rushlight import nn
from tests.nn.modules.helpers import Net


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
