"""Writes what PyTorch has and rushlight lacks: `docs/missing.md` and `rushlight/missing.txt`.

    python tools/make_missing.py            after names came or went
    python tools/make_missing.py --check    say whether what is written is true; status 1 if not

PyTorch's names are those stored in tests/reference/repo/names.json.gz: PyTorch is not needed.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import rushlight
from rushlight import ops
from rushlight.missing import HINTS
from rushlight.ops.registry import methods

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests" / "reference" / "repo" / "names.json.gz"
PAGE = ROOT / "docs" / "missing.md"
NAMES = ROOT / "src" / "rushlight" / "missing.txt"

AT_ONCE = set(methods)
ops.fill_rest()
LATE = sorted(methods.keys() - AT_ONCE)


def home_of(title: str) -> Any:
    if title == "torch.Tensor":
        return rushlight.Tensor
    return importlib.import_module("rushlight" + title.removeprefix("torch"))


def missing() -> dict[str, list[str]]:
    """PyTorch's public names that rushlight has not, by module."""
    stored: dict[str, list[str]] = json.loads(gzip.decompress(STORED.read_bytes()))
    found = {}
    for title, names in stored.items():
        home = home_of(title)
        lost = [name for name in names if not hasattr(home, name)]
        if lost:
            found[title] = lost
    return found


def page(found: dict[str, list[str]]) -> str:
    stored: dict[str, list[str]] = json.loads(gzip.decompress(STORED.read_bytes()))
    total = sum(map(len, stored.values()))
    lost = sum(map(len, found.values()))
    opening = (
        f"Of {total} public names that PyTorch 2.13 has in {len(stored)} modules, {total - lost} "
        "are here. Asking for another raises an AttributeError, and importing it an ImportError, "
        "that names what comes nearest. "
        "`python tools/make_missing.py` writes this page; a test says when it is out of date. "
        "What is there and behaves otherwise stands in [Differences](differences.md)."
    )
    lines = ["# What PyTorch has and rushlight lacks", "", *textwrap.wrap(opening, 99)]
    for title, names in found.items():
        lines += ["", f"## `{title}`", ""]
        lines += [f"{len(names)} of {len(stored[title])} names are missing:", ""]
        text = ", ".join(f"`{name}`" for name in names) + "."
        lines += textwrap.wrap(text, 99, break_long_words=False, break_on_hyphens=False)
        hints = [(n, HINTS[f"{title}.{n}"]) for n in names if f"{title}.{n}" in HINTS]
        if hints:
            lines += ["", "| instead of | write |", "| --- | --- |"]
            lines += [f"| `{name}` | {hint} |" for name, hint in hints]
    return "\n".join(lines) + "\n"


def table(found: dict[str, list[str]]) -> str:
    lines = ["# PyTorch's public names that rushlight lacks: written by tools/make_missing.py."]
    for title, names in found.items():
        lines += block(title, names)
    # methods of Tensor in files that are imported late
    return "\n".join([*lines, *block("later", LATE)]) + "\n"


def block(title: str, names: list[str]) -> list[str]:
    text = " ".join(names)
    return [title, *textwrap.wrap(text, 99, initial_indent=" ", subsequent_indent=" ")]


def main(arguments: list[str]) -> int:
    found = missing()
    made = {PAGE: page(found), NAMES: table(found)}
    if "--check" in arguments:
        stale = [path.name for path, text in made.items() if path.read_text("utf-8") != text]
        if stale:
            print(f"out of date: {', '.join(stale)}; run `python tools/make_missing.py`")
        return bool(stale)
    for path, text in made.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
