"""`%%grad` and `%load_ext rushlight`, in IPython's own shell."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.notebook.grad_magic import names_in, result_of
from tests.running import python

pytest.importorskip("IPython")

SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def run(cell):
    result = shell.run_cell(cell)
    return result.result if result.success else result.error_in_exec
def kinds(value):
    return sorted(shell.display_formatter.format(value)[0])
import rushlight as torch
import sys
x = torch.ones(2)
assert kinds(x) == ["text/plain"], kinds(x)
assert "rushlight.notebook" not in sys.modules
"""


def ran(code: str) -> str:
    status, out, errors = python("-W", "ignore", "-c", SESSION + code)
    assert (status, errors) == (0, ""), errors
    return out


def test_loading_and_unloading() -> None:
    ran(
        """
run("%load_ext rushlight")
net = torch.nn.Linear(2, 1)
assert kinds(x) == kinds(net) == ["text/html", "text/plain"], kinds(x)
assert kinds(torch.nn.Parameter(x)) == ["text/html", "text/plain"]
assert kinds(net(x).grad_fn) == ["text/html", "text/plain"]
run("%reload_ext rushlight")
run("%unload_ext rushlight")
assert kinds(x) == kinds(net) == kinds(net(x).grad_fn) == ["text/plain"]
assert "grad" not in shell.magics_manager.magics["cell"]
"""
    )


def test_grad() -> None:
    ran(
        """
run("%load_ext rushlight")
run("import rushlight as torch\\nw = torch.tensor([1., 2.], requires_grad=True)")
def grad(line, cell):
    return shell.run_cell_magic("grad", line, cell)
report = grad("", "h = w * 3\\nloss = (h * h).sum()")
assert report.name == "loss" and list(report.tensors) == ["w", "h"], report
assert report.gradients["w"].tolist() == [18.0, 36.0]
assert shell.user_ns["w"].grad is None
assert grad("h", "h = w * 3\\nloss = (h * h).sum()").name == "h"
assert grad("", "w.exp().sum()").name == "result"
assert grad("", "1 / 0") is None
assert isinstance(run("%%grad\\n1"), ValueError)
assert isinstance(run("%%grad nothing\\n1"), ValueError)
"""
    )


def test_names_in_a_cell() -> None:
    assert names_in("%time 1\nfor i in range(3):\n    y = x * w\n!ls") == [
        "i", "range", "y", "x", "w",
    ]  # fmt: skip


def test_which_tensor_is_the_result() -> None:
    w: Any = torch.ones(2, requires_grad=True)
    a = w * 2
    b = a * 3
    tensors = {"w": w, "b": b, "a": a}
    assert result_of("", None, tensors, tensors)[0] == "b"
    assert result_of("a", None, tensors, tensors) == ("a", a)
    assert result_of("", a, tensors, tensors) == ("a", a)
    with pytest.raises(ValueError, match="nothing in this cell has a gradient"):
        result_of("", None, {"w": w}, {})
    with pytest.raises(ValueError, match="no tensor that requires a gradient"):
        result_of("x", None, {}, {"x": 3})
