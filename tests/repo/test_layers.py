"""The layers of the package: imports point to the left, and few files may name an array library.

The test reads the sources with `ast`, so an import inside a function or under TYPE_CHECKING counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import ROOT

SOURCES = ROOT / "src" / "rushlight"

# Each layer may import itself and those above it in this list.
LAYERS = [
    "_version torch_version __config__ tables importing missing native locks dtypes dtypes_unused "
    "errors dispatch_keys return_types size trees random absent stand_ins symbolic",
    "arrays",
    "core",
    "ops",
    "tensor tensor_memory tensor_resize tensor_legacy tensor_types storage storage_types "
    "settings linalg special printing types version _methods _functions overrides _C fft",
    "autograd",
    "func nn optim data serialization _tensor _utils testing utils library profiler functorch "
    "accelerator amp backends compiler cpu cuda _dynamo distributions export futures hub "
    "_inductor jit _jit_internal _tensor_str _ops _guards _subclasses masked "
    "monitor mps mtia multiprocessing onnx package quasirandom signal sparse "
    "xpu _vmap_internals distributed",
    "codegen compile viz explaining reasons",
    "compat cli __main__ functional fx notebook",
]
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names.split()}

ARRAY_LIBRARIES = {"numpy", "cupy", "cupyx"}
MAY_NAME_THEM = {"arrays", "codegen", "core", "dtypes", "random", "compile", "compat"}
# Slow to import, or not always there: only inside a function, or under TYPE_CHECKING.
LAZY = {"scipy", "cupy", "cupyx", "mpi4py", "igraph", "matplotlib"}


def module_of(path: Path) -> str:
    parts = ("rushlight", *path.relative_to(SOURCES).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    place = SOURCES.joinpath(*name.split(".")[1:])
    return place.is_dir() or place.with_suffix(".py").exists()


def imports(source: str, module: str, package: bool) -> Iterator[tuple[int, str, bool]]:
    """Every module that a source imports: line, absolute name, whether at import time."""
    tree = ast.parse(source)
    lazily = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.If)
        and not (isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test))
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, id(node) not in lazily
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + package]
                base = ".".join([*above, base]).rstrip(".")
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                name = whole if base.startswith("rushlight") and is_module(whole) else base
                yield node.lineno, name, id(node) not in lazily


def faults(source: str, module: str, package: bool = False) -> list[str]:
    """What is wrong with the imports of one file, a line each."""
    if module == "rushlight":
        return []  # the package's front door gathers everything
    mine = module.split(".")[1]
    if mine not in LAYER:
        return [f"{module}: stands in no layer; give it one in tests/repo/test_layers.py"]
    found = []
    for line, name, now in imports(source, module, package):
        top, *rest = name.split(".")
        if top == "rushlight":
            if not rest:
                # `import rushlight` reaches everything: only the outermost layer may.
                level = len(LAYERS) - 1
            elif rest[0] in LAYER:
                level = LAYER[rest[0]]
            else:
                found.append(f"{module}:{line}: imports {name}, which stands in no layer")
                continue
            if level > LAYER[mine]:
                found.append(f"{module}:{line}: {mine} must not import {name}")
        if top in ARRAY_LIBRARIES and mine not in MAY_NAME_THEM:
            found.append(f"{module}:{line}: {mine} must not name {top}; use rushlight.arrays")
        if top in LAZY and now:
            found.append(f"{module}:{line}: import {top} inside the function that needs it")
    return found


def test_every_import_points_to_the_left() -> None:
    files = sorted(SOURCES.rglob("*.py"))
    assert files
    found = [
        fault
        for path in files
        for fault in faults(
            path.read_text("utf-8"), module_of(path), package=path.name == "__init__.py"
        )
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "module", "fault"),
    [
        ("from rushlight.ops import reduce", "rushlight.core.graph", "core must not import"),
        ("def f():\n    from ..ops import x", "rushlight.core.graph", "core must not import"),
        ("from .. import autograd", "rushlight.core.graph", "core must not import"),
        ("import rushlight", "rushlight.ops.reduction.sum", "ops must not import rushlight"),
        ("import numpy as np", "rushlight.ops.reduction.sum", "ops must not name numpy"),
        ("def f():\n    import cupy", "rushlight.nn.modules", "nn must not name cupy"),
        ("from scipy import special", "rushlight.arrays.numpy", "inside the function"),
        ("", "rushlight.novelty", "stands in no layer"),
    ],
)
def test_a_wrong_import_is_found(source: str, module: str, fault: str) -> None:
    (found,) = faults(source, module)
    assert fault in found


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from rushlight.core import graph", "rushlight.ops.reduction.sum"),
        ("from . import engine\nfrom .. import errors", "rushlight.core.graph"),
        ("def f():\n    from scipy import special", "rushlight.arrays.numpy"),
        ("import numpy as np", "rushlight.core.graph"),
        ("from rushlight import anything", "rushlight"),
    ],
)
def test_a_right_import_is_let_through(source: str, module: str) -> None:
    assert faults(source, module) == []
