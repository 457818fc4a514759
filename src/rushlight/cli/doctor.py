"""`rushlight doctor`: what programs use of torch and rushlight lacks, without running them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rushlight.cli import refuse, show_help
from rushlight.cli.uses import Use, uses

USAGE = """\
usage: rushlight doctor [--json] script.py|notebook.ipynb|folder ...

Say which functions of torch programs use that rushlight lacks, where, and what comes nearest. The
programs are read, not run: imports, their aliases, chains of attributes, and methods of what must
be a tensor are followed. Of a folder all .py and .ipynb files are read, those of virtual
environments and hidden folders left out.

A use is *guarded* if the program is ready to do without: it stands in a `try` that catches the
error, or behind `hasattr`. Guarded uses are listed, and do not count. Behaviour that differs is not
found this way: see docs/differences.md.

  --json    one JSON object: {"files", "uses", "names", "lacking": [...], "unreadable": [...]};
            each of "lacking" has file, line, column, name, why, nearest, guarded and source

  rushlight doctor train.py && rushlight run train.py
  rushlight doctor --json src/ > lacking.json

exit status: 0 all is there; 1 something is missing; 2 something cannot be read, or the command line
is wrong
"""

LEFT_OUT = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


@dataclass
class Finding:
    """Something that is not there, at one place."""

    file: str
    line: int
    column: int
    name: str
    why: str
    nearest: str
    guarded: bool
    source: str


@dataclass
class Report:
    """What the files of one call use and lack."""

    files: int = 0
    uses: int = 0
    names: set[str] = field(default_factory=set)
    lacking: list[Finding] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        if self.unreadable:
            return 2
        return int(any(not finding.guarded for finding in self.lacking))


def command(arguments: list[str]) -> int:
    """Look at files and folders, print what they lack."""
    if arguments[:1] in (["-h"], ["--help"]):
        return show_help(USAGE)
    wants_json = "--json" in arguments
    paths = [word for word in arguments if word != "--json"]
    unknown = [word for word in paths if word.startswith("-")]
    if unknown or not paths:
        return refuse(
            f"unknown option of doctor: {unknown[0]}" if unknown else "doctor wants a file", USAGE
        )
    report = examine(paths)
    if wants_json:
        print(json.dumps(asdict(report) | {"names": len(report.names)}, indent=2))
    else:
        show(report)
    return report.status


def examine(paths: list[str]) -> Report:
    """Read all programs at these paths."""
    report = Report()
    for path in paths:
        if not os.path.exists(path):
            report.unreadable.append(f"{path}: no such file or folder")
        for file in programs(Path(path)):
            examine_file(file, report)
    return report


def programs(path: Path) -> Iterator[Path]:
    """A file itself; of a folder the programs in it."""
    if path.is_file():
        yield path
    elif path.is_dir():
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(
                name for name in folders
                if name not in LEFT_OUT and not name.startswith(".")
                and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
            )  # fmt: skip
            yield from (Path(folder, f) for f in sorted(files) if f.endswith((".py", ".ipynb")))


def examine_file(file: Path, report: Report) -> None:
    report.files += 1
    try:
        source = read(file)
        found = uses(source)
    except (OSError, SyntaxError, ValueError) as error:
        report.unreadable.append(f"{file}: {error}")
        return
    lines = source.splitlines()
    for use in found:
        finding = judge(use, str(file), lines)
        if finding is not None:
            report.lacking.append(finding)
        if use.certain or finding is not None:
            report.uses += 1
            report.names.add(use.name)


def judge(use: Use, file: str, lines: list[str]) -> Finding | None:
    """What is lacking at a use, if anything is."""
    from rushlight.cli.lookup import lookup
    from rushlight.missing import is_missing

    home, _, last = use.name.rpartition(".")
    if not use.certain and not (is_missing(home, last) and last not in COMMON):
        return None  # of some object: only names that nothing but a tensor has tell anything
    lack = lookup(use.name)
    if lack is None:
        return None
    text = lines[use.line - 1].strip() if 0 < use.line <= len(lines) else ""
    return Finding(
        file, use.line, use.column + 1, lack.name, lack.why, lack.nearest, use.guarded, text
    )


COMMON = {"index"}  # methods that other things than tensors have too


def read(file: Path) -> str:
    """The text of a program; of a notebook its code cells, magics left out."""
    import tokenize

    if file.suffix != ".ipynb":
        with tokenize.open(file) as stream:  # minds a line that names the encoding
            return stream.read()
    cells = json.loads(file.read_text("utf-8")).get("cells")
    if cells is None:
        raise ValueError("no notebook: it has no cells")
    lines: list[str] = []
    for cell in cells:
        if cell["cell_type"] == "code":
            text = "".join(cell["source"]).splitlines()
            magic = bool(text) and text[0].startswith("%%")
            own = [] if magic and not text[0].startswith(("%%grad", "%%time")) else text
            lines += ["" if line.lstrip().startswith(("%", "!", "?")) else line for line in own]
    return "\n".join(lines) + "\n"


def show(report: Report) -> None:
    """The findings, file by file, and a line that sums up."""
    last = ""
    for finding in report.lacking:
        if finding.file != last:
            print(finding.file)
            last = finding.file
        print(f"  line {finding.line}: {finding.name}" + (" (guarded)" if finding.guarded else ""))
        print(f"      {finding.source}")
        print(f"      {finding.why}; nearest: {finding.nearest}")
    for trouble in report.unreadable:
        print(f"rushlight: cannot read {trouble}", file=sys.stderr)
    count = sum(not finding.guarded for finding in report.lacking)
    files = f"{report.files} file" + "s" * (report.files != 1)
    verdict = f"{count} lacking" if count else "all there"
    if report.unreadable:
        verdict += f", {len(report.unreadable)} not read"
    print(f"{files}, {report.uses} uses of {len(report.names)} names of torch: {verdict}")
