"""Write src/rushlight/ops/forms.txt: what PyTorch lists as the signatures of a function.

    python tools/make_signatures.py            (needs PyTorch 2.13 beside rushlight)

PyTorch lists them when a call fits none; so every public function of rushlight's table that PyTorch
has is called with more arguments than any takes. What a method lists follows from the function in
most cases (`forms.method_forms`); the others are written out.
"""

from __future__ import annotations

import textwrap
import types
import warnings
from pathlib import Path
from typing import Any

import torch

from rushlight.ops import fill_rest, forms
from rushlight.ops.registry import functions, methods, namespaces

TARGET = Path(__file__).resolve().parents[1] / "src/rushlight/ops/forms.txt"
HEAD = """\
# The signatures that PyTorch 2.13 lists where a call fits none of them: the names of functions that
# have the same ones (`.name`: the method, where it is not what `forms.method_forms` says), then the
# signatures, indented; `...` stands for `forms.FACTORY`. What stands behind `python:` PyTorch has
# written in Python: what it is not given is told in Python's words.
# Written by tools/make_signatures.py, read by `ops.forms` when a call has failed.

"""


def asked(fn: Any, *first: Any) -> list[str]:
    """The signatures in the error of a call with 25 things that are no arguments."""
    try:
        fn(*first, *[object()] * 25)
    except Exception as error:  # whatever else it says, it lists none
        _, found, text = str(error).partition(" arguments - got ")
        if not found:
            return []
        if "but expected one of:\n" in text:
            return [line[3:] for line in text.split("\n") if line.startswith(" * ")]
        return [text.partition(", but expected ")[2] or text.partition(" but expected ")[2]]
    return []


def collected() -> tuple[dict[str, list[str]], list[str]]:
    fill_rest()  # parts of the table wait until they are asked for
    found: dict[str, list[str]] = {}
    python: list[str] = []
    spaces: list[tuple[str, Any, Any]] = [("", torch, functions)]
    spaces += [("linalg_", torch.linalg, namespaces["linalg"])]
    spaces += [("special_", torch.special, namespaces["special"])]
    spaces += [("F.", torch.nn.functional, namespaces["nn.functional"])]
    for prefix, space, table in spaces:
        for name in sorted(table):
            fn = getattr(space, name, None)
            if isinstance(fn, types.FunctionType):
                python.append(prefix + name)
            elif fn is not None and (listed := asked(fn)):
                found[prefix + name] = listed
    x = torch.ones(2, 3)
    for name in sorted(methods):
        fn = getattr(torch.Tensor, name, None)
        if isinstance(fn, types.FunctionType):
            if name not in python and not name.startswith("__"):
                python.append("." + name)
        elif callable(fn) and not name.startswith("__"):
            listed = asked(fn, x)
            if listed != forms.method_forms(name, found):
                found["." + name] = listed
    return found, sorted(python)


def text() -> str:
    """The file's text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, python = collected()
    lines = [HEAD]
    lines += [f"python: {row}\n" for row in textwrap.wrap(" ".join(python), 90)]
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, listed in found.items():
        groups.setdefault(tuple(listed), []).append(name)
    for listed_as, names in sorted(groups.items(), key=lambda item: item[1]):
        lines.append(" ".join(names) + "\n")
        lines += [f" {form.replace(forms.FACTORY, '...')}\n" for form in listed_as]
    return "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
    print(f"{TARGET.stat().st_size} bytes")
