"""The documents tell the truth: their code runs and prints what they show, their commands exist.

In README.md, CONTRIBUTING.md and docs/, the Python blocks of a page are one program. A text block
right behind one is what it prints; if it begins with the name of an error, the block raises that. A
first line `# name.py` names the block's file, so that a page can show messages that name a line.
A block that begins with `@op` quotes an op of the table, and is not run a second time.
Shell blocks hold commands, one a line: of make (the target exists), of pip (the extra exists), and
of rushlight, which are run. Examples in docstrings are run as doctests.

As a program this file runs the blocks of one page, or all doctests, and prints the results as JSON.
It has its own process because torch, in it, is rushlight.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import functools
import importlib
import io
import itertools
import json
import linecache
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rushlight

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PACKAGE = Path(str(rushlight.__file__)).parent
EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text("utf-8")]


@dataclass
class Fence:
    kind: str
    text: str
    behind: bool  # does it stand right behind another fence?


def fences(page: Path) -> list[Fence]:
    found = []
    pattern = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    text, end = page.read_text("utf-8"), -1
    for match in pattern.finditer(text):
        found.append(Fence(match[1], match[2], end >= 0 and not text[end : match.start()].strip()))
        end = match.end()
    return found


def run_blocks(blocks: list[str]) -> list[str]:
    """What each block printed, and the error it raised, in one namespace."""
    space: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for number, text in enumerate(blocks):
        if text.startswith("@op\n"):
            outputs.append(quoted_op(text))
            continue
        named = re.match(r"# (\w+\.py)\n", text)
        name = named[1] if named else f"<block {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(text, name, "exec"), space)
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        outputs.append(out.getvalue())
    return outputs


def quoted_op(text: str) -> str:
    """Nothing, if the classes that a block defines stand in the op table."""
    from rushlight.ops.registry import table

    known = {op.__name__ for op in table.values()}
    quoted = {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    return "".join(f"LookupError: no op {name}\n" for name in sorted(quoted - known))


def run_doctests() -> dict[str, str]:
    """For each module with examples, the report of those that failed."""
    parser, reports = doctest.DocTestParser(), {}
    for path in EXAMPLES:
        parts = ("rushlight", *path.relative_to(PACKAGE).with_suffix("").parts)
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        report = io.StringIO()
        # Docstrings come from the source: compiled modules have none.
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                continue
            text = ast.get_docstring(node)
            if not text or ">>> " not in text:
                continue
            name = getattr(node, "name", path.name)
            names = {"torch": rushlight, **vars(module)}
            test = parser.get_doctest(text, names, name, str(path), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
            runner.run(test, out=report.write)
        reports[path.relative_to(PACKAGE).as_posix()] = report.getvalue()
    return reports


def in_its_own_process(*arguments: str, cwd: Path, launcher: tuple[str, ...] = ()) -> Any:
    done = subprocess.run(
        [sys.executable, *launcher, __file__, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks(page: Path, tmp_path: Path) -> None:
    found = fences(page)
    outputs = iter(
        in_its_own_process("blocks", str(page), cwd=tmp_path, launcher=("-m", "rushlight", "run"))
    )
    for fence, following in itertools.pairwise([*found, None]):
        assert fence is not None
        if fence.kind not in ("python", "py"):
            assert fence.kind in ("text", "sh"), f"what is a {fence.kind!r} block?"
            continue
        output = next(outputs)
        if following is not None and following.kind == "text" and following.behind:
            assert output == following.text
        else:
            assert not re.match(r"\w+Error: ", output), output


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return set(project["optional-dependencies"])


COMMANDS = sorted(
    {
        line.strip()
        for page in PAGES
        for fence in fences(page)
        if fence.kind == "sh"
        for line in fence.text.splitlines()
        if line.strip()
    }
)


@pytest.mark.parametrize("command", COMMANDS)
def test_shell_command(command: str) -> None:
    words = shlex.split(command)
    match words:
        case ["make", target]:
            assert target in targets()
        case ["pip", "install", what]:
            wanted = re.fullmatch(r"\.(?:\[(.*)\])?", what)
            assert wanted
            assert set((wanted[1] or "").split(",")) <= extras() | {""}
        case ["rushlight", *rest] | ["python", "-m", "rushlight", *rest]:
            done = subprocess.run(
                [sys.executable, "-m", "rushlight", *rest],
                cwd=ROOT,
                capture_output=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr.decode()
        case _:
            pytest.fail(f"no rule says how to check {command!r}")


def test_make_help_lists_every_command() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    described = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert set(phony.split()) == described == targets()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        assert "://" in link or (page.parent / link).exists(), link


@functools.cache
def doctest_reports() -> dict[str, str]:
    result: dict[str, str] = in_its_own_process("doctests", cwd=ROOT)
    return result


@pytest.mark.parametrize("module", [path.relative_to(PACKAGE).as_posix() for path in EXAMPLES])
def test_examples_in_docstrings(module: str) -> None:
    report = doctest_reports()[module]
    assert not report, report


def main() -> None:
    if sys.argv[1] == "doctests":
        result: object = run_doctests()
    else:
        found = fences(Path(sys.argv[2]))
        result = run_blocks([fence.text for fence in found if fence.kind in ("python", "py")])
    print(json.dumps(result))


if __name__ == "__main__":
    main()


def rows_of_where() -> list[list[str]]:
    text = (ROOT / "docs" / "where.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("row", rows_of_where(), ids=lambda row: row[2])
def test_things_are_where_the_page_says(row: list[str]) -> None:
    source = (PACKAGE / row[1]).read_text(encoding="utf-8")
    assert re.search(rf"^{re.escape(row[2])}\b", source, re.MULTILINE), row
