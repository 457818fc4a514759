"""The documents tell the truth: their code runs and prints what they show, their commands exist.

In README.md, CONTRIBUTING.md and docs/ each Python block runs alone, as when it is pasted into a
fresh Python; and the blocks of a page, joined, run from top to bottom as one file. Nothing is left
uncaught, nothing is warned of, and `import torch` is an error unless the block itself lets
rushlight stand in for it. A text block right behind a Python block is what that prints; without one
it prints nothing. A `text varies` block is an example of what is printed: as many lines, the same
words on top. A first line `# name.py` names the block's file, so that a page can show messages that
name a line.

Shell blocks hold commands, one a line: of make (the target exists), of pip (the extra exists), and
of rushlight, which are run. Directives of Sphinx (`{toctree}`, `{literalinclude}`) lead to pages
and to sources that are there. Paths and names that pages mention exist. Figures that can be counted
are counted. Examples in docstrings are run as doctests.

As a program this file runs the blocks of one page, or all doctests, and prints the results as JSON.
"""

from __future__ import annotations

import ast
import codeop
import doctest
import functools
import importlib
import importlib.abc
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import rushlight

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    # docs/api/ is written by tools/make_api.py, when the documents are built
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "api"),
]
PACKAGE = Path(str(rushlight.__file__)).parent
EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
# Blocks that no machine of ours can run would be listed here, by page; there is none.
KINDS = ("python", "text", "text varies", "sh", "{toctree}", "{literalinclude}")
MARK = "\x1e"  # printed between the blocks of a page that runs as one file


@dataclass
class Fence:
    kind: str
    text: str
    behind: bool  # does it stand right behind another fence?


def fences(page: Path) -> list[Fence]:
    found = []
    pattern = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    text, end = page.read_text("utf-8"), -1
    for match in pattern.finditer(text):
        found.append(Fence(match[1], match[2], end >= 0 and not text[end : match.start()].strip()))
        end = match.end()
    return found


class NoTorch(importlib.abc.MetaPathFinder):
    """PyTorch is not installed where blocks are pasted, even if it is here."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def run_page(page: Path) -> list[list[str]]:
    """For each block, and last for all as one file: what is printed, and what is complained of."""
    blocks = [fence.text for fence in fences(page) if fence.kind == "python"]
    sys.meta_path.insert(0, NoTorch())
    return [run_apart(text) for text in [*blocks, f"print({MARK!r}, end='')\n".join(blocks)]]


def run_apart(text: str) -> list[str]:
    """Run a program in a forked child, which starts with rushlight imported and nothing changed."""
    named = re.match(r"# (\w+\.py)\n", text)
    name = named[1] if named else "pasted.py"
    Path(name).write_text(text, "utf-8")
    child = os.fork()
    if child == 0:
        for number, path in ((1, "out"), (2, "err")):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        try:
            exec(compile(text, name, "exec"), {"__name__": "__main__", "__file__": name})
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    os.waitpid(child, 0)
    return [Path(path).read_text("utf-8") for path in ("out", "err")]


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
            test = parser.get_doctest(
                text, {**vars(module), "torch": rushlight}, name, str(path), 0
            )
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
            runner.run(test, out=report.write)
        reports[path.relative_to(PACKAGE).as_posix()] = report.getvalue()
    return reports


def in_its_own_process(*arguments: str, cwd: Path) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def what_stays(text: str) -> tuple[int, list[str]]:
    """What is the same from run to run of a text that varies: its length, and the words on top."""
    lines = [re.findall(r"[A-Za-z_]{2,}", line) for line in text.strip().splitlines()]
    return len(lines), next(filter(None, lines))


def masked(text: str) -> str:
    """A text in which files and lines are not told apart."""
    return re.sub(r"\b\w+\.py:\d+", "file.py:1", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks(page: Path, tmp_path: Path) -> None:
    found = fences(page)
    assert {re.sub(r"(?<=\}) .*", "", fence.kind) for fence in found} <= set(KINDS)
    for fence in found:
        if fence.kind == "python":
            type_in(fence.text)
    shown = [
        following
        if following is not None and "text" in following.kind and following.behind
        else None
        for fence, following in itertools.pairwise([*found, None])
        if fence is not None and fence.kind == "python"
    ]
    if not shown:
        return
    *alone, (together, complaints) = in_its_own_process("page", str(page), cwd=tmp_path)
    for number, ((output, trouble), expected) in enumerate(zip(alone, shown, strict=True), 1):
        assert not trouble, f"block {number} alone: {trouble}"
        compare(output, expected)
    assert not complaints, f"all blocks as one file: {complaints}"
    for output, expected in zip(together.split(MARK), shown, strict=True):
        compare(masked(output), expected and replace(expected, text=masked(expected.text)))


class WithoutWords(ast.NodeTransformer):
    """Takes the words out of a program: those that are printed may be of another language."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node


@pytest.mark.parametrize("page", ["docs/tutorial.md", "README.md"])
def test_the_chinese_page_has_the_same_programs(page: str) -> None:
    ours = ROOT / page
    theirs = ours.parent / "zh" / ours.name if ours.parent.name == "docs" else ROOT / "README.zh.md"

    def programs(page: Path) -> list[str]:
        trees = [ast.parse(fence.text) for fence in fences(page) if fence.kind == "python"]
        return [ast.dump(WithoutWords().visit(tree)) for tree in trees]

    assert programs(theirs) == programs(ours)


def type_in(text: str) -> None:
    """A SyntaxError, if the prompt of Python before 3.13 would not take the text line by line:
    there an empty line ends an indented block, and nothing else does."""
    typed = ""
    for line in [*text.splitlines(), ""]:
        typed += line + "\n"
        if codeop.compile_command(typed[:-1], symbol="single") is not None:
            typed = ""
    assert not typed.strip(), typed


def compare(output: str, expected: Fence | None) -> None:
    if expected is not None and expected.kind == "text varies":
        assert what_stays(output) == what_stays(expected.text)
    else:
        assert output == ("" if expected is None else expected.text)


INCLUDES = [
    (page, fence.kind.split()[1], fence.text)
    for page in PAGES
    for fence in fences(page)
    if fence.kind.startswith("{literalinclude}")
]


@pytest.mark.parametrize(
    ("page", "path", "options"), INCLUDES, ids=lambda x: str(x).split()[-1].split("/")[-1]
)
def test_code_that_pages_include_is_there(page: Path, path: str, options: str) -> None:
    """Sphinx looks too, when the documents are built; here nothing has to be installed for it."""
    text = (page.parent / path).read_text("utf-8")
    found = dict(re.findall(r"^:([a-z-]+): (.*)$", options, re.MULTILINE))
    assert found.pop("language") == "python"
    tree: ast.AST = ast.parse(text)
    for name in found.pop("pyobject", "").split("."):
        if name:
            (tree,) = [
                node
                for node in ast.iter_child_nodes(tree)
                if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
            ]
    for option in ("start-at", "end-before"):
        if option in found:
            assert found[option] in text
            text = text.partition(found.pop(option))[2]
    assert not found


def test_every_page_is_in_the_tree() -> None:
    listed = [
        line
        for fence in fences(ROOT / "docs" / "index.md")
        if fence.kind == "{toctree}"
        for line in fence.text.splitlines()
        if line and not line.startswith(":")
    ]
    pages = {
        page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        for page in PAGES
        if page.is_relative_to(ROOT / "docs") and page.name != "index.md"
    }
    assert sorted(listed) == sorted(pages | {"api/index"})


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
def test_shell_command(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # commands may leave files behind
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
                cwd=tmp_path,
                capture_output=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr.decode()
        case ["mpiexec", "-n", count, "python", *rest]:
            pytest.importorskip("mpi4py")
            found = Path(sys.executable).with_name("mpiexec")
            done = subprocess.run(
                [str(found) if found.exists() else "mpiexec", "-n", count, sys.executable, *rest],
                cwd=tmp_path,
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


# --- what pages mention is there ------------------------------------------------------------------
# These two speak of what PyTorch has and rushlight has not.
OF_PYTORCH = ("differences.md", "missing.md")
YOURS = {"script.py", "trace.json", "chrome://tracing", ".venv", ".gz"}  # files of users


def spans(page: Path) -> list[str]:
    """What stands between backquotes in the prose of a page."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


@functools.cache
def known_words() -> frozenset[str]:
    """Every word of the sources, of the tools, and of the blocks in the pages."""
    files = [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci" / "run"]
    for folder in ("src", "tools", "bench", "attack", "tests"):
        files += (ROOT / folder).rglob("*.py*")
    texts = [
        f.read_text("utf-8") for f in files if f.suffix != ".pyc" and f.name != Path(__file__).name
    ]
    texts += [fence.text for page in PAGES for fence in fences(page)]
    texts += [f.stem for f in files]
    return frozenset(itertools.chain.from_iterable(re.findall(r"\w+", text) for text in texts))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_that_pages_mention_exist(page: Path) -> None:
    homes = (ROOT, PACKAGE, PACKAGE / "ops", page.parent)
    files = {path.name for path in PACKAGE.rglob("*.py")}
    for span in spans(page):
        if re.fullmatch(r"\.?[a-zA-Z_]\w*(/[\w.-]+)*(/|\.(py|md|json|toml|sh))", span):
            there = any((home / span).exists() for home in homes)
            assert there or span in files or span in YOURS, span


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in OF_PYTORCH], ids=lambda page: page.name
)
def test_names_that_pages_mention_exist(page: Path) -> None:
    absent = absent_names()
    for span in spans(page):
        if page.name == "README.md" and span.removeprefix("torch.") in absent:
            continue
        if re.fullmatch(r"(torch|rushlight)(\.\w{2,})+", span):
            value: Any = rushlight
            for name in span.split(".")[1:]:
                value = getattr(value, name, None) or importlib.import_module(
                    f"{value.__name__}.{name}"
                )
        unknown = set(re.findall(r"[A-Za-z_]\w{3,}", span)) - known_words()
        assert not unknown, f"{sorted(unknown)} in {span!r}"


# --- figures --------------------------------------------------------------------------------------
def absent_names() -> set[str]:
    """What README says is not there yet."""
    paragraph = (
        (ROOT / "README.md").read_text("utf-8").split("**Not there yet:**")[1].split("\n\n")[0]
    )
    return {name.removeprefix("torch.") for name in re.findall(r"`([\w.]+)`", paragraph)}


def test_readme_says_first_what_is_not_there() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.index("**Not there yet:**") < text.index("```")
    assert absent_names() == {"ao", "nested"}
    for name in absent_names():
        assert not hasattr(
            functools.reduce(getattr, name.split(".")[:-1], rushlight), name.split(".")[-1]
        )


def test_readme_repeats_measured_figures() -> None:
    def rows(page: Path) -> dict[tuple[str, str], str]:
        cells = [line.strip("| ").split(" | ") for line in page.read_text("utf-8").splitlines()]
        return {(row[0], row[1]): row[-1] for row in cells if re.fullmatch(r"\d+\.\d\d", row[-1])}

    repeated = rows(ROOT / "README.md")
    assert len(repeated) > 5
    assert repeated == rows(ROOT / "README.zh.md")
    assert repeated.items() <= rows(ROOT / "docs" / "figures.md").items()


def counted() -> dict[str, str]:
    """Where a page states a figure: what it is, by a look at its source."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    numpy = next(line for line in project["dependencies"] if line.startswith("numpy"))
    (torch,) = re.findall(r"torch==(\d+\.\d+)", (ROOT / "Makefile").read_text("utf-8"))
    limit = re.search(r"LIMIT = ([\d_]+)", (ROOT / "tools/check_wheel.py").read_text("utf-8"))
    minutes = re.search(
        r"--seconds.*default=(\d+)", (ROOT / "attack/__main__.py").read_text("utf-8")
    )
    assert limit and minutes and 540 < int(minutes[1]) <= 600
    return {
        r"Python (3\.\d+) (?:or|and) newer": project["requires-python"].removeprefix(">="),
        r"NumPy (\d\.\d+) (?:or|and) newer": numpy.removeprefix("numpy>="),
        r"PyTorch (2\.\d+)": torch,
        r"smaller than ([\d.]+) MB": f"{int(limit[1]) / 1e6:g}",
        r"wheel 不到 ([\d.]+) MB": f"{int(limit[1]) / 1e6:g}",
        r"Python 需要 (3\.\d+) 或更新": project["requires-python"].removeprefix(">="),
        r"(\w+) minutes (?:of|on) hostile": "ten",
        r"attack on everything \| (\w+) minutes": "ten",
        r"\babout (\w+ \w+) on two\s+cores": "a minute",
        r"every parameter, (\d+) kinds of number": str(
            len(importlib.import_module("attack.scalars").KINDS)
        ),
    }


def test_one_figure_for_one_fact() -> None:
    texts = [page.read_text("utf-8") for page in [*PAGES, ROOT / "Makefile"]]
    for pattern, figure in counted().items():
        found = {match for text in texts for match in re.findall(pattern, text)}
        assert found == {figure}, pattern


def test_demo_says_what_takes_so_long() -> None:
    done = subprocess.run(
        ["make", "-n", "demo", "VENV=build/no-such-venv", "BUILT=LICENSE", "SOURCES="],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    said = done.stdout
    for text in ("compiling the core", "about a minute", "Without a C compiler", "What to do next"):
        assert text in said
    assert said.index("compiling the core") < said.index("install -e .") < said.index("demo.py")


@functools.cache
def doctest_reports() -> dict[str, str]:
    result: dict[str, str] = in_its_own_process("doctests", cwd=ROOT)
    return result


@pytest.mark.parametrize("module", [path.relative_to(PACKAGE).as_posix() for path in EXAMPLES])
def test_examples_in_docstrings(module: str) -> None:
    report = doctest_reports()[module]
    assert not report, report


def rows_of_where() -> list[list[str]]:
    text = (ROOT / "docs" / "where.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("row", rows_of_where(), ids=lambda row: row[2])
def test_things_are_where_the_page_says(row: list[str]) -> None:
    source = (PACKAGE / row[1]).read_text(encoding="utf-8")
    assert re.search(rf"^{re.escape(row[2])}\b", source, re.MULTILINE), row


def main() -> None:
    print(json.dumps(run_doctests() if sys.argv[1] == "doctests" else run_page(Path(sys.argv[2]))))


if __name__ == "__main__":
    main()
