"""What a type checker sees: the generated stubs are current, say what the modules have, and give
the lines of ordinary programs their true types. Pyright reads the same file in `make types`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import is_function

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "rushlight"
TYPICAL = ROOT / "tests" / "typing" / "typical.py"

WRONG = """
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

x = torch.ones(3)
x.no_such_method()
torch.no_such_function(3)
torch.exp("text")
nn.NoSuchModule()
F.no_such_loss(x)
torch.optim.NoSuch
torch.sort(x).no_such_field
0.1 * x.grad
torch.sum(x, keepdim="yes")


@torch.no_grad()
def decorated(n: int) -> float:
    return float(n)


decorated("text")
"""
FOUND = """
"Tensor" has no attribute "no_such_method"
Module has no attribute "no_such_function"
Argument 1 to "exp" has incompatible type "str"; expected "Tensor"
Module has no attribute "NoSuchModule"
Module has no attribute "no_such_loss"
Module has no attribute "NoSuch"
"sort" has no attribute "no_such_field"
Unsupported operand types for * ("float" and "None")
Argument "keepdim" to "sum" has incompatible type "str"; expected "bool"
Argument 1 to "decorated" has incompatible type "str"; expected "int"
"""
# What checkers see, by the module: all of it, where a stub is generated; see also `typical.py`.
STUBS = {
    "_functions.pyi": "rushlight", "linalg.pyi": "rushlight.linalg",
    "special.pyi": "rushlight.special", "nn/functional.pyi": "rushlight.nn.functional",
    "return_types.pyi": "rushlight.return_types",
}  # fmt: skip
MODULES = (
    "rushlight", "rushlight.autograd", "rushlight.autograd.functional",
    "rushlight.autograd.forward_ad", "rushlight.autograd.graph", "rushlight.func",
    "rushlight.linalg", "rushlight.special", "rushlight.nn", "rushlight.nn.functional",
    "rushlight.nn.init", "rushlight.nn.utils", "rushlight.optim", "rushlight.optim.lr_scheduler",
    "rushlight.return_types", "rushlight.random", "rushlight.testing", "rushlight.utils.checkpoint",
)  # fmt: skip


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "tools" / "make_stubs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    return done.stdout + done.stderr


def test_stubs_are_current() -> None:
    for name, text in tool().stubs().items():
        found = (SOURCE / name).read_text("utf-8")
        assert found == text, f"{name} is not current: run `python tools/make_stubs.py`"


def test_typical_lines_have_their_types() -> None:
    assert TYPICAL.read_text("utf-8").count("assert_type(") > 100
    assert "Success" in check(TYPICAL)


def test_mistakes_are_found(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(WRONG, "utf-8")
    found = check(path)
    for line in FOUND.strip().splitlines():
        assert line in found, found


def public(space: Any) -> list[str]:
    """The public names of a module or class, less what a module has imported for its own use."""
    names = [name for name in getattr(space, "__all__", dir(space)) if not name.startswith("_")]
    homes = [getattr(getattr(space, name), "__module__", None) or "rushlight" for name in names]
    foreign = ("typing", "collections", "operator", "numpy")
    return [
        name
        for name, home in zip(names, homes)
        if not home.startswith(foreign)
        and not inspect.ismodule(getattr(space, name))
        and name != "annotations"
    ]


def test_checkers_see_every_name(tmp_path: Path) -> None:
    """Every public name of the modules and of tensors is one that mypy knows."""
    lines = ["from typing import Any"]
    for name in MODULES:
        lines.append(f"import {name}")
        module = importlib.import_module(name)
        lines += [f"{name}.{n}" for n in public(module)]
    lines.append("def look(x: rushlight.Tensor) -> None:")
    lines += [f"    x.{n}" for n in public(torch.Tensor) if n.isidentifier()]
    path = tmp_path / "names.py"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    unknown = [line for line in check(path).splitlines() if "has no attribute" in line]
    assert not unknown, "\n".join(unknown)


def functions_in(tree: ast.AST) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def names_of(fn: ast.FunctionDef) -> list[str]:
    a = fn.args
    rest = [a.vararg] if a.vararg else []
    more = [a.kwarg] if a.kwarg else []
    return [p.arg for p in [*a.posonlyargs, *a.args, *rest, *a.kwonlyargs, *more]]


# Arguments that the stub gives a name, and that the function takes by `*args` or `**named`.
BY_FORM = {
    "arange": {"start", "end", "step"}, "einsum": {"equation", "operands"},
    "randint": {"low", "high", "size"}, "where": {"condition", "input", "other"},
    "to": {"device", "dtype", "other", "non_blocking", "copy", "memory_format"},
}  # fmt: skip


def compare(name: str, forms: list[ast.FunctionDef], fn: Any, method: bool) -> None:
    have = list(inspect.signature(fn).parameters)
    if len(forms) == 1 and name not in BY_FORM:
        said = names_of(forms[0])
        assert said[method:] == have[method:], name
    for form in forms:
        strange = set(names_of(form)) - {"self"} - set(have) - BY_FORM.get(name, set())
        assert not strange, (name, strange)


@pytest.mark.parametrize("stub", STUBS)
def test_stubs_say_what_modules_have(stub: str) -> None:
    module = importlib.import_module(STUBS[stub])
    tree = ast.parse((SOURCE / stub).read_text("utf-8"))
    for name, forms in functions_in(tree).items():
        compare(name, forms, getattr(module, name), False)
    classes = [n.name for n in tree.body if isinstance(n, ast.ClassDef)]
    variables = [
        n.target.id
        for n in tree.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    ]
    for name in [*classes, *variables]:
        assert name.startswith("_") or hasattr(module, name), name


def test_the_stub_of_methods_says_what_tensors_have() -> None:
    tree = ast.parse((SOURCE / "_methods.pyi").read_text("utf-8"))
    (body,) = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    for name, forms in functions_in(body).items():
        found = inspect.getattr_static(torch.Tensor, name)
        if is_function(found) and not name.startswith("__"):
            compare(name, forms, found, True)
