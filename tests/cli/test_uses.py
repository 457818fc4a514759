"""What a program uses of torch is found by reading it."""

from __future__ import annotations

import pytest

from rushlight.cli.uses import uses


def names(source: str, certain: bool = True) -> list[str]:
    return [use.name for use in uses(source) if use.certain is certain]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.ones", ["torch.ones"]),
        ("import torch as t\nt.nn.Linear", ["torch.nn.Linear"]),
        ("import torch.nn as nn\nnn.Linear", ["torch.nn", "torch.nn.Linear"]),
        ("import torch.nn\ntorch.ones", ["torch.nn", "torch.ones"]),
        ("from torch import ones as o\no(2)", ["torch.ones"]),
        (
            "from torch.nn import functional as F\nF.relu",
            ["torch.nn.functional", "torch.nn.functional.relu"],
        ),
        ("from torch.nn import *", ["torch.nn"]),
        ("import rushlight as torch\ntorch.ones", ["torch.ones"]),
        ("from rushlight import compat, nn", ["torch.nn"]),
        ("import torch\nF = torch.nn.functional\nF.x", ["torch.nn.functional"] * 1
         + ["torch.nn.functional.x"]),
        ("import numpy as torch\ntorch.ones", []),
        ("from .torch import ones", []),
        ("import torch\ndef f(torch):\n    torch.x", []),
        ("import torch\ntorch = 3\ntorch.x", []),
    ],
)  # fmt: skip
def test_names(source: str, expected: list[str]) -> None:
    assert names(source) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "torch.ones(2)", "(1 + torch.ones(2))", "(-x)", "x[0]", "x.sum()", "x.T", "F.relu(x)",
        "x.view(2).grad", "a", "b", "c",
    ],
)  # fmt: skip
def test_methods_of_tensors(expression: str) -> None:
    source = (
        "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n"
        "x = torch.ones(2)\nb: Tensor = 0\nc, d = x * 2, 3\n"
        f"def f(a: Tensor):\n    return {expression}.speak()\n"
    )
    assert "torch.Tensor.speak" in names(source)


@pytest.mark.parametrize(
    "expression", ["y", "x.item()", "torch.manual_seed(0)", "torch.nn.Linear(1, 1)", "d", "f()"]
)
def test_methods_of_other_things(expression: str) -> None:
    source = f"import torch\nx = torch.ones(2)\nx2 = x\nd = 1\n{expression}.speak()\n"
    assert "torch.Tensor.speak" not in names(source)
    assert "torch.Tensor.speak" in names(source, certain=False)


def test_functions_may_use_what_is_assigned_further_down() -> None:
    assert "torch.Tensor.speak" in names(
        "import torch\ndef f():\n    x.speak()\nx = torch.ones(2)\nf()\n"
    )


@pytest.mark.parametrize(
    ("source", "guarded"),
    [
        ("try:\n    torch.x\nexcept AttributeError:\n    pass", True),
        ("try:\n    torch.x\nexcept (ValueError, ImportError):\n    pass", True),
        ("try:\n    torch.x\nexcept:\n    pass", True),
        ("try:\n    torch.x\nexcept ValueError:\n    pass", False),
        ("try:\n    1\nexcept AttributeError:\n    torch.x", False),
        ("if hasattr(torch, 'x'):\n    torch.x", True),
        ("if torch:\n    torch.x", False),
    ],
)
def test_guards(source: str, guarded: bool) -> None:
    found = [use for use in uses(f"import torch\n{source}\n") if use.name == "torch.x"]
    assert [use.guarded for use in found] == [guarded]


def test_lines_and_columns() -> None:
    (use,) = uses("import torch\n\nprint(torch.ones(2))\n")[:1]
    assert (use.line, use.column) == (3, 6)


def test_what_is_no_python() -> None:
    with pytest.raises(SyntaxError):
        uses("y = = 2")
