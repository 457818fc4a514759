"""The public face: `dir`, `__all__` and star imports show PyTorch's names and nothing of ours."""

from __future__ import annotations

import importlib.util
import pkgutil
import subprocess
import sys
import warnings
from types import ModuleType
from typing import Any

import pytest

import rushlight as torch
from tests.harness import stored

# By module of PyTorch: `shown`, its own names that `dir` shows, and `star`, what `import *` gives.
FACES: dict[str, dict[str, list[str]]] = stored("repo/faces")


def ours(title: str) -> Any:
    return importlib.import_module("rushlight" + title.removeprefix("torch"))


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


@pytest.mark.parametrize("title", FACES)
def test_dir_shows_what_pytorch_has(title: str) -> None:
    shown = {name for name in dir(ours(title)) if not is_dunder(name)}
    if title == "torch.ops":  # besides, the namespaces of users' operators
        shown -= set(torch.ops.namespaces)
    assert sorted(shown - set(FACES[title]["shown"])) == []


@pytest.mark.parametrize("title", [title for title in FACES if title != "torch.ops"])
def test_star_imports_give_what_pytorchs_give(title: str) -> None:
    module = ours(title)
    listed = module.__all__
    assert len(listed) == len(set(listed))
    assert sorted(set(listed) - set(FACES[title]["star"])) == []
    assert [name for name in listed if not hasattr(module, name)] == []
    assert set(listed) <= set(dir(module))


def test_a_star_import_of_the_package_is_complete() -> None:
    expected = {name for name in FACES["torch"]["star"] if hasattr(torch, name)}
    assert set(torch.__all__) == expected
    space: dict[str, Any] = {}
    exec("from rushlight import *", space)
    assert set(space) - {"__builtins__"} == expected


def test_all_that_dir_shows_is_there() -> None:
    for title in FACES:
        module = ours(title)
        assert [name for name in dir(module) if not hasattr(module, name)] == [], title


def test_no_module_of_ours_is_shown_where_pytorch_has_none() -> None:
    modules = {name for name in dir(torch) if isinstance(getattr(torch, name), ModuleType)}
    assert modules - {"__config__"} <= set(FACES["torch"]["shown"])


def test_inplace_functions_are_methods_where_pytorch_has_only_those() -> None:
    for name in ("add_", "mul_", "eq_", "lerp_", "tril_", "logical_not_"):
        assert not hasattr(torch, name) and hasattr(torch.Tensor, name)
    for name in ("sin_", "clamp_", "relu_", "zero_", "xlogy_"):
        assert hasattr(torch, name) and hasattr(torch.Tensor, name)


def test_names_are_imported_when_first_used() -> None:
    code = """
import sys
import rushlight as torch
for name in ("nn", "optim", "library", "profiler", "testing", "serialization"):
    assert "rushlight." + name not in sys.modules, name
assert torch.optim.lr_scheduler.StepLR
import rushlight.serialization
assert torch.load is rushlight.serialization.load
assert "load" in vars(torch)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# --- `from torch import jagged` -------------------------------------------------------------------
MISSING = [("rushlight", "jagged"), ("rushlight.func", "functionalize"),
           ("rushlight.utils.data", "IterDataPipe"), ("rushlight.cuda", "MemPool")]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), MISSING)
def test_importing_a_missing_name_says_what_is_missing(module: str, name: str) -> None:
    home = "torch" + module.removeprefix("rushlight")
    with pytest.raises(ImportError) as error:
        exec(f"from {module} import {name}")
    first, second, third = str(error.value).split("\n")
    assert first == f"cannot import name {name!r} from {home!r}"
    assert second.startswith(f"PyTorch has {home}.{name}, rushlight has not. Nearest to it: ")
    assert third == "docs/missing.md lists all that is missing."


def test_a_missing_name_is_an_attribute_error_elsewhere() -> None:
    assert not hasattr(torch.nn, "NoSuch") and getattr(torch, "jagged", 3) == 3
    with pytest.raises(ImportError, match="cannot import name 'no_such' from 'rushlight.nn'"):
        exec("from rushlight.nn import no_such")


if importlib.util.find_spec("torch"):

    def test_stored_faces_are_pytorchs() -> None:
        found = []
        for module in pkgutil.walk_packages(torch.__path__, "rushlight."):
            title = "torch" + module.name.removeprefix("rushlight")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # PyTorch's own, of its old modules
                    theirs = importlib.import_module(title)
            except ImportError:
                continue
            found.append((title, theirs))
        # all are imported by now: a package shows its modules when they are
        for title, theirs in found:
            assert set(FACES[title]["shown"]) <= {*dir(theirs), *vars(theirs).get("__all__", ())}
        assert ["torch", *(title for title, _ in found)] == list(FACES)
