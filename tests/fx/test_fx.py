"""fx: what tracing records, the code it writes, and what is done with graphs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 5)
        self.seq = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
        self.p = nn.Parameter(torch.ones(4))

    def forward(self, x: Any, scale: float = 2.0) -> Any:
        z = self.seq(torch.relu(self.lin(x + self.p)))
        a, b = torch.split(z, 1)
        return nn.functional.dropout(a, 0.1, False) * scale, {"b": b[:, 1:].sum(dim=0)}


CODE = """
def forward(self, x, scale = 2.0):
    p = self.p
    add = x + p;  x = p = None
    lin = self.lin(add);  add = None
    relu = torch.relu(lin);  lin = None
    seq_0 = getattr(self.seq, "0")(relu);  relu = None
    seq_1 = getattr(self.seq, "1")(seq_0);  seq_0 = None
    split = torch.functional.split(seq_1, 1, dim = 0);  seq_1 = None
    getitem = split[0]
    getitem_1 = split[1];  split = None
    dropout = torch.nn.functional.dropout(getitem, p = 0.1, training = False, inplace = False);  getitem = None
    mul = dropout * scale;  dropout = scale = None
    getitem_2 = getitem_1[(slice(None, None, None), slice(1, None, None))];  getitem_1 = None
    sum_1 = getitem_2.sum(dim = 0);  getitem_2 = None
    return (mul, {'b': sum_1})
"""  # noqa: E501


def traced_net() -> fx.GraphModule:
    class Plain(Net):
        def forward(self, x, scale=2.0):  # type: ignore[no-untyped-def]
            return Net.forward(self, x, scale)

    return fx.symbolic_trace(Plain())


def test_code_is_pytorchs() -> None:
    assert traced_net().code.strip() == CODE.strip()


def test_same_results() -> None:
    traced = traced_net()
    x = torch.ones(2, 4)
    again = pickle.loads(pickle.dumps(traced))
    for other in (copy.deepcopy(traced), again):
        assert other.code == traced.code
        assert torch.equal(other(x)[0], traced(x)[0])
    assert torch.equal(fx.Interpreter(traced).run(x)[0], traced(x)[0])
    traced.graph.lint()


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda x: 1 if x else 2, ValueError, "symbolically traced variables cannot be used"),
        (lambda x: [y for y in x], ValueError, "Proxy object cannot be iterated"),  # noqa: C416
        (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing"),
        (lambda x: {x: 1}, RuntimeError, "Keys for dictionaries used as an argument"),
        (lambda x: object(), NotImplementedError, "argument of type: <class 'object'>"),
    ],
)
def test_what_cannot_be_traced(fn: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        fx.symbolic_trace(fn)


def test_concrete_args() -> None:
    traced = fx.symbolic_trace(lambda x, b=False: x + 1 if b else x * 2, concrete_args={"b": True})
    assert traced(torch.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="b has been specialized to have value True"):
        traced(torch.ones(1), False)


def test_nodes_in_use_are_not_erased() -> None:
    graph = fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
    with pytest.raises(RuntimeError, match="Tried to erase Node relu but it still had 1 users"):
        graph.erase_node(list(graph.nodes)[1])


def test_tracing_is_undone() -> None:
    call, read = nn.Module.__call__, nn.Module.__getattr__
    traced_net()
    with pytest.raises(ValueError):
        fx.symbolic_trace(lambda x: bool(x))
    assert nn.Module.__call__ is call and nn.Module.__getattr__ is read


def test_replaced_pattern() -> None:
    traced = fx.symbolic_trace(lambda x: torch.relu(x) + torch.relu(x * 2))
    found = fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.tanh(x))
    assert len(found) == 2
    assert "relu" not in traced.code
    assert traced(torch.zeros(2)).tolist() == [0, 0]


WRAPPED = """
def twice(x):
    return x + x

fx.wrap("len")
fx.wrap("twice")
fx.wrap("twice")
traced = fx.symbolic_trace(lambda x: twice(x) + len(x))
"""


def test_a_function_wrapped_twice_is_recorded_once() -> None:
    space: dict[str, Any] = {"fx": fx}
    try:
        exec(WRAPPED, space)
        targets = [node.target for node in space["traced"].graph.nodes]
        assert targets[1:3] == [space["twice"], len]
        assert space["traced"](torch.ones(3)).tolist() == [5, 5, 5]
        assert "len" not in space  # tracing lends the module a function of that name meanwhile
        del space["twice"]
        with pytest.raises(KeyError, match="twice"):
            fx.symbolic_trace(lambda x: x)
    finally:  # what is wrapped stays so: a later trace would miss the function
        space["twice"] = len
