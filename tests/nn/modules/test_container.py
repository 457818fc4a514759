"""`Sequential`, and lists and dictionaries of modules and parameters."""

from __future__ import annotations

from collections import OrderedDict

import rushlight as torch
from rushlight import nn
from tests.nn.modules.helpers import names


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
