"""Write src/rushlight/ops/signatures.py: what PyTorch lists as the signatures of a function.

    python tools/make_signatures.py            (needs PyTorch 2.13 beside rushlight)

PyTorch lists them when a call fits none; so every public function of rushlight's table that PyTorch
has is called with more arguments than any takes. What a method lists follows from the function in
most cases (`forms.method_forms`); the others are written out.
"""

from __future__ import annotations

import types
import warnings
from pathlib import Path
from typing import Any

import torch

from rushlight.ops import forms
from rushlight.ops.registry import functions, methods, namespaces

TARGET = Path(__file__).resolve().parents[1] / "src/rushlight/ops/signatures.py"
HEAD = '''"""The signatures that PyTorch 2.13 lists where a call fits none of them.

Written by tools/make_signatures.py. A line: the names of functions that have the same signatures
(`.name`: the method, where it is not what `forms.method_forms` says), then the signatures. A `...`
stands for `forms.FACTORY`. Read when a call has failed, by `ops.forms`.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Final

# Functions that PyTorch has written in Python: what they are not given is told in Python's words.
IN_PYTHON: Final = frozenset(
    """
'''


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
    row = "   "
    for name in python:
        if len(row) + 1 + len(name) > 98:
            lines.append(row + "\n")
            row = "   "
        row += " " + name
    lines.append(row + '\n    """.split()\n)\n\nLISTED: Final = """\n')
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, listed in found.items():
        groups.setdefault(tuple(listed), []).append(name)
    for listed_as, names in sorted(groups.items(), key=lambda item: item[1]):
        lines.append(" ".join(names) + "\n")
        lines += [f" {form.replace(forms.FACTORY, '...')}\n" for form in listed_as]
    return "".join(lines) + '"""\n'


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
    print(f"{TARGET.stat().st_size} bytes")
