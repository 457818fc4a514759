"""`help` of every public function: types in the signature, and a line for each argument."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pydoc
import subprocess
import sys
from typing import Any

import rushlight as torch
from rushlight.ops.argument_words import words
from rushlight.ops.registry import functions, is_function, methods, namespaces

MODULES = (
    "autograd", "autograd.functional", "func", "nn.init", "nn.utils", "utils.checkpoint", "testing",
)  # fmt: skip


def everything() -> dict[str, Any]:
    """The public functions, by the name that users write."""
    found: dict[str, Any] = {f"torch.{name}": fn for name, fn in functions.items()}
    found |= {f"Tensor.{name}": fn for name, fn in methods.items() if name[0] != "_"}
    for space, table in namespaces.items():
        importlib.import_module(f"rushlight.{space}")
        found |= {f"{space}.{name}": fn for name, fn in table.items()}
    for space in MODULES:
        module = importlib.import_module(f"rushlight.{space}")
        for name in getattr(module, "__all__", None) or dir(module):
            fn = getattr(module, name)
            if is_function(fn) and name[0] != "_" and "__signature__" in vars(fn):
                found[f"{space}.{name}"] = fn
    return found


ALL = everything()


def told(fn: Any) -> dict[str, str]:
    """What `Args:` says of each argument."""
    doc = inspect.getdoc(fn) or ""
    _, _, part = doc.partition("Args:\n")
    part, _, _ = part.partition("\n\n")
    said: dict[str, str] = {}
    for line in part.splitlines():
        if line.startswith("    ") and line[4] != " ":
            name, _, words = line.strip().partition(": ")
            said[name] = words
    return said


def test_every_function_tells_its_arguments() -> None:
    assert len(ALL) > 1000
    lacking = []
    for name, fn in ALL.items():
        if not is_function(fn):
            continue
        signature = inspect.signature(fn)
        parameters = signature.parameters
        said = told(fn)
        for p in parameters.values():
            if len(said.get(p.name, "")) < 5:
                lacking.append(f"{name}: nothing of {p.name}")
            if p.annotation is p.empty or (p.annotation == "Any" and free_of(p.name) != "Any"):
                lacking.append(f"{name}: no type of {p.name}")
        if set(said) - set(parameters):
            lacking.append(f"{name}: tells of {set(said) - set(parameters)}")
        if signature.return_annotation is signature.empty:
            lacking.append(f"{name}: no result")
    assert not lacking, "\n".join(lacking)


def free_of(name: str) -> str:
    """The type of a name where no annotation says it: Any for what may be anything."""
    return words()[""].get(name, ("", ""))[0]


def test_the_table_has_nothing_to_spare() -> None:
    found = [fn for fn in [*ALL.values(), *methods.values()] if callable(fn)]
    assert set(words()[""]) <= {p for fn in found for p in inspect.signature(fn).parameters}
    for name in set(words()) - {""}:
        for argument in words()[name]:
            homes = [key for key in ALL if key.rpartition(".")[2] in (name, name + "_")] or [
                f"linalg.{name.removeprefix('linalg_')}"
            ]
            assert any(argument in inspect.signature(ALL[key]).parameters for key in homes), name


def test_help_of_sum() -> None:
    text = pydoc.plain(pydoc.render_doc(torch.sum))
    assert (
        "sum(input: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False, *, "
        "dtype: dtype | None = None, out: Tensor | None = None, axis: int | None = None, "
        "keepdims: bool | None = None) -> Tensor"
    ) in text.replace("\n    ", " ").replace("( ", "(")
    assert "        dim: the dimension or dimensions to reduce; all of them if None.\n" in text
    assert text.index("Args:") < text.index(">>>")


def test_arguments_are_told_at_the_first_look() -> None:
    """Each line is the first that a process asks of the function."""
    lines = (
        "torch.sum.__doc__", "torch.linalg.svd.__doc__", "torch.nn.functional.relu.__doc__",
        "pydoc.render_doc(torch.Tensor.cumsum)", "pydoc.render_doc(torch.ones(2).add_)",
        "torch.tensor.__doc__", "torch.autograd.grad.__doc__", "torch.func.vmap.__doc__",
    )  # fmt: skip
    program = "import pydoc\nimport rushlight as torch\n"
    program += "".join(f"print('Args:\\n' in {line})\n" for line in lines)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n" * len(lines), done


def test_particular_words_are_those_of_the_docstring() -> None:
    assert told(torch.kthvalue)["k"] == "which one: 1 is the smallest."
    assert told(torch.Tensor.mvlgamma)["p"] == "the dimension of the multivariate function."
    inspect.signature(torch.Tensor.mvlgamma_).parameters
    assert told(torch.Tensor.mvlgamma_) == {
        key: words for key, words in told(torch.mvlgamma).items() if key != "out"
    }


def test_a_meaning_may_take_two_lines() -> None:
    assert inspect.signature(torch.gradient).parameters
    assert told(torch.gradient)["spacing"] == (
        "how far apart the samples stand: a number, one for each dimension, or tensors with their "
        "places."
    )


def test_nothing_is_told_before_someone_looks() -> None:
    """Docstrings and signatures are not made while the package is imported."""
    program = (
        "import rushlight as torch\n"
        "from rushlight.ops.registry import functions, methods\n"
        "from rushlight.ops.described import _described\n"
        "made = [f.__name__ for f in _described & {*functions.values(), *methods.values()}]\n"
        "print(made, 'sum' in vars(torch))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[] False\n", done.stderr


def test_a_signature_is_one_like_others() -> None:
    signature = inspect.signature(torch.cumsum)
    assert str(signature) == (
        "(input: Tensor, dim: int, *, dtype: dtype | None = None, out: Tensor | None = None)"
        " -> Tensor"
    )
    assert signature.bind(1, dim=2).arguments == {"input": 1, "dim": 2}
    assert list(signature.replace(parameters=[]).parameters) == []
    assert pickle.loads(pickle.dumps(signature)) == signature
    assert "sum" in dir(torch) and "sum" in torch.__all__
