"""`torch.jit` hands back what it is given, and says why it cannot save or load."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch


def double(x: Any) -> Any:
    return 2 * x


def test_what_is_given_comes_back() -> None:
    net = torch.nn.Linear(2, 1)
    jit = torch.jit
    same = [
        jit.script, jit.script_method, jit.script_if_tracing, jit.export, jit.unused, jit.interface,
        jit.freeze, jit.optimize_for_inference, jit.ignore, jit.ignore(drop=True), jit.ignore(),
    ]  # fmt: skip
    for fn in same:
        assert fn(double) is double and fn(net) is net
    assert jit.trace(net, torch.ones(1, 2)) is net
    assert jit.trace(torch.add, (torch.ones(1), torch.ones(1))) is torch.add
    assert jit.trace_module(net, {"forward": torch.ones(1, 2)}) is net
    with pytest.raises(RuntimeError):
        jit.trace(net, torch.ones(1, 5))


def test_nothing_is_a_script() -> None:
    net = torch.jit.script(torch.nn.Linear(2, 1))
    assert not isinstance(net, torch.jit.ScriptModule)
    assert not isinstance(torch.jit.script(double), torch.jit.ScriptFunction)
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing()


def test_a_script_module_is_a_module() -> None:
    class Net(torch.jit.ScriptModule):
        __constants__ = ("n",)

        def __init__(self) -> None:
            super().__init__()
            self.n: torch.jit.Final[int] = 3  # type: ignore[name-defined]
            self.inner = torch.nn.Linear(1, 1)

        @torch.jit.script_method  # type: ignore[untyped-decorator]
        def forward(self, x: Any) -> Any:
            return self.inner(x) * self.n

    assert Net()(torch.ones(2, 1)).shape == (2, 1) and len(list(Net().parameters())) == 2


def test_calls_and_values() -> None:
    future = torch.jit.fork(double, torch.tensor(2))
    assert torch.jit.wait(future).item() == 4
    assert torch.jit.annotate(list[int], []) == []
    assert torch.jit.Attribute(3, int).value == 3
    assert torch.jit.CompilationUnit("def f(x): return torch.sin(x)").f(torch.zeros(1)).item() == 0


@pytest.mark.parametrize(
    ("value", "kind", "is_one"),
    [
        (3, int, True), (3, str, False), ([1], list[int], True), (["a"], list[int], False),
        ({"a": 1}, dict[str, int], True), ({1: 1}, dict[str, int], False),
        ((1, "a"), tuple[int, str], True), ((1,), tuple[int, str], False),
        (None, int | None, True), (1, int | str, True), (1.5, int | str, False),
        ([1], (str, list[int]), True), (None, None, True),
    ],
)  # fmt: skip
def test_isinstance(value: Any, kind: Any, is_one: bool) -> None:
    assert torch.jit.isinstance(value, kind) is is_one


def test_programs_are_neither_saved_nor_loaded() -> None:
    with pytest.raises(RuntimeError, match="no TorchScript program to save; use torch.save"):
        torch.jit.save(double, "file")
    with pytest.raises(RuntimeError, match="no TorchScript program to load; use torch.load"):
        torch.jit.load("file")


@pytest.mark.parametrize("text", ["mean", "import os", "def f(x): return x\nmean", "def f(x)"])
def test_a_text_of_functions_has_nothing_else(text: str) -> None:
    with pytest.raises(RuntimeError, match="^expected "):
        torch.jit.CompilationUnit(text)
